package cluster

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// grantsRig is three hosts. The first one has an elastic address of a range with `keep` in force, granted after
// the snapshot to which etcd goes back. The address has since moved to the second host, which waits for the
// first.
type grantsRig struct {
	*backRig
	t     *testing.T
	a, b  *backHost
	edgeA *edgeOf
}

func newGrantsRig(t *testing.T) *grantsRig {
	t.Helper()
	r := &grantsRig{backRig: newBackRig(t), t: t}
	t.Cleanup(func() { r.end() })
	r.plays("a: lan 0")
	r.a = r.hosts["a"]
	leads := func(mac int) error {
		return r.a.edit(&ipam.AssociateElastic{Address: elasticAddr, Instance: testMAC(mac).String(), Move: true})
	}
	fine(t, r.a.edit(&ipam.ModifyNetwork{Network: "lan", Elastic: new("on")},
		&ipam.AddElasticRange{Range: mustRange(t, "203.0.113.10+4"), OnCut: string(ipam.CutKeep)},
		&ipam.AllocateElastic{}))
	r.plays(`
		a,b,c: attach
		a: run 1
		b: run 2
		save
	`)
	r.b = r.hosts["b"]
	fine(t, leads(1))
	r.edgeA = listenOn(t, r.a.svc())
	r.edgeA.has(elasticAddr)
	r.edgeA.applies()
	r.edgeA.end() // its kernel continues to answer
	fine(t, leads(2))
	r.plays("a,b,c: remembered")
	return r
}

// waits starts the second host's edge. It gets the address to prepare, and may not answer for it yet.
func (r *grantsRig) waits() *edgeOf {
	r.t.Helper()
	edge := listenOn(r.t, r.b.svc())
	edge.stages(elasticAddr)
	edge.never(elasticAddr)
	return edge
}

// endSession ends the session of the second host's edge, as a slow etcd does. The edge begins another session,
// and is still granted nothing.
func (r *grantsRig) endSession(edge *edgeOf) {
	r.t.Helper()
	edge.mu.Lock()
	was := edge.session
	edge.mu.Unlock()
	if _, err := r.client.Delete(r.t.Context(), r.cfg.Prefix+"h/b"); err != nil {
		r.t.Fatal(err)
	}
	edge.until("told in another session",
		func() bool { return edge.session != was && edge.mappings[elasticAddr].Staged })
	edge.never(elasticAddr)
}

// TestMendKeepsGrants: a mended etcd has forgotten which host answers for an address. No other host is granted
// the address before that host's edge has reported that it stopped, even if the session of the waiting edge
// ends.
func TestMendKeepsGrants(t *testing.T) {
	t.Parallel()
	r := newGrantsRig(t)
	r.plays(`
		back
		a,b,c: distrusts
		c,b,a: mend
		b: ready
	`)
	edge := r.waits()
	r.endSession(edge)
	r.a.ready()
	again := listenOn(t, r.a.svc())
	again.lacks(elasticAddr)
	again.says(func() ipam.EdgeReport { return ipam.EdgeReport{Whole: true} })
	edge.has(elasticAddr)
}

// TestMendKeepsGrantsOfTheGone: the same holds for a host that was declared gone, by what the other hosts
// remember, until it is removed.
func TestMendKeepsGrantsOfTheGone(t *testing.T) {
	t.Parallel()
	r := newGrantsRig(t)
	r.plays(`
		a: kill
		back
		b,c: distrusts
		c: mend a
		b: mend
		b: ready
	`)
	edge := r.waits()
	fine(t, r.b.edit(&ipam.RemoveHost{Name: "a", Off: true}))
	edge.has(elasticAddr)
}

// TestMendAcceptsWithGrants: a host that accepts etcd's state still reports what its own edge may have in force.
func TestMendAcceptsWithGrants(t *testing.T) {
	t.Parallel()
	r := newGrantsRig(t)
	fine(t, r.a.edit(&ipam.AllocateElastic{Address: elasticAddr}))
	r.plays(`
		back
		a,b,c: distrusts
		a,b,c: mend accept
		b: ready
	`)
	at := ledger.AppliedAt{Host: "a", Address: elasticAddr}
	known := ledger.Ask(r.b.svc().Ledger, func(ix *ledger.Index) *ipam.Applied { return ix.Applied(at) })
	if known == nil || !known.InForce {
		t.Errorf("of what the edge of a may have it is known %+v", known)
	}
}
