package cluster

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// grantsRig is two hosts, or three, of which the first has an elastic address of a range with `keep` in force, given
// after the snapshot to which etcd is put back; the address has moved to the second since, which waits for the first.
type grantsRig struct {
	*backRig
	t       *testing.T
	a, b, c *backHost
	edgeA   *edgeOf
	addr    netip.Addr
}

func newGrantsRig(t *testing.T) *grantsRig {
	t.Helper()
	r := &grantsRig{backRig: newBackRig(t, t), t: t}
	t.Cleanup(func() { r.end() })
	r.a = r.host("a")
	r.a.ready()
	on, text := "on", ipam.Range{}
	fine(t, text.UnmarshalText([]byte("203.0.113.10+4")))
	r.addr = text.From()
	r.edit(lanWith(0, lanCIDR), &ipam.ModifyNetwork{Network: "lan", Elastic: &on},
		&ipam.AddElasticRange{Range: text, OnCut: string(ipam.CutKeep)}, &ipam.AllocateElastic{})
	r.b, r.c = r.host("b"), r.host("c")
	for _, h := range []*backHost{r.a, r.b, r.c} {
		h.attach()
	}
	r.a.mustRun(1)
	r.b.mustRun(2)
	r.save()
	r.edit(&ipam.AssociateElastic{Address: r.addr, Instance: testMAC(1).String()})
	r.edgeA = listen(t, r.service(r.a))
	r.edgeA.has(r.addr)
	r.edgeA.applies()
	r.edgeA.end() // its kernel goes on to answer
	r.edit(&ipam.AssociateElastic{Address: r.addr, Instance: testMAC(2).String(), Move: true})
	for _, h := range []*backHost{r.a, r.b, r.c} {
		h.remembered()
	}
	return r
}

func (r *grantsRig) edit(edits ...ipam.Edit) {
	r.t.Helper()
	if _, err := r.a.Edit(r.t.Context(), ipam.EditOptions{}, edits...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *grantsRig) service(h *backHost) *service.Service {
	r.t.Helper()
	svc, err := h.Shared.service()
	fine(r.t, err)
	return svc
}

// back puts etcd back, and waits until the hosts that run know.
func (r *grantsRig) goesBack(hosts ...*backHost) {
	r.t.Helper()
	r.back(false)
	for _, h := range hosts {
		h.distrusts()
	}
}

// waits has the second host's edge listen, which is told of nothing that leads in.
func (r *grantsRig) waits() *edgeOf {
	r.t.Helper()
	edge := listen(r.t, r.service(r.b))
	edge.stages(r.addr)
	edge.never(r.addr)
	return edge
}

// TestMendKeepsGrants: after the mending of an etcd that forgot who has an address in force, no other host is granted
// it before that one's edge has said that it has it no more.
func TestMendKeepsGrants(t *testing.T) {
	t.Parallel()
	r := newGrantsRig(t)
	r.goesBack(r.a, r.b, r.c)
	for _, h := range []*backHost{r.c, r.b, r.a} {
		h.mend(ipam.MendOptions{})
	}
	r.b.ready()
	edge := r.waits()
	r.a.ready()
	again := listen(t, r.service(r.a))
	again.lacks(r.addr)
	fine(t, again.reports(ipam.EdgeReport{Whole: true}))
	edge.has(r.addr)
}

// TestMendKeepsGrantsOfTheGone: so it is of a host that was named gone, by what the others remember, until it is
// removed.
func TestMendKeepsGrantsOfTheGone(t *testing.T) {
	t.Parallel()
	r := newGrantsRig(t)
	r.a.kill()
	r.goesBack(r.b, r.c)
	r.c.mend(ipam.MendOptions{Gone: []string{"a"}})
	r.b.mend(ipam.MendOptions{})
	r.b.ready()
	edge := r.waits()
	if _, err := r.b.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "a", Off: true}); err != nil {
		t.Fatal(err)
	}
	edge.has(r.addr)
}

// TestMendAcceptsWithGrants: a host that takes etcd's word still says what its own edge may have in force.
func TestMendAcceptsWithGrants(t *testing.T) {
	t.Parallel()
	r := newGrantsRig(t)
	r.edit(&ipam.AllocateElastic{Address: r.addr})
	r.goesBack(r.a, r.b, r.c)
	for _, h := range []*backHost{r.a, r.b, r.c} {
		h.mend(ipam.MendOptions{Accept: true})
	}
	r.b.ready()
	at := ledger.AppliedAt{Host: "a", Address: r.addr}
	known := ledger.Ask(r.service(r.b).Ledger, func(ix *ledger.Index) *ipam.Applied { return ix.Applied(at) })
	if known == nil || !known.InForce {
		t.Errorf("of what the edge of a may have it is known %+v", known)
	}
}

// TestMendedGrantIsNotTheLast: of two hosts that are remembered to have an address the one that was given it last goes
// on to have it, and the other is not told of it though it was.
func TestMendedGrantIsNotTheLast(t *testing.T) {
	t.Parallel()
	f := newFenced(t, "")
	m := f.edgeA.has(f.addr)
	f.edgeA.end()
	err := f.a.Ledger.Update(t.Context(), func(c *ledger.Change) error {
		later := &ipam.Applied{Host: "b", Address: f.addr, Association: m.Association, Guest: m.Guest, InForce: true,
			Since: c.Now(), Grant: c.NextID()}
		return c.SetApplied(ledger.AppliedAt{Host: "b", Address: f.addr}, later)
	})
	fine(t, err)
	edge := listen(t, f.a)
	edge.stages(f.addr)
	edge.never(f.addr)
}
