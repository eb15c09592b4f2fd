package ipam_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store"
	"berth/store/storetest"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

// planMachine drives the service and the model of one network together: subnets that grow, shrink and go, pools and exclusions
// that split, reservations, what is taken by hand and through Docker networks, over a store that runs functions again and
// is opened afresh now and then.
type planMachine struct {
	path  string
	clock *clock
	store *storetest.Faulty
	s     *ipam.Service
	m     *planModel
}

func TestPlanModel(t *testing.T) { // GA-3 to GA-24
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "berth-plan")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c := newClock()
		mc := &planMachine{path: filepath.Join(dir, "berth.db"), clock: c, m: newPlanModel(c.now)}
		mc.store = rerunning(openStore(t, mc.path)).(*storetest.Faulty)
		defer func() { mc.store.Close() }()
		mc.s = openService(t, mc.store, c.Now)
		if _, err := mc.s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1"}); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"addSubnet": mc.addSubnet, "modifySubnet": mc.modifySubnet, "removeSubnet": mc.removeSubnet,
			"addPool": mc.addPool, "addPool2": mc.addPool, "removePool": mc.removePool, "renamePool": mc.renamePool,
			"exclude": mc.exclude, "include": mc.include,
			"reserve": mc.reserve, "unreserve": mc.unreserve,
			"take": mc.take, "take2": mc.take, "release": mc.release,
			"attach": mc.attach, "detach": mc.detach, "ask": mc.ask, "ask2": mc.ask, "askThis": mc.askThis, "askGateway": mc.askGateway, "back": mc.back,
			"policy": mc.policy, "wait": mc.wait, "reopen": mc.reopen, "dryRun": mc.dryRun,
			"": mc.check,
		})
	})
}

var (
	planOwners = []string{"web", "db", "shop/web/1"}
	planNames  = []string{"", "a", "b"}
	planMACs   = modelMACs[1:4]
)

// edit makes an edit of both, and compares what comes of it.
func (mc *planMachine) edit(t *rapid.T, e ipam.Edit) {
	if rapid.IntRange(0, 7).Draw(t, "full") == 0 {
		mc.store.Next(storetest.Fault{Reruns: 1, Before: store.ErrNoSpace})
		if _, err := mc.s.Edit(context.Background(), ipam.EditOptions{}, e); err == nil {
			t.Fatalf("%T%+v was made on a full disk", e, e)
		}
		mc.check(t) // nothing of it is left
	}
	out, err := mc.s.Edit(context.Background(), ipam.EditOptions{}, e)
	next := mc.m.clone()
	if err == nil {
		next.hint = out.Results[0].Addresses
	}
	want, no := next.apply(e)
	if err != nil && next.unsure {
		return // a later wish may hang on an earlier choice
	}
	mc.compare(t, e, err, no)
	if err != nil {
		return
	}
	next.hint, next.unsure = nil, false
	mc.m = next
	switch e.(type) {
	case *ipam.TakeAddress, *ipam.AddReservation:
		if in, ok := e.(*ipam.TakeAddress); ok && in.Interface.Action == ipam.RemoveInterface {
			return
		}
		if !slices.Equal(want, out.Results[0].Addresses) {
			t.Fatalf("%T%+v gave %v; the model gives %v", e, e, out.Results[0].Addresses, want)
		}
	}
}

// compare holds an error against the kinds that apply in the model.
func (mc *planMachine) compare(t *rapid.T, what any, err error, no refusals) {
	if (err == nil) != (len(no) == 0) {
		t.Fatalf("%T%+v: %v; the model refuses it as %v", what, what, err, no)
	}
	if err != nil && !slices.ContainsFunc(no, func(kind error) bool { return errors.Is(err, kind) }) {
		t.Fatalf("%T%+v: %v; the model refuses it as %v", what, what, err, no)
	}
}

// drawPrefix draws a small prefix out of a small universe.
func drawPrefix(t *rapid.T, label string) netip.Prefix {
	if rapid.IntRange(0, 3).Draw(t, label+"6") == 0 {
		bits := rapid.IntRange(125, 128).Draw(t, label+"Bits")
		at := rapid.IntRange(0, 15).Draw(t, label+"At")
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(at)}), bits).Masked()
	}
	bits := rapid.SampledFrom([]int{27, 28, 28, 29, 29, 30, 31, 32}).Draw(t, label+"Bits")
	at := rapid.IntRange(0, 63).Draw(t, label+"At")
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(at)}), bits).Masked()
}

// drawSubnet draws one that is there, and seldom one that is not.
func (mc *planMachine) drawSubnet(t *rapid.T) netip.Prefix {
	if len(mc.m.subnets) == 0 || rapid.IntRange(0, 9).Draw(t, "nowhere") == 0 {
		return drawPrefix(t, "subnet")
	}
	return mc.m.subnets[rapid.IntRange(0, len(mc.m.subnets)-1).Draw(t, "subnet")].cidr
}

// drawAddr draws an address that somebody has, had or owns, or else one in a subnet, or near it.
func (mc *planMachine) drawAddr(t *rapid.T, label string) netip.Addr {
	p := mc.drawSubnet(t)
	if sub := mc.m.named(p.String()); sub != nil && len(sub.records) > 0 && rapid.Bool().Draw(t, "known") {
		known := slices.SortedFunc(maps.Keys(sub.records), netip.Addr.Compare)
		return known[rapid.IntRange(0, len(known)-1).Draw(t, label)]
	}
	a := p.Addr()
	for range rapid.IntRange(0, 1<<(p.Addr().BitLen()-p.Bits())).Draw(t, label) {
		a = a.Next()
	}
	return a
}

func (mc *planMachine) drawRange(t *rapid.T) ipam.Range {
	p := mc.drawSubnet(t)
	n := 1 << (p.Addr().BitLen() - p.Bits())
	from := rapid.IntRange(0, n-1).Draw(t, "from")
	length := rapid.IntRange(0, n-1-from).Draw(t, "more")
	if rapid.IntRange(0, 9).Draw(t, "beyond") == 0 {
		length++
	}
	a := p.Addr()
	for range from {
		a = a.Next()
	}
	b := a
	for range length {
		b = b.Next()
	}
	return ipam.Range{IPRange: netipx.IPRangeFrom(a, b)}
}

func (mc *planMachine) addSubnet(t *rapid.T) {
	if len(mc.m.subnets) > 3 {
		t.Skip("enough subnets")
	}
	e := &ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{CIDR: drawPrefix(t, "new"), Pool: rapid.Bool().Draw(t, "pool")}}
	if rapid.Bool().Draw(t, "withGateway") {
		all := hosts(e.CIDR)
		e.Gateway = append(all, e.CIDR.Addr())[rapid.IntRange(0, len(all)).Draw(t, "gateway")]
	}
	mc.edit(t, e)
}

func (mc *planMachine) modifySubnet(t *rapid.T) {
	e := &ipam.ModifySubnet{Network: "net1", Subnet: mc.drawSubnet(t).String()}
	if rapid.Bool().Draw(t, "resize") {
		p := netip.MustParsePrefix(e.Subnet)
		bits := min(max(p.Bits()+rapid.IntRange(-2, 2).Draw(t, "bits"), 26), p.Addr().BitLen())
		a := p.Addr()
		for range rapid.IntRange(0, 1<<(p.Addr().BitLen()-p.Bits())-1).Draw(t, "at") {
			a = a.Next()
		}
		if p.Addr().Is6() {
			bits = max(bits, 125)
		}
		e.CIDR = ptr(netip.PrefixFrom(a, bits).Masked())
	} else if rapid.IntRange(0, 9).Draw(t, "move") == 0 {
		e.CIDR = ptr(drawPrefix(t, "to"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "gateway") {
	case 0:
		e.Gateway = ptr(netip.Addr{})
	case 1:
		e.Gateway = ptr(mc.drawAddr(t, "gatewayAt"))
	}
	mc.edit(t, e)
}

func (mc *planMachine) removeSubnet(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		t.Skip("subnets are removed seldom")
	}
	mc.edit(t, &ipam.RemoveSubnet{Network: "net1", Subnet: mc.drawSubnet(t).String()})
}

func (mc *planMachine) addPool(t *rapid.T) {
	mc.edit(t, &ipam.AddPool{Network: "net1", Range: mc.drawRange(t), Name: rapid.SampledFrom(planNames).Draw(t, "name")})
}

// drawPool draws a name or a range, often that of a pool.
func (mc *planMachine) drawPool(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "pool") {
	case 0:
		return rapid.SampledFrom(planNames[1:]).Draw(t, "name")
	case 1:
		for _, sub := range mc.m.subnets {
			if len(sub.pools) > 0 {
				return sub.pools[rapid.IntRange(0, len(sub.pools)-1).Draw(t, "exactly")].r.String()
			}
		}
	}
	return mc.drawRange(t).String()
}

func (mc *planMachine) removePool(t *rapid.T) {
	mc.edit(t, &ipam.RemovePool{Network: "net1", Pool: mc.drawPool(t)})
}

func (mc *planMachine) renamePool(t *rapid.T) {
	mc.edit(t, &ipam.ModifyPool{Network: "net1", Pool: mc.drawPool(t), Name: rapid.SampledFrom(planNames).Draw(t, "to")})
}

func (mc *planMachine) exclude(t *rapid.T) {
	r := mc.drawRange(t)
	if a := mc.drawAddr(t, "at"); rapid.Bool().Draw(t, "one") {
		r = ipam.Range{IPRange: netipx.IPRangeFrom(a, a)}
	}
	mc.edit(t, &ipam.AddExclusion{Network: "net1", Range: r, Note: rapid.SampledFrom(planNames).Draw(t, "note")})
}

func (mc *planMachine) include(t *rapid.T) {
	mc.edit(t, &ipam.RemoveExclusion{Network: "net1", Range: mc.drawRange(t)})
}

func (mc *planMachine) drawWish(t *rapid.T, slot int) ipam.Wish {
	w := ipam.Wish{Slot: slot}
	switch rapid.IntRange(0, 3).Draw(t, "wish") {
	case 0:
		w.Address = mc.drawAddr(t, "address")
	case 1:
		w.Pool = rapid.SampledFrom(planNames).Draw(t, "from")
	}
	return w
}

func (mc *planMachine) take(t *rapid.T) {
	in := ipam.Interface{Number: rapid.IntRange(0, 1).Draw(t, "nic")}
	in.Action = rapid.SampledFrom([]ipam.Action{ipam.Ensure, ipam.Ensure, ipam.AddInterface, ipam.ModifyInterface, ipam.ModifyInterface, ipam.RemoveInterface}).Draw(t, "action")
	switch in.Action {
	case ipam.RemoveInterface:
	case ipam.ModifyInterface:
		for slot := range 3 {
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				in.Wishes = append(in.Wishes, mc.drawWish(t, slot))
			case 1:
				in.Wishes = append(in.Wishes, ipam.Wish{Slot: slot, None: true})
			}
		}
		if len(in.Wishes) == 0 {
			t.Skip("nothing is wished")
		}
	default:
		for slot := range rapid.IntRange(1, 2).Draw(t, "slots") {
			in.Wishes = append(in.Wishes, mc.drawWish(t, slot))
		}
	}
	mc.edit(t, &ipam.TakeAddress{Network: "net1", Owner: rapid.SampledFrom(planOwners).Draw(t, "owner"), Interface: in, Force: rapid.IntRange(0, 3).Draw(t, "force") == 0})
}

func (mc *planMachine) release(t *rapid.T) {
	e := &ipam.ReleaseAddress{Network: "net1", Owner: rapid.SampledFrom(planOwners).Draw(t, "owner")}
	if has := slices.SortedFunc(maps.Values(mc.m.taken(e.Owner)), netip.Addr.Compare); len(has) > 0 && rapid.Bool().Draw(t, "one") {
		e.Address = has[rapid.IntRange(0, len(has)-1).Draw(t, "which")]
	}
	mc.edit(t, e)
}

func (mc *planMachine) reserve(t *rapid.T) {
	e := &ipam.AddReservation{Network: "net1", Owner: rapid.SampledFrom(append(planOwners, planMACs[0].String())).Draw(t, "owner"), Force: rapid.IntRange(0, 3).Draw(t, "force") == 0}
	for slot := range rapid.IntRange(1, 2).Draw(t, "slots") {
		e.Wishes = append(e.Wishes, mc.drawWish(t, slot))
	}
	mc.edit(t, e)
}

func (mc *planMachine) unreserve(t *rapid.T) {
	e := &ipam.RemoveReservation{Network: "net1", Owner: rapid.SampledFrom(append(planOwners, planMACs[0].String())).Draw(t, "owner")}
	if rapid.Bool().Draw(t, "one") {
		e.Address = mc.drawAddr(t, "which")
	}
	mc.edit(t, e)
}

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
	mc.m.docker[grant.ID] = &planDocker{sub, req.Pool}
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
	if err := mc.s.ReleasePool(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	sub := mc.m.docker[id].sub
	delete(mc.m.docker, id)
	for _, a := range hosts(sub.cidr) {
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
	return ipam.AddressRequest{Pool: mc.docker(t), MAC: rapid.SampledFrom(planMACs).Draw(t, "mac"), Name: rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "name")}
}

// ask asks for any address.
func (mc *planMachine) ask(t *rapid.T) {
	req := mc.drawEndpoint(t)
	got, err := mc.s.RequestAddress(context.Background(), req)
	mc.m.hint = []netip.Addr{got.Addr()}
	want, no := mc.m.any(req)
	mc.compare(t, req, err, no)
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
	return rec.held && rec.mac == req.MAC && rec.pool == req.Pool && (req.Name == "" || req.Name == rec.name)
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
	case rec.held, rec.owner == "" && sub.excluded(req.Preferred), rec.owner != "" && req.Name != "" && req.Name != rec.owner && req.MAC.String() != rec.owner:
		no = refusals{ipam.ErrInUse}
	}
	got, err := mc.s.RequestAddress(context.Background(), req)
	mc.compare(t, req, err, no)
	if err != nil {
		return
	}
	if got.Addr() != req.Preferred {
		t.Fatalf("asked for %v, got %v", req.Preferred, got)
	}
	if !rec.held {
		mc.m.hold(sub, req.Preferred, planRecord{kind: ipam.Static, name: req.Name, mac: req.MAC, pool: req.Pool})
	}
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
		for _, a := range hosts(at.sub.cidr) {
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
	if err := mc.s.ReleaseAddress(context.Background(), id, a); err != nil {
		t.Fatal(err)
	}
	if rec := sub.records[a]; rec.held && rec.pool == id {
		mc.m.release(sub, a)
	}
}

func (mc *planMachine) policy(t *rapid.T) {
	sticky, wait := rapid.Bool().Draw(t, "sticky"), rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "quarantine")
	if _, err := mc.s.Edit(ctx, ipam.EditOptions{}, &ipam.ModifyNetwork{Network: "net1", Sticky: &sticky, Quarantine: ptr(ipam.Duration(wait))}); err != nil {
		t.Fatal(err)
	}
	mc.m.forget, mc.m.wait = !sticky, wait
}

func (mc *planMachine) wait(t *rapid.T) {
	mc.clock.now = mc.clock.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, -time.Second}).Draw(t, "wait"))
	mc.m.now = mc.clock.now
}

func (mc *planMachine) reopen(t *rapid.T) {
	if err := mc.store.Close(); err != nil {
		t.Fatal(err)
	}
	mc.store = rerunning(openStore(t, mc.path)).(*storetest.Faulty)
	mc.s = openService(t, mc.store, mc.clock.Now)
}

// dryRun tries several edits, which must leave nothing.
func (mc *planMachine) dryRun(t *rapid.T) {
	edits := []ipam.Edit{
		&ipam.AddPool{Network: "net1", Range: mc.drawRange(t)}, &ipam.AddExclusion{Network: "net1", Range: mc.drawRange(t)},
		&ipam.TakeAddress{Network: "net1", Owner: "web", Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface}}, &ipam.ReleaseAddress{Network: "net1", Owner: "web"},
		&ipam.AddReservation{Network: "net1", Owner: "new"}, &ipam.RemovePool{Network: "net1", Pool: mc.drawPool(t)},
		&ipam.ModifySubnet{Network: "net1", Subnet: mc.drawSubnet(t).String(), CIDR: ptr(drawPrefix(t, "dry")), Name: ptr("x")},
		&ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{CIDR: drawPrefix(t, "dry2"), Name: "y"}}, &ipam.RemoveSubnet{Network: "net1", Subnet: mc.drawSubnet(t).String()},
	}
	first, second := rapid.IntRange(0, len(edits)-1).Draw(t, "first"), rapid.IntRange(0, len(edits)-1).Draw(t, "second")
	_, _ = mc.s.Edit(ctx, ipam.EditOptions{DryRun: true}, edits[first], edits[second]) // whether they go together does not matter: nothing may stay
}

// check holds everything that is shown against the model after each step.
func (mc *planMachine) check(t *rapid.T) {
	problems, err := mc.s.Check(ctx)
	if err != nil || len(problems) > 0 {
		t.Fatalf("check: %q, %v", problems, err)
	}
	n, err := mc.s.Network(ctx, "net1")
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Subnets) != len(mc.m.subnets) || n.Docker != len(mc.m.docker) {
		t.Fatalf("%d subnets and %d Docker networks; the model has %d and %d", len(n.Subnets), n.Docker, len(mc.m.subnets), len(mc.m.docker))
	}
	records := 0
	for i, sub := range mc.m.subnets {
		mc.checkSubnet(t, sub, &n.Subnets[i])
		records += len(sub.records)
	}
	leases := listLeases(t, mc.s, ipam.LeaseFilter{Remembered: true})
	for _, l := range leases {
		rec := mc.m.at(l.Address).records[l.Address]
		if rec.kind != l.Kind || rec.held != (l.State == "held") || rec.mac != l.MAC || rec.name != l.Name || rec.held && rec.pool != l.Pool {
			t.Fatalf("the lease %+v is %+v in the model", l, rec)
		}
		if rec.kind != 0 {
			records--
		}
	}
	for res, err := range mc.s.Reservations(ctx, ipam.AddressFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		rec := mc.m.at(res.Address).records[res.Address]
		if rec.owner != res.Owner || rec.held != res.InUse || rec.ownedNIC != res.Interface || rec.ownedSlot != res.Slot {
			t.Fatalf("the reservation %+v is %+v in the model", res, rec)
		}
		if rec.kind == 0 {
			records--
		}
	}
	if records != 0 {
		t.Fatalf("the model has %d records more", records)
	}
	for a, err := range mc.s.Taken(ctx, ipam.AddressFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := mc.m.taken(a.Owner)[[2]int{a.Interface, a.Slot}]; got != a.Address {
			t.Fatalf("taken: %+v; the model has %v there", a, got)
		}
	}
}

func (mc *planMachine) checkSubnet(t *rapid.T, sub *planSubnet, shown *ipam.SubnetPlan) {
	if shown.CIDR != sub.cidr || shown.Gateway != sub.gateway || len(shown.Pools) != len(sub.pools) || len(shown.Exclusions) != len(sub.exclusions) {
		t.Fatalf("the subnet is shown as %+v\nthe model has %+v", shown, sub)
	}
	for i, x := range sub.exclusions {
		if s := shown.Exclusions[i]; s.Start != x.r.From() || s.End != x.r.To() || s.Note != x.note {
			t.Fatalf("exclusion %d of %s is %+v; the model has %+v", i, sub.cidr, s, x)
		}
	}
	var held, reserved uint64
	for _, rec := range sub.records {
		if rec.held {
			held++
		}
		if rec.owner != "" {
			reserved++
		}
	}
	if shown.Held != held || shown.Reserved != reserved {
		t.Fatalf("%s: %d held and %d reserved; the model has %d and %d", sub.cidr, shown.Held, shown.Reserved, held, reserved)
	}
	available := []netip.Addr{}
	for i, p := range sub.pools {
		var drawn bytes.Buffer
		free := int64(0)
		for a := p.r.From(); a.Compare(p.r.To()) <= 0; a = a.Next() {
			if rec := sub.records[a]; !sub.open(p, a) || rec.held || rec.owner != "" {
				drawn.WriteByte('X')
				continue
			} else if !rec.until.After(mc.m.now) {
				available = append(available, a)
			}
			drawn.WriteByte('.')
			free++
		}
		s := shown.Pools[i]
		if s.Name != p.name || s.Start != p.r.From() || s.End != p.r.To() || s.Map != drawn.String() || s.Free.Int64() != free {
			t.Fatalf("pool %d of %s is %+v; the model has %+v, %s, %d free", i, sub.cidr, s, p, drawn.String(), free)
		}
	}
	slices.SortFunc(available, netip.Addr.Compare)
	if got, err := mc.s.Available(ctx, shown.ID, 1000); err != nil || !slices.Equal(got, available) {
		t.Fatalf("available in %s: %v, %v; the model has %v", sub.cidr, got, err, available)
	}
}
