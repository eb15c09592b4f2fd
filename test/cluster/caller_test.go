package cluster

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// callers is the number of concurrent callers on each host.
const callers = 16

// keepsFew and keepsMany are the limits between which the number of addresses that a caller keeps varies. The
// callers of three hosts together need less than the pool with the first and more with the second.
const keepsFew, keepsMany = 6, 13

// shared is the subnet that all take from. Callers cannot get its gateway. addresses is how many remain for them.
var (
	shared    = netip.MustParsePrefix("10.77.0.0/23")
	gateway   = netip.MustParseAddr("10.77.0.1")
	addresses = 1<<(32-shared.Bits()) - 3
)

// patient is a pause before a retry that would fail at once: the daemon is not there, or the store is away.
const patient = 25 * time.Millisecond

// caller takes and releases until it is told to stop.
type caller struct {
	*recorder
	random *rand.Rand
	next   holder
	held   []operation // the answers that gave it what it holds
	steps  int
}

// newCaller makes a caller whose endpoint numbers are unique across all hosts.
func newCaller(r *recorder, seed uint64) *caller {
	return &caller{recorder: r, random: rand.New(rand.NewPCG(seed, uint64(r.host)<<32|uint64(r.number))),
		next: holder(r.host*callers+r.number+1) << 20}
}

// work starts all callers. The returned function stops them and waits until each knows what it holds.
func work(t testing.TB, all []*caller) (stop func()) {
	ending := make(chan struct{})
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			for {
				select {
				case <-ending:
					return
				default:
					c.step()
				}
			}
		})
	}
	return func() {
		t.Helper()
		close(ending)
		ended := make(chan struct{})
		go func() {
			wg.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the callers do not come to an end")
		}
	}
}

// step takes or releases.
func (c *caller) step() {
	c.steps++
	keeps := keepsFew
	if c.steps/200%2 == 1 {
		keeps = keepsMany
	}
	if n := len(c.held); n > 0 && c.random.IntN(2*keeps) < n {
		i := c.random.IntN(n)
		lease := c.held[i]
		c.held[i] = c.held[n-1]
		c.held = c.held[:n-1]
		c.giveBack(lease)
		return
	}
	var asked netip.Addr
	if c.random.IntN(5) == 0 {
		asked = c.anyAddress()
	}
	c.next++
	c.take(c.next, asked, false)
}

// anyAddress is an address of the subnet, usually one of the few that many ask for.
func (c *caller) anyAddress() netip.Addr {
	n := 2 + c.random.IntN(addresses)
	if c.random.IntN(3) > 0 {
		n = 2 + c.random.IntN(24)
	}
	raw := shared.Addr().As4()
	raw[2] += byte(n >> 8)
	raw[3] = byte(n)
	return netip.AddrFrom4(raw)
}

// take asks until the outcome is known: it repeats a call with an unknown outcome, which gets the same answer. If
// the caller is unsure from the start, a refusal because the store is away does not end it.
func (c *caller) take(by holder, asked netip.Addr, unsure bool) {
	for {
		op, sent := c.do(operation{by: by, asked: asked})
		switch {
		case !sent && !unsure:
			time.Sleep(patient)
			return
		case !sent, op.verdict == lost, op.verdict == away && unsure:
			unsure = true
			time.Sleep(patient)
			continue
		case op.verdict == away:
			time.Sleep(patient)
		case op.verdict == done:
			c.held = append(c.held, op)
		}
		return
	}
}

// giveBack releases. After an unknown outcome it asks for the same address again. Then it has the address for
// certain and releases it, or hears that another holder has it.
func (c *caller) giveBack(lease operation) {
	for {
		op, sent := c.do(operation{give: true, by: lease.by, asked: lease.addr})
		switch {
		case !sent:
			time.Sleep(patient)
			continue
		case op.verdict != lost:
			return
		}
		had := len(c.held)
		c.take(lease.by, lease.addr, true)
		if len(c.held) == had {
			return
		}
		c.held = c.held[:had]
	}
}
