package cluster

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// fenced is two hosts with an edge and a container each, and an address that leads to that of the first.
type fenced struct {
	*cluster
	a, b         *service.Service
	edgeA, edgeB *edgeOf
	addr         netip.Addr
	onA, onB     string // the containers
}

func newFenced(t *testing.T, cut ipam.OnCut) *fenced {
	t.Helper()
	f := &fenced{cluster: newCluster(t), onA: ipam.MAC{2, 7}.String(), onB: ipam.MAC{2, 8}.String()}
	f.a, f.b = f.must("a"), f.must("b")
	f.edit(f.a, lan("10.77.0.0/24"))
	on := "on"
	f.edit(f.a, &ipam.ModifyNetwork{Network: "lan", Elastic: &on})
	var r ipam.Range
	fine(t, r.UnmarshalText([]byte("203.0.113.10+4")))
	f.addr = r.From()
	f.edit(f.a, &ipam.AddElasticRange{Range: r, OnCut: string(cut)})
	f.edit(f.a, &ipam.AllocateElastic{})
	f.take(f.a, f.attach(f.a, ipam.PoolRequest{Network: "lan"}).ID, 7)
	f.take(f.b, f.attach(f.b, ipam.PoolRequest{Network: "lan"}).ID, 8)
	f.edgeA, f.edgeB = listen(t, f.a), listen(t, f.b)
	f.edit(f.a, &ipam.AssociateElastic{Address: f.addr, Instance: f.onA})
	f.edgeA.has(f.addr)
	f.edgeA.applies()
	return f
}

// moves has the address lead to the container of b.
func (f *fenced) moves() {
	f.Helper()
	f.edit(f.b, &ipam.AssociateElastic{Address: f.addr, Instance: f.onB, Move: true})
}

// cutOff puts a out of reach of the store.
func (f *fenced) cutOff() {
	f.a.Ledger.Store().(interface{ Cut(error) }).Cut(errors.New("pulled the cable"))
}

func (f *fenced) heal() { f.a.Ledger.Store().(interface{ Heal() }).Heal() }

// applied is what the store has of the address for a host.
func (f *fenced) applied(host string) *ipam.Applied {
	return ledger.Ask(f.b.Ledger, func(ix *ledger.Index) *ipam.Applied {
		return ix.Applied(ledger.AppliedAt{Host: host, Address: f.addr})
	})
}

// TestGrant: an address that moves is granted to its new host when the edge of the old one says that it has it no more,
// and not before; only what goes out is told there meanwhile.
func TestGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		had := f.edgeA.has(f.addr)
		if at := f.applied("a"); at == nil || !at.InForce || at.Unsaid {
			t.Errorf("the edge of a has said that it is in force, and the store has %+v", at)
		}
		f.moves()
		f.edgeB.stages(f.addr)
		f.edgeA.lacks(f.addr)
		f.pass(20 * time.Second) // a host that is there is never taken from
		f.edgeB.never(f.addr)
		if info, err := f.b.Elastic(t.Context(), f.addr); err != nil || info.Applied == nil || info.Applied.Error == "" {
			t.Errorf("it waits, and is shown as %+v, %v", info.Applied, err)
		}
		f.edgeA.withdraws(had)
		f.edgeB.has(f.addr)
		if info, err := f.b.Elastic(t.Context(), f.addr); err != nil || info.Applied != nil && info.Applied.Error == "" {
			t.Errorf("its edge has said nothing yet, and it is shown as %+v, %v", info.Applied, err)
		}
		f.edgeB.applies()
		if info, err := f.b.Elastic(t.Context(), f.addr); err != nil || info.Applied == nil || info.Applied.Host != "b" {
			t.Errorf("it is in force on b, and is shown as %+v, %v", info.Applied, err)
		}
		f.sound(f.a, f.b)
	})
}

// TestLateWords: what an edge says late of a grant that is gone brings nothing back, and takes nothing away.
func TestLateWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		had := f.edgeA.has(f.addr)
		f.moves()
		f.edgeA.lacks(f.addr)
		// It is moved back before the edge of a has said that it has withdrawn it.
		f.edit(f.a, &ipam.AssociateElastic{Address: f.addr, Instance: f.onA, Move: true})
		again := f.edgeA.has(f.addr)
		if again.Grant == had.Grant {
			t.Errorf("what was told to be removed is told again by the grant %d of before", had.Grant)
		}
		f.edgeA.withdraws(had)
		if at := f.applied("a"); at == nil || !at.InForce || at.Grant != again.Grant {
			t.Fatalf("a late word took the grant away: %+v", at)
		}
		f.moves()
		f.edgeA.lacks(f.addr)
		f.edgeA.withdraws(again)
		f.edgeB.has(f.addr)
		late := ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: f.addr, Association: again.Association,
			Guest: again.Guest, Grant: again.Grant}}}
		if err := f.edgeA.reports(late); err != nil {
			t.Error(err)
		}
		if at := f.applied("a"); at != nil {
			t.Errorf("a late word brought the grant back: %+v", at)
		}
		before := f.edgeA.session
		f.edgeA.end()
		next := listen(t, f.a)
		err := f.a.ReportEdge(t.Context(), ipam.EdgeReport{Whole: true, Session: before})
		if !errors.Is(err, ipam.ErrChanged) {
			t.Errorf("the word of an edge whose session is over: %v", err)
		}
		next.end()
		f.sound(f.a, f.b)
	})
}

// TestTakeOver: what a host may have that is cut off is granted to another one when nothing can answer there any more
// (MetalLB #589, #740; kube-vip #996).
func TestTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		f.cutOff()
		f.moves()
		f.edgeB.stages(f.addr)
		time.Sleep(lookedFor) // it has seen that the session is gone
		f.pass(5 * time.Second)
		f.edgeB.never(f.addr)
		f.pass(time.Second)
		f.edgeB.has(f.addr)
		if at := f.applied("a"); at != nil {
			t.Errorf("the store has of a still %+v", at)
		}
		f.heal()
		f.edgeA.until("the session of a is over", func() bool { return f.edgeA.err != nil })
		back := listen(t, f.a)
		back.lacks(f.addr)
		back.never(f.addr)
		f.sound(f.a, f.b)
	})
}

// lookedFor is how long it takes, at most, to see that a session is gone.
const lookedFor = 100 * time.Millisecond

// TestCameBack: a host that comes back while another one waits is waited for anew: its session is another one.
func TestCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		f.cutOff()
		f.moves()
		f.edgeB.stages(f.addr)
		time.Sleep(lookedFor)
		f.pass(4 * time.Second)
		f.heal()
		f.edgeA.until("the session of a is over", func() bool { return f.edgeA.err != nil })
		back := listen(t, f.a)
		f.pass(20 * time.Second)
		f.edgeB.never(f.addr)
		f.cutOff()
		time.Sleep(lookedFor)
		f.pass(5 * time.Second)
		f.edgeB.never(f.addr)
		f.pass(time.Second)
		f.edgeB.has(f.addr)
		back.end()
	})
}

// TestKeep: a range that is kept on a cut is never taken over, and it is shown for whom it waits; when the host was
// removed, it is.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, ipam.CutKeep)
		f.cutOff()
		f.moves()
		f.edgeB.stages(f.addr)
		time.Sleep(lookedFor)
		f.pass(time.Minute)
		f.edgeB.never(f.addr)
		info, err := f.b.Elastic(t.Context(), f.addr)
		if err != nil || info.Applied == nil || info.Applied.Host != "a" || info.Applied.Error == "" {
			t.Errorf("it waits for a, and is shown as %+v, %v", info.Applied, err)
		}
		f.edit(f.b, &ipam.RemoveHost{Name: "a", Off: true})
		f.pass(6 * time.Second)
		f.edgeB.has(f.addr)
	})
}

// TestRemovedHostIsSilent: the edge of a host that was removed is told nothing any more, and its session ends.
func TestRemovedHostIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		f.cutOff()
		f.edit(f.b, &ipam.RemoveHost{Name: "a", Off: true})
		f.heal()
		f.edgeA.until("its news end", func() bool { return f.edgeA.err != nil })
		if again := listen(t, f.a); !errors.Is(again.err, ipam.ErrHost) {
			t.Errorf("its edge asks again: %v", again.err)
		}
		if held := f.b.Ledger.Shared().Held(); held["a"] != "" {
			t.Errorf("its session stands: %v", held)
		}
	})
}

// TestSent: an edge hears each second when the session was kept, and not once it is not.
func TestSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		at := func() time.Duration { f.edgeA.mu.Lock(); defer f.edgeA.mu.Unlock(); return f.edgeA.sent }
		first := at()
		f.edgeA.until("it is kept", func() bool { return f.edgeA.sent > first })
		f.cutOff()
		last := f.moment()
		time.Sleep(1500 * time.Millisecond)
		if at() > last {
			t.Error("an edge is told that a session was kept that cannot be")
		}
	})
}

// TestUntimed: what an edge has without an end, because its host shared the store with nobody when it was told so, is
// taken over by nobody until that edge has spoken, or the host is removed.
func TestUntimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, removed := range []bool{false, true} {
			f := newFenced(t, "")
			at := *f.applied("a")
			at.Untimed, at.Grant = true, 0
			if err := f.a.Ledger.Update(t.Context(), func(c *ledger.Change) error {
				return c.SetApplied(ledger.AppliedAt{Host: "a", Address: f.addr}, &at)
			}); err != nil {
				t.Fatal(err)
			}
			if f.edgeA.end(); removed {
				f.cutOff()
			}
			f.moves()
			f.edgeB.stages(f.addr)
			time.Sleep(lookedFor)
			f.pass(time.Minute)
			f.edgeB.never(f.addr)
			if removed {
				f.edit(f.b, &ipam.RemoveHost{Name: "a", Off: true})
				f.pass(6 * time.Second)
			} else if err := listen(t, f.a).reports(ipam.EdgeReport{Whole: true}); err != nil {
				t.Fatal(err)
			}
			f.edgeB.has(f.addr)
		}
	})
}

// TestUntimedIsTimed: a grant that is told to such an edge leaves it without an end until the edge has said that it is
// in force.
func TestUntimedIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFenced(t, "")
		at := *f.applied("a")
		at.Untimed, at.Grant = true, 0
		if err := f.a.Ledger.Update(t.Context(), func(c *ledger.Change) error {
			return c.SetApplied(ledger.AppliedAt{Host: "a", Address: f.addr}, &at)
		}); err != nil {
			t.Fatal(err)
		}
		f.edgeA.end()
		again := listen(t, f.a)
		again.has(f.addr)
		if at := f.applied("a"); at == nil || !at.Untimed {
			t.Errorf("it was granted, and not said to be in force: %+v", at)
		}
		again.applies()
		if at := f.applied("a"); at == nil || at.Untimed || !at.InForce {
			t.Errorf("it was said to be in force: %+v", at)
		}
	})
}
