package edit_test

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// attach attaches a Docker network to a subnet of the network by its CIDR.
func (mc *planMachine) attach(t *rapid.T) {
	if len(mc.m.docker) > 2 {
		t.Skip("enough Docker networks")
	}
	req := ipam.PoolRequest{Network: "net1", CIDR: mc.drawSubnet(t), Pool: rapid.SampledFrom(planNames).Draw(t, "pool")}
	sub := mc.m.named(req.CIDR.String())
	var no refusals
	switch {
	case sub == nil:
		no = refusals{ipam.ErrInvalid, ipam.ErrExhausted} // the latter where there is no subnet at all
	case req.Pool != "" && !slices.ContainsFunc(sub.pools, func(p planPool) bool { return p.name == req.Pool }):
		no = refusals{ipam.ErrNotFound}
	}
	grant, err := mc.s.RequestPool(context.Background(), req)
	mc.compare(t, req, err, no)
	if err != nil {
		return
	}
	if grant.CIDR != req.CIDR || grant.Gateway.Addr() != sub.gateway {
		t.Fatalf("attached to %+v; the model has %v, gateway %v", grant, sub.cidr, sub.gateway)
	}
	mc.m.docker[grant.ID] = &planDocker{sub, req.Pool, mc.m.now}
}

// docker draws one of the Docker networks, in an order that does not depend on their random ids.
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
	fine(t, mc.s.ReleasePool(context.Background(), id))
	sub := mc.m.docker[id].sub
	delete(mc.m.docker, id)
	for _, a := range ipamtest.Hosts(sub.cidr) {
		rec := sub.records[a]
		switch {
		case !rec.held || rec.pool != id:
		case rec.kind == ipam.Gateway && rec.owner == "":
			delete(sub.records, a) // nobody's to remember
		case rec.kind == ipam.Gateway:
			sub.records[a] = planRecord{owner: rec.owner, ownedNIC: rec.ownedNIC, ownedSlot: rec.ownedSlot}
		default:
			mc.m.release(sub, a)
		}
	}
}

func (mc *planMachine) drawEndpoint(t *rapid.T) ipam.AddressRequest {
	return ipam.AddressRequest{Pool: mc.docker(t), MAC: rapid.SampledFrom(planMACs).Draw(t, "mac"),
		Name: rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "name")}
}

// ask asks for any address.
func (mc *planMachine) ask(t *rapid.T) {
	req := mc.drawEndpoint(t)
	got, err := mc.s.RequestAddress(context.Background(), req)
	mc.m.hint = []netip.Addr{got.Addr()}
	want, no := mc.m.any(req)
	mc.compare(t, req, err, no)
	if err != nil {
		mc.m.leaveBehind(req)
	}
	if err == nil && got.Addr() != want {
		t.Fatalf("RequestAddress(%+v) = %v; the model gives %v", req, got, want)
	}
}

// any is the answer to a request of Docker for any address.
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
		free, held := sub.reserved(owner)
		if len(free) > 0 {
			return given(free[0])
		}
		if len(held) > 0 {
			return netip.Addr{}, refusals{ipam.ErrInUse}
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
	return rec.held && (rec.old || rec.behind) && rec.mac == req.MAC && rec.pool == req.Pool &&
		(req.Name == "" || req.Name == rec.name)
}

// leaveBehind puts in doubt the IPv4 address that a start took a moment ago which is refused its IPv6 one: the engine
// ends that start, and may never give the address back.
func (m *planModel) leaveBehind(req ipam.AddressRequest) {
	const moment = 10 * time.Second
	at := m.docker[req.Pool]
	if req.MAC == (ipam.MAC{}) || at.sub.cidr.Addr().Is4() {
		return
	}
	var in *planSubnet
	var last netip.Addr
	for _, sub := range m.subnets {
		for a, rec := range sub.records {
			other := m.docker[rec.pool]
			if a.Is6() || other == nil || !rec.held || rec.mac != req.MAC || req.Name != "" && rec.name != req.Name {
				continue
			}
			if m.now.Sub(rec.since) > moment || at.made.Sub(other.made).Abs() > moment {
				continue
			}
			if in == nil || rec.used > in.records[last].used {
				in, last = sub, a
			}
		}
	}
	if in != nil {
		rec := in.records[last]
		rec.behind = true
		in.records[last] = rec
	}
}

// askThis asks for an address by address.
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
	got, err := mc.s.RequestAddress(context.Background(), req)
	mc.compare(t, req, err, no)
	if err != nil {
		mc.m.leaveBehind(req)
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

// askGateway asks for the gateway: the subnet's, or one that the Docker network has for itself.
func (mc *planMachine) askGateway(t *rapid.T) {
	req := ipam.AddressRequest{Pool: mc.docker(t), Gateway: true}
	at := mc.m.docker[req.Pool]
	sub := at.sub
	if rapid.Bool().Draw(t, "this") {
		req.Preferred = mc.drawAddr(t, "address")
	}
	want := req.Preferred
	if !want.IsValid() {
		if want = sub.gateway; !want.IsValid() {
			want = mc.m.free(sub, at.pool)
		}
	}
	rec := sub.records[want]
	again := rec.held && rec.kind == ipam.Gateway && (rec.pool == req.Pool || want == sub.gateway)
	var no refusals
	switch {
	case want.IsValid() && want == sub.gateway:
	case !want.IsValid():
		no = refusals{ipam.ErrExhausted}
	case !sub.host(want):
		no = refusals{ipam.ErrInvalid}
	default:
		if sub.excluded(want) || rec.held && !again || rec.owner != "" && !again {
			no = append(no, ipam.ErrInUse)
		}
		if !mc.m.leavesRoom(at, want) {
			no = append(no, ipam.ErrExhausted)
		}
	}
	got, err := mc.s.RequestAddress(context.Background(), req)
	mc.compare(t, req, err, no)
	if err != nil {
		return
	}
	if got.Addr() != want {
		t.Fatalf("the gateway for %+v is %v; the model gives %v", req, got, want)
	}
	if !again {
		mc.m.hold(sub, want, planRecord{kind: ipam.Gateway, pool: req.Pool})
	}
}

// leavesRoom tells whether the pools of a Docker network, where it has some, have another address than its gateway.
func (m *planModel) leavesRoom(at *planDocker, gateway netip.Addr) bool {
	pools := false
	for _, p := range at.sub.pools {
		if at.pool != "" && p.name != at.pool {
			continue
		}
		pools = true
		for _, a := range ipamtest.Hosts(at.sub.cidr) {
			if a != gateway && at.sub.open(p, a) {
				return true
			}
		}
	}
	return !pools
}

func (mc *planMachine) back(t *rapid.T) {
	id := mc.docker(t)
	sub := mc.m.docker[id].sub
	a := mc.drawAddr(t, "address")
	fine(t, mc.s.ReleaseAddress(context.Background(), id, a))
	if rec := sub.records[a]; rec.held && rec.pool == id {
		mc.m.release(sub, a)
	}
}
