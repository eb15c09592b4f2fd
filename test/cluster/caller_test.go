package cluster

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// callers are how many ask at the same time on each host.
const callers = 16

// Between so many addresses and so many a caller keeps, in turns. Those of all callers of three hosts are fewer than
// the pool has at the one and more at the other.
const keepsFew, keepsMany = 6, 13

// shared is the subnet that all take from, whose gateway no caller has, and so many addresses are for callers.
var (
	shared    = netip.MustParsePrefix("10.77.0.0/23")
	gateway   = netip.MustParseAddr("10.77.0.1")
	addresses = 1<<(32-shared.Bits()) - 3
)

// patient waits a moment where asking again at once would make no sense: nobody listens, or the store is away.
const patient = 25 * time.Millisecond

// caller takes and releases until he is told to stop.
type caller struct {
	*recorder
	random *rand.Rand
	next   holder
	held   []operation // the answers that gave what he has
	steps  int
}

// newCaller is a caller whose endpoints have numbers of their own, over all hosts.
func newCaller(r *recorder, seed uint64) *caller {
	return &caller{recorder: r, random: rand.New(rand.NewPCG(seed, uint64(r.host)<<32|uint64(r.number))),
		next: holder(r.host*callers+r.number+1) << 20}
}

// work lets all callers loose. The function that it returns stops them, and waits until each knows what he has.
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

// anyAddress is an address of the subnet, most often one of the few that many ask for.
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

// take asks until it is known what he has: a call whose outcome is unknown is repeated, which gets the same answer.
// Where he is unsure from the beginning, a refusal because the store is away does not do.
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

// giveBack releases. Where the outcome is unknown he asks for the same address again, by which he either has it for
// certain and releases it, or hears that another one has it.
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
