package elastic_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/mem"
	"berth/store/storetest"
)

// cutting is a handle of a shared store. One of its updates fails.
type cutting struct {
	*mem.Store
	updates atomic.Int64
	at      int64
	fail    func(*mem.Store) error // makes the update fail later, or returns its error
}

func (c *cutting) Update(ctx context.Context, fn func(store.Tx) error) error {
	if c.updates.Add(1) == c.at {
		if err := c.fail(c.Store); err != nil {
			return err
		}
	}
	return c.Store.Update(ctx, fn)
}

// edgeTime is how long an edge waits for its news.
const edgeTime = 10 * time.Second

// listens makes a host's edge listen until says answers its news with a report, and sends the report.
func (b *bench) listens(says func(session string, news *ipam.EdgeNews) *ipam.EdgeReport) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), edgeTime)
	defer cancel()
	session := ""
	for news, err := range b.EdgeNews(ctx, false) {
		if err != nil {
			return err
		}
		if news.Whole {
			session = news.Session
		}
		if r := says(session, &news); r != nil {
			return b.ReportEdge(ctx, *r)
		}
	}
	return ctx.Err()
}

// takesUp makes the edge wait for the grant of an address and report it as in force.
func (b *bench) takesUp() error {
	return b.listens(func(session string, news *ipam.EdgeNews) *ipam.EdgeReport {
		for _, m := range news.Set {
			if m.Elastic == addr(elastic) && !m.Staged {
				return &ipam.EdgeReport{Session: session, Applied: []ipam.EdgeApplied{{Address: m.Elastic,
					Association: m.Association, Guest: m.Guest, Grant: m.Grant}}}
			}
		}
		return nil
	})
}

// letsGo makes the edge report that it has nothing in force.
func (b *bench) letsGo() error {
	return b.listens(func(session string, _ *ipam.EdgeNews) *ipam.EdgeReport {
		return &ipam.EdgeReport{Session: session, Whole: true}
	})
}

// cutPair is two hosts with a container each.
func cutPair(t *testing.T) *keptPair {
	p := pair(t)
	p.plays(`
		h1: elastic net1 on
		h1: run web
		h2: run job
	`)
	return p
}

// moves puts an address in force on the first host, and then on the second.
func (p *keptPair) moves() error {
	first, second := p.hosts[0].bench, p.hosts[1].bench
	leads := func(b *bench, to string) error {
		_, err := b.step([]string{"to", elastic, to, "move"})
		return err
	}
	for _, step := range []func() error{
		func() error { return leads(first, "web") }, second.letsGo, first.takesUp,
		func() error { return leads(second, "job") }, first.letsGo, second.takesUp,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inForce returns the hosts that may have the address in force.
func (p *keptPair) inForce() (hosts []string) {
	p.hosts[0].Ledger.Read(func(ix *ledger.Index) {
		for at, one := range ix.AllApplied() {
			if one.InForce && at.Address == addr(elastic) {
				hosts = append(hosts, at.Host)
			}
		}
	})
	return hosts
}

// TestCutOffGrants: each transaction that moves an address between hosts fails, on either host and in each way,
// and that host's daemon is restarted. Two hosts never have the address in force, and a repeated move succeeds.
func TestCutOffGrants(t *testing.T) {
	ways := []func(*mem.Store) error{
		func(*mem.Store) error { return store.ErrAway },
		func(s *mem.Store) error { s.LoseNext(true); return nil },
		func(s *mem.Store) error { s.LoseNext(false); return nil },
	}
	whole := cutPair(t)
	counts := [2]int64{whole.hosts[0].cut.updates.Load(), whole.hosts[1].cut.updates.Load()}
	if err := whole.moves(); err != nil {
		t.Fatal(err)
	}
	drawn := storetest.Drawn(t, 5)
	for i, b := range whole.hosts {
		if counts[i] = b.cut.updates.Load() - counts[i]; counts[i] < 4 {
			t.Fatalf("host %s makes %d transactions", b.host, counts[i])
		}
		for at := int64(1); at <= counts[i]; at++ {
			for way, fail := range ways {
				if !drawn() {
					continue
				}
				t.Run(fmt.Sprintf("%s %d of %d way %d", b.host, at, counts[i], way), func(t *testing.T) {
					cutOffGrant(t, i, at, fail)
				})
			}
		}
	}
}

func cutOffGrant(t *testing.T, i int, at int64, fail func(*mem.Store) error) {
	p := cutPair(t)
	b := p.hosts[i]
	b.cut.fail, b.cut.at = fail, b.cut.updates.Load()+at
	if err := p.moves(); err == nil {
		t.Fatal("it does not notice")
	}
	b.again(false)
	if got := p.inForce(); len(got) > 1 {
		t.Fatalf("%q may have it in force", got)
	}
	if err := p.moves(); err != nil {
		t.Fatalf("made again: %v", err)
	}
	if got := p.inForce(); len(got) != 1 || got[0] != "h2" {
		t.Fatalf("at the end %q may have it in force", got)
	}
	for _, b := range p.hosts {
		b.sound()
	}
}
