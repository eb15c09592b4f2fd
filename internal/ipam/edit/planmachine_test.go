package edit_test

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// planMachine drives the service and the model of one network: subnets that grow, shrink and go, pools and
// exclusions that split, reservations of one address, and addresses taken by hand and by Docker networks. The store
// runs functions again, and is reopened now and then.
type planMachine struct {
	path  string
	clock *ipamtest.Clock
	store *storetest.Faulty
	s     *service.Service
	m     *planModel
}

func TestPlanModel(t *testing.T) { // GA-3 to GA-24
	ipamtest.EachStore(t, "berth-plan", func(t *rapid.T, path string) {
		c := ipamtest.NewClock()
		mc := &planMachine{path: path, clock: c, m: newPlanModel(c.Time)}
		mc.store = ipamtest.Rerunning(ipamtest.OpenStore(t, mc.path)).(*storetest.Faulty)
		defer func() { mc.store.Close() }()
		mc.s = ipamtest.OpenService(t, mc.store, c.Now)
		if _, err := mc.s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1"}); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"addSubnet": mc.addSubnet, "modifySubnet": mc.modifySubnet, "removeSubnet": mc.removeSubnet,
			"addPool": mc.addPool, "addPool2": mc.addPool, "removePool": mc.removePool, "renamePool": mc.renamePool,
			"exclude": mc.exclude, "include": mc.include,
			"reserve": mc.reserve, "unreserve": mc.unreserve,
			"take": mc.take, "take2": mc.take, "release": mc.release,
			"attach": mc.attach, "detach": mc.detach, "ask": mc.ask, "ask2": mc.ask, "askThis": mc.askThis,
			"back":   mc.back,
			"policy": mc.policy, "wait": mc.wait, "reopen": mc.reopen,
			"": mc.check,
		})
	})
}

var (
	planOwners = []string{"web", "db", "shop/web/1"}
	planNames  = []string{"", "a", "b"}
	planMACs   = ipamtest.MACs[1:4]
)

// edit makes an edit in both, and compares the results.
func (mc *planMachine) edit(t *rapid.T, e ipam.Edit) {
	switch rapid.IntRange(0, 7).Draw(t, "trial") {
	case 0:
		mc.store.Next(storetest.Fault{Reruns: 1, Before: store.ErrNoSpace})
		if _, err := mc.s.Edit(ctx, ipam.EditOptions{}, e); err == nil {
			t.Fatalf("%T%+v was made on a full disk", e, e)
		}
		mc.check(t) // the failed edit left nothing
	case 1:
		_, _ = mc.s.Edit(ctx, ipam.EditOptions{DryRun: true}, e)
		mc.check(t)
	}
	out, err := mc.s.Edit(ctx, ipam.EditOptions{}, e)
	next := mc.m.clone()
	if err == nil {
		next.hint = out.Results[0].Addresses
	}
	want, no := next.apply(e)
	mc.compare(t, e, err, no)
	if err != nil {
		return
	}
	next.hint = nil
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

// compare compares an error with the kinds that apply in the model.
func (mc *planMachine) compare(t *rapid.T, what any, err error, no refusals) {
	if (err == nil) != (len(no) == 0) {
		t.Fatalf("%T%+v: %v; the model refuses it as %v", what, what, err, no)
	}
	if err != nil && !slices.ContainsFunc(no, func(kind error) bool { return errors.Is(err, kind) }) {
		t.Fatalf("%T%+v: %v; the model refuses it as %v", what, what, err, no)
	}
}

// drawPrefix draws a small prefix from few.
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

// drawSubnet draws an existing subnet, rarely a missing one.
func (mc *planMachine) drawSubnet(t *rapid.T) netip.Prefix {
	if len(mc.m.subnets) == 0 || rapid.IntRange(0, 9).Draw(t, "nowhere") == 0 {
		return drawPrefix(t, "subnet")
	}
	return mc.m.subnets[rapid.IntRange(0, len(mc.m.subnets)-1).Draw(t, "subnet")].cidr
}

// drawAddr draws an address that has a record, or another one in or next to a subnet.
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
	e := &ipam.AddSubnet{Network: "net1",
		SubnetSpec: ipam.SubnetSpec{CIDR: drawPrefix(t, "new"), Pool: rapid.Bool().Draw(t, "pool")}}
	if rapid.Bool().Draw(t, "withGateway") {
		all := ipamtest.Hosts(e.CIDR)
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
		e.CIDR = new(netip.PrefixFrom(a, bits).Masked())
	} else if rapid.IntRange(0, 9).Draw(t, "move") == 0 {
		e.CIDR = new(drawPrefix(t, "to"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "gateway") {
	case 0:
		e.Gateway = new(netip.Addr{})
	case 1:
		e.Gateway = new(mc.drawAddr(t, "gatewayAt"))
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
	mc.edit(t, &ipam.AddPool{Network: "net1", Range: mc.drawRange(t),
		Name: rapid.SampledFrom(planNames).Draw(t, "name")})
}

// drawPool draws a name or a range, often of an existing pool.
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
	mc.edit(t, &ipam.ModifyPool{Network: "net1", Pool: mc.drawPool(t),
		Name: rapid.SampledFrom(planNames).Draw(t, "to")})
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
	in.Action = rapid.SampledFrom([]ipam.Action{ipam.Ensure, ipam.Ensure, ipam.AddInterface, ipam.ModifyInterface,
		ipam.ModifyInterface, ipam.RemoveInterface}).Draw(t, "action")
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
	mc.edit(t, &ipam.TakeAddress{Network: "net1", Owner: rapid.SampledFrom(planOwners).Draw(t, "owner"), Interface: in,
		Force: rapid.IntRange(0, 3).Draw(t, "force") == 0})
}

func (mc *planMachine) release(t *rapid.T) {
	e := &ipam.ReleaseAddress{Network: "net1", Owner: rapid.SampledFrom(planOwners).Draw(t, "owner")}
	if has := slices.SortedFunc(maps.Values(mc.m.taken(e.Owner)), netip.Addr.Compare); len(has) > 0 &&
		rapid.Bool().Draw(t, "one") {
		e.Address = has[rapid.IntRange(0, len(has)-1).Draw(t, "which")]
	}
	mc.edit(t, e)
}

func (mc *planMachine) reserve(t *rapid.T) {
	e := &ipam.AddReservation{Network: "net1",
		Owner: rapid.SampledFrom(append(planOwners, planMACs[0].String())).Draw(t, "owner"),
		Force: rapid.IntRange(0, 3).Draw(t, "force") == 0}
	e.Wishes = []ipam.Wish{mc.drawWish(t, 0)}
	mc.edit(t, e)
}

func (mc *planMachine) unreserve(t *rapid.T) {
	e := &ipam.RemoveReservation{Network: "net1",
		Owner: rapid.SampledFrom(append(planOwners, planMACs[0].String())).Draw(t, "owner")}
	if rapid.Bool().Draw(t, "one") {
		e.Address = mc.drawAddr(t, "which")
	}
	mc.edit(t, e)
}

func (mc *planMachine) policy(t *rapid.T) {
	sticky, wait := rapid.Bool().Draw(t, "sticky"),
		rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "quarantine")
	if _, err := mc.s.Edit(ctx, ipam.EditOptions{},
		&ipam.ModifyNetwork{Network: "net1", Sticky: &sticky, Quarantine: new(ipam.Duration(wait))}); err != nil {
		t.Fatal(err)
	}
	mc.m.forget, mc.m.wait = !sticky, wait
	mc.m.bringNearer()
}

func (mc *planMachine) wait(t *rapid.T) {
	mc.clock.Time = mc.clock.Time.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour,
		-time.Second}).Draw(t, "wait"))
	mc.m.now = mc.clock.Time
	fine(t, allocator.KeepTime(ctx, mc.s.Ledger))
	mc.m.bringNearer()
}

func (mc *planMachine) reopen(t *rapid.T) {
	for _, sub := range mc.m.subnets {
		for a, rec := range sub.records {
			rec.old = rec.held
			sub.records[a] = rec
		}
	}
	mc.store = ipamtest.Reopen(t, mc.store, mc.path).(*storetest.Faulty)
	mc.s = ipamtest.OpenService(t, mc.store, mc.clock.Now)
}
