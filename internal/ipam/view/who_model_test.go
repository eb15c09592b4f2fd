package view_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// watcher knows who had what, from the records after each step, a second apart. It reads no events.
type watcher struct {
	store   store.Store
	s       *service.Service
	clock   *ipamtest.Clock
	began   time.Time
	pools   map[ipam.ID]bool
	last    map[string]ipam.Tenure // current tenures, by what distinguishes them
	ended   []ipam.Tenure
	trimmed bool
}

// TestWhoModel compares Who with what a watcher of the records has seen.
func TestWhoModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ipamtest.NewClock()
		w := &watcher{store: ipamtest.Rerunning(storetest.NewModel()), clock: c, began: c.Time,
			pools: map[ipam.ID]bool{},
			last:  map[string]ipam.Tenure{}}
		w.open(t, ipam.Retention{})
		w.edit(&ipam.CreateNetwork{Name: "net1",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("192.0.2.0/28"), Name: "lan", Pool: true}}})
		t.Repeat(map[string]func(*rapid.T){
			"attach":    w.attach,
			"detach":    w.detach,
			"ask":       w.ask,
			"ask2":      w.ask, // more often
			"gateway":   w.gateway,
			"back":      w.back,
			"learn":     w.learn,
			"reserve":   w.reserve,
			"unreserve": w.unreserve,
			"take":      w.take,
			"plan":      w.plan,
			"trim":      w.trim,
			"":          w.check,
		})
	})
}

func (w *watcher) open(t *rapid.T, keep ipam.Retention) {
	var err error
	w.s, err = service.Open(ctx,
		service.Config{Store: w.store, Host: "h1", Now: w.clock.Now, Memories: ipamtest.Memories, Retention: keep})
	must(t, err)
}

func (w *watcher) edit(e ipam.Edit) { _, _ = w.s.Edit(ctx, ipam.EditOptions{}, e) } // a refused edit changes nothing

func (w *watcher) attach(t *rapid.T) {
	req := rapid.SampledFrom([]ipam.PoolRequest{
		{Space: "local", Network: "net1"},
		{Space: "local", CIDR: netip.MustParsePrefix("10.0.0.0/29")},
		{Space: "lab", CIDR: netip.MustParsePrefix("10.0.0.0/29")},
	}).Draw(t, "pool")
	if grant, err := w.s.RequestPool(ctx, req); err == nil {
		w.pools[grant.ID] = true
	}
}

func (w *watcher) pool(t *rapid.T) ipam.ID {
	if len(w.pools) == 0 {
		t.Skip("no pool")
	}
	byText := func(a, b ipam.ID) int { return strings.Compare(a.String(), b.String()) }
	return rapid.SampledFrom(slices.SortedFunc(maps.Keys(w.pools), byText)).Draw(t, "pool")
}

func (w *watcher) detach(t *rapid.T) {
	id := w.pool(t)
	delete(w.pools, id)
	must(t, w.s.ReleasePool(ctx, id))
}

func (w *watcher) ask(t *rapid.T) {
	req := ipam.AddressRequest{Pool: w.pool(t), MAC: ipamtest.MAC(rapid.IntRange(1, 3).Draw(t, "mac")),
		Name: rapid.SampledFrom(askers).Draw(t, "name")}
	_, _ = w.s.RequestAddress(ctx, req)
}

// askers are the names in requests.
var askers = []string{"web", "db", ""}

func (w *watcher) gateway(t *rapid.T) {
	req := ipam.AddressRequest{Pool: w.pool(t), Gateway: true}
	if rapid.Bool().Draw(t, "named") {
		req.Preferred = netip.MustParseAddr("10.0.0.5")
	}
	_, _ = w.s.RequestAddress(ctx, req)
}

// held draws a lease of a Docker network.
func (w *watcher) held(t *rapid.T) ipam.LeaseInfo {
	held := slices.DeleteFunc(ipamtest.ListLeases(t, w.s, ipam.LeaseFilter{}),
		func(l ipam.LeaseInfo) bool { return l.Pool == ipam.ID{} })
	if len(held) == 0 {
		t.Skip("nothing is held")
	}
	slices.SortFunc(held, func(a, b ipam.LeaseInfo) int { return cmp.Compare(a.ID, b.ID) })
	return rapid.SampledFrom(held).Draw(t, "lease")
}

// learn gives a name to a lease that may have none.
func (w *watcher) learn(t *rapid.T) {
	l := w.held(t)
	name := ipam.LeaseName{LeaseRef: ipam.LeaseRef{Space: l.Space, Address: l.Address, ID: l.ID},
		Name: rapid.SampledFrom(askers).Draw(t, "name")}
	must(t, w.s.NameLeases(ctx, []ipam.LeaseName{name}))
}

func (w *watcher) back(t *rapid.T) {
	l := w.held(t)
	must(t, w.s.ReleaseAddress(ctx, l.Pool, l.Address))
}

func (w *watcher) reserve(t *rapid.T) {
	wish := ipam.Wish{}
	if rapid.Bool().Draw(t, "static") {
		wish.Address = netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", rapid.IntRange(1, 4).Draw(t, "address")))
	}
	w.edit(&ipam.AddReservation{Network: "net1", Owner: rapid.SampledFrom(askers[:2]).Draw(t, "owner"),
		Wishes: []ipam.Wish{wish}, Force: rapid.Bool().Draw(t, "force")})
}

func (w *watcher) unreserve(t *rapid.T) {
	w.edit(&ipam.RemoveReservation{Network: "net1", Owner: rapid.SampledFrom(askers[:2]).Draw(t, "owner")})
}

func (w *watcher) take(t *rapid.T) {
	owner := rapid.SampledFrom(askers[:2]).Draw(t, "owner")
	if rapid.Bool().Draw(t, "back") {
		w.edit(&ipam.ReleaseAddress{Network: "net1", Owner: owner})
		return
	}
	w.edit(&ipam.TakeAddress{Network: "net1", Owner: owner, Interface: ipam.Interface{Wishes: []ipam.Wish{{}}}})
}

// plan changes the plan, which may end leases and reservations.
func (w *watcher) plan(t *rapid.T) {
	lan := netip.MustParsePrefix("192.0.2.0/28")
	addr := func() *netip.Addr {
		return new(netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", rapid.IntRange(1, 4).Draw(t, "gateway"))))
	}
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		w.edit(&ipam.ModifySubnet{Network: "net1", Subnet: "lan", Gateway: addr()})
	case 1:
		w.edit(&ipam.ModifySubnet{Network: "net1", Subnet: "lan", Gateway: new(netip.Addr)})
	case 2:
		bits := rapid.IntRange(27, 29).Draw(t, "bits")
		w.edit(&ipam.ModifySubnet{Network: "net1", Subnet: "lan", CIDR: new(netip.PrefixFrom(lan.Addr(), bits))})
	case 3:
		w.edit(&ipam.RemoveNetwork{Network: "net1", Force: true})
	case 4:
		w.edit(&ipam.CreateNetwork{Name: "net1",
			Subnets: []ipam.SubnetSpec{{CIDR: lan, Name: "lan", Gateway: *addr(), Pool: true}}})
	}
}

// trim keeps the events of the last seconds.
func (w *watcher) trim(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "really") > 0 {
		t.Skip("events are trimmed seldom")
	}
	w.open(t, ipam.Retention{Age: time.Duration(rapid.IntRange(1, 10).Draw(t, "age")) * time.Second})
	must(t, w.s.Trim(ctx))
	w.trimmed = true
}

// look notes what the records show now.
func (w *watcher) look(t *rapid.T) {
	now := map[string]ipam.Tenure{}
	for _, l := range ipamtest.ListLeases(t, w.s, ipam.LeaseFilter{}) {
		now[fmt.Sprint(l.ID)] = ipam.Tenure{Space: l.Space, Subnet: l.Subnet, Address: l.Address,
			What: ipam.LeaseTenure, Kind: l.Kind.String(), Lease: l.ID,
			Name: l.Name, MAC: l.MAC, Host: l.Host, From: l.Since}
	}
	for r, err := range w.s.Reservations(ctx, ipam.AddressFilter{}) {
		must(t, err)
		now[fmt.Sprint(r.Owner, r.Address, r.Since)] = ipam.Tenure{Space: r.Space, Subnet: r.Subnet, Address: r.Address,
			What: ipam.ReservationTenure,
			Kind: r.Kind.String(), Name: r.Owner, From: r.Since}
	}
	for key, was := range w.last {
		if _, lasts := now[key]; !lasts {
			was.Until = w.clock.Time
			w.ended = append(w.ended, was)
		}
	}
	w.last = now
}

func (w *watcher) check(t *rapid.T) {
	w.look(t)
	for _, f := range w.questions(t) {
		got, err := w.s.Who(ctx, f)
		must(t, err)
		w.hold(t, f, got)
	}
	w.clock.Time = w.clock.Time.Add(time.Second)
}

func (w *watcher) questions(t *rapid.T) []ipam.WhoFilter {
	f := ipam.WhoFilter{Space: rapid.SampledFrom([]string{"", "", "local", "lab"}).Draw(t, "space")}
	if rapid.Bool().Draw(t, "then") {
		seconds := int(w.clock.Time.Sub(w.began) / time.Second)
		f.At = w.began.Add(time.Duration(rapid.IntRange(-1, seconds+1).Draw(t, "at"))*time.Second + time.Second/2)
	}
	all := []ipam.WhoFilter{f, f, f, f}
	all[0].Name, all[1].Name = "web", "db"
	all[2].MAC = ipamtest.MAC(rapid.IntRange(1, 3).Draw(t, "whose"))
	text := rapid.SampledFrom([]string{"192.0.2.%d", "10.0.0.%d"}).Draw(t, "net")
	all[3].Address = netip.MustParseAddr(fmt.Sprintf(text, rapid.IntRange(1, 6).Draw(t, "asked")))
	return all
}

// hold compares an answer with what was seen. After a trim the answer may have fewer ended tenures, but no other
// ones, and no current tenure is missing.
func (w *watcher) hold(t *rapid.T, f ipam.WhoFilter, got []ipam.Tenure) {
	chosen := func(one ipam.Tenure) bool {
		if f.Space != "" && one.Space != f.Space {
			return false
		}
		if !f.At.IsZero() && (one.From.After(f.At) || !one.Until.IsZero() && !one.Until.After(f.At)) {
			return false
		}
		return f.Name != "" && one.Name == f.Name || f.MAC != (ipam.MAC{}) && one.MAC == f.MAC ||
			one.Address == f.Address
	}
	var want []string
	for _, one := range slices.Concat(w.ended, slices.Collect(maps.Values(w.last))) {
		if chosen(one) && (!w.trimmed || one.Until.IsZero()) {
			want = append(want, w.text(one))
		}
	}
	var seen []string
	for i, one := range got {
		if i > 0 && one.From.Before(got[i-1].From) {
			t.Fatalf("%+v: %v comes behind %v", f, one.From, got[i-1].From)
		}
		if w.trimmed && !one.Until.IsZero() {
			w.holdEnded(t, f, one)
			continue
		}
		seen = append(seen, w.text(one))
	}
	slices.Sort(want)
	slices.Sort(seen)
	if diff := gocmp.Diff(want, seen); diff != "" {
		t.Fatalf("%+v:\n%s", f, diff)
	}
}

// holdEnded looks for an ended tenure among those that were seen. Of an early tenure the kind may be unknown, and
// the beginning of a reservation. The subnet of a remembered address may have another size since.
func (w *watcher) holdEnded(t *rapid.T, f ipam.WhoFilter, one ipam.Tenure) {
	was := slices.ContainsFunc(w.ended, func(other ipam.Tenure) bool {
		if one.Early && one.Subnet.Overlaps(other.Subnet) {
			other.Subnet = one.Subnet
		}
		if one.Early && one.Kind == "" {
			other.Kind = ""
		}
		if one.Early && one.What == ipam.ReservationTenure && !one.From.Before(other.From) {
			other.From = one.From
		}
		return w.text(one) == w.text(other)
	})
	if !was {
		t.Fatalf("%+v: never seen: %+v, but %+v", f, one, w.ended)
	}
}

// text is the part on which the two must agree. All that a step does has the second of that step.
func (w *watcher) text(one ipam.Tenure) string {
	return fmt.Sprint(one.Space, " ", one.Subnet, " ", one.Address, " ", one.What, " ", one.Kind, " ", one.Lease, " ",
		one.Name, " ", one.MAC, " ", one.Host, " ",
		one.From.Truncate(time.Second), " ", one.Until.Truncate(time.Second))
}
