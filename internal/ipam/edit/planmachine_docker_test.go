package edit_test

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// attach attaches a Docker network to a subnet by its CIDR.
func (mc *planMachine) attach(t *rapid.T) {
	if len(mc.m.docker) > 2 {
		t.Skip("enough Docker networks")
	}
	req := ipam.PoolRequest{Network: "net1", CIDR: mc.drawSubnet(t), Pool: rapid.SampledFrom(planNames).Draw(t, "pool")}
	sub := mc.m.named(req.CIDR.String())
	var no refusals
	switch {
	case sub == nil:
		no = refusals{ipam.ErrInvalid, ipam.ErrExhausted} // ErrExhausted if there is no subnet at all
	case req.Pool != "" && !slices.ContainsFunc(sub.pools, func(p planPool) bool { return p.name == req.Pool }):
		no = refusals{ipam.ErrNotFound}
	}
	grant, err := mc.s.RequestPool(ctx, req)
	mc.compare(t, req, err, no)
	if err != nil {
		return
	}
	if grant.CIDR != req.CIDR || grant.Gateway.Addr() != sub.gateway {
		t.Fatalf("attached to %+v; the model has %v, gateway %v", grant, sub.cidr, sub.gateway)
	}
	mc.m.docker[grant.ID] = &planDocker{sub, req.Pool}
}

// docker draws a Docker network, in an order that does not depend on random ids.
func (mc *planMachine) docker(t *rapid.T) ipam.ID {
	if len(mc.m.docker) == 0 {
		t.Skip("no Docker network")
	}
	ids := slices.SortedFunc(maps.Keys(mc.m.docker), func(a, b ipam.ID) int {
		x, y := mc.m.docker[a], mc.m.docker[b]
		return cmp.Or(strings.Compare(x.sub.cidr.String(), y.sub.cidr.String()), strings.Compare(x.pool, y.pool))
	})
	return ids[rapid.IntRange(0, len(ids)-1).Draw(t, "docker")]
}

func (mc *planMachine) detach(t *rapid.T) {
	id := mc.docker(t)
	fine(t, mc.s.ReleasePool(ctx, id))
	sub := mc.m.docker[id].sub
	delete(mc.m.docker, id)
	for _, a := range ipamtest.Hosts(sub.cidr) {
		if rec := sub.records[a]; rec.held && rec.pool == id {
			mc.m.release(sub, a)
		}
	}
}

func (mc *planMachine) drawEndpoint(t *rapid.T) ipam.AddressRequest {
	req := ipam.AddressRequest{Pool: mc.docker(t), MAC: rapid.SampledFrom(planMACs).Draw(t, "mac"),
		Name: rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "name")}
	if mc.m.docker[req.Pool].sub.cidr.Addr().Is6() {
		req.MAC[0] = 6 // otherwise a start with both families would leave an address in doubt
	}
	return req
}

// ask requests any address.
func (mc *planMachine) ask(t *rapid.T) {
	req := mc.drawEndpoint(t)
	got, err := mc.s.RequestAddress(ctx, req)
	mc.m.hint = []netip.Addr{got.Addr()}
	want, no := mc.m.any(req)
	mc.compare(t, req, err, no)
	if err == nil && got.Addr() != want {
		t.Fatalf("RequestAddress(%+v) = %v; the model gives %v", req, got, want)
	}
}

// any answers a request of Docker for any address.
func (m *planModel) any(req ipam.AddressRequest) (netip.Addr, refusals) {
	at := m.docker[req.Pool]
	sub := at.sub
	var again netip.Addr
	for a, rec := range sub.records {
		if m.repeats(rec, req) && (!again.IsValid() || slices.Contains(m.hint, a)) {
			again = a
		}
	}
	if again.IsValid() {
		m.hold(sub, again, planRecord{kind: sub.records[again].kind, name: req.Name, mac: req.MAC, pool: req.Pool})
		return again, nil
	}
	given := func(a netip.Addr) (netip.Addr, refusals) {
		m.hold(sub, a, planRecord{kind: ipam.Automatic, name: req.Name, mac: req.MAC, pool: req.Pool})
		return a, nil
	}
	for _, owner := range []string{req.Name, req.MAC.String()} {
		switch a := sub.reserved(owner); {
		case sub.records[a].held:
			return netip.Addr{}, refusals{ipam.ErrInUse}
		case a.IsValid():
			return given(a)
		}
	}
	for _, is := range []func(planRecord) bool{
		func(rec planRecord) bool { return req.Name != "" && rec.name == req.Name },
		func(rec planRecord) bool { return rec.mac == req.MAC },
	} {
		if a := m.remembered(sub, at.pool, is); a.IsValid() {
			return given(a)
		}
	}
	if a := m.free(sub, at.pool); a.IsValid() {
		return given(a)
	}
	return netip.Addr{}, refusals{ipam.ErrExhausted}
}

func (m *planModel) repeats(rec planRecord, req ipam.AddressRequest) bool {
	return rec.held && rec.old && rec.mac == req.MAC && rec.pool == req.Pool &&
		(req.Name == "" || req.Name == rec.name)
}

// askThis requests a given address.
func (mc *planMachine) askThis(t *rapid.T) {
	req := mc.drawEndpoint(t)
	sub := mc.m.docker[req.Pool].sub
	req.Preferred = mc.drawAddr(t, "address")
	rec := sub.records[req.Preferred]
	var no refusals
	switch {
	case !sub.host(req.Preferred):
		no = refusals{ipam.ErrInvalid}
	case rec.held && mc.m.repeats(rec, req):
	case rec.held, rec.owner == "" && sub.excluded(req.Preferred), rec.owner != "" && req.Name != "" &&
		req.Name != rec.owner && req.MAC.String() != rec.owner:
		no = refusals{ipam.ErrInUse}
	}
	got, err := mc.s.RequestAddress(ctx, req)
	mc.compare(t, req, err, no)
	if err != nil {
		return
	}
	if got.Addr() != req.Preferred {
		t.Fatalf("asked for %v, got %v", req.Preferred, got)
	}
	kind := ipam.Static
	if rec.held {
		kind = rec.kind
	}
	mc.m.hold(sub, req.Preferred, planRecord{kind: kind, name: req.Name, mac: req.MAC, pool: req.Pool})
}

func (mc *planMachine) back(t *rapid.T) {
	id := mc.docker(t)
	sub := mc.m.docker[id].sub
	a := mc.drawAddr(t, "address")
	fine(t, mc.s.ReleaseAddress(ctx, id, a))
	if rec := sub.records[a]; rec.held && rec.pool == id {
		mc.m.release(sub, a)
	}
}
