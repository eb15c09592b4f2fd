package view_test

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// free returns the ranges listed as free, and the next addresses.
func free(t testing.TB, r *ipamtest.Stage, network string, f ipam.FreeFilter) (ranges []string, next []string) {
	t.Helper()
	all, err := r.S.Free(ctx, network, f)
	must(t, err)
	for i := range all {
		ranges = append(ranges, strings.TrimSpace(all[i].Pool+" "+all[i].String()))
	}
	first, err := r.S.NextFree(ctx, network, f)
	must(t, err)
	for i := range first {
		next = append(next, first[i].String())
	}
	return ranges, next
}

// TestFree: free ranges and next addresses of several subnets, pools and families, in pages and by subnet and
// pool. Exclusions, bands, reservations and recently released addresses are not among them.
func TestFree(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 quarantine=1h subnet=192.0.2.0/24,gw=192.0.2.1 static=192.0.2.20-192.0.2.21
		pool net1 192.0.2.30-192.0.2.33 name=high
		pool net1 192.0.2.16-192.0.2.23 name=low
		subnet net1 198.51.100.0/30 pool
		subnet net1 2001:db8::/64 pool
		exclude net1 192.0.2.17-192.0.2.17
		reserve net1 shop/web/1 192.0.2.31
		attach p net=net1 cidr=192.0.2.0/24
		ask p a mac=1
		ask p b mac=2
		back p 192.0.2.32`)
	low, high := []string{"low 192.0.2.16", "low 192.0.2.18-192.0.2.19", "low 192.0.2.22-192.0.2.23"}, "high 192.0.2.33"
	other, six := "198.51.100.1-198.51.100.2", "2001:db8::1-2001:db8::ffff:ffff:ffff:ffff"
	check := func(f ipam.FreeFilter, want []string, wantNext ...string) {
		t.Helper()
		got, next := free(t, r, "net1", f)
		if !slices.Equal(got, want) || wantNext != nil && !slices.Equal(next, wantNext) {
			t.Errorf("%+v: %q, next %q\nand not %q, next %q", f, got, next, want, wantNext)
		}
	}
	whole := append(slices.Clone(low), high, other, six)
	check(ipam.FreeFilter{}, whole, "192.0.2.33", "2001:db8::1") // its Docker network is on that subnet
	check(ipam.FreeFilter{Pool: "low"}, low, "192.0.2.16")
	check(ipam.FreeFilter{Subnet: netip.MustParsePrefix("198.51.100.0/30")}, []string{other}, "198.51.100.1")
	check(ipam.FreeFilter{Limit: 2}, low[:2])
	check(ipam.FreeFilter{Limit: 2, After: netip.MustParseAddr("192.0.2.19")}, []string{low[2], high})
	check(ipam.FreeFilter{After: netip.MustParseAddr("192.0.2.18"), Limit: 1}, []string{"low 192.0.2.19"})
	all, err := r.S.Free(ctx, "net1", ipam.FreeFilter{Subnet: netip.MustParsePrefix("2001:db8::/64")})
	if err != nil || all[0].Addresses.Cmp(new(big.Int).SetUint64(1<<64-1)) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	r.Run("wait 61m")
	check(ipam.FreeFilter{Pool: "high"}, []string{"high 192.0.2.32-192.0.2.33"}, "192.0.2.33")
	r.Run("want 192.0.2.33 z")
	check(ipam.FreeFilter{Pool: "high"}, []string{"high 192.0.2.32"}, "192.0.2.32")

	r.Run(`
		network vips type=vip subnet=203.0.113.0/28,pool
		network full subnet=203.0.113.16/30,pool
		attach q net=full
		ask q x mac=7
		ask q y mac=8`)
	if got, next := free(t, r, "full", ipam.FreeFilter{}); got != nil || next != nil {
		t.Errorf("of a full network: %q, %q", got, next)
	}
	for network, f := range map[string]ipam.FreeFilter{"vips": {}, "nowhere": {}, "net1": {Pool: "middle"},
		"full": {Subnet: netip.MustParsePrefix("192.0.2.0/24")}} {
		for _, ask := range []func() ([]ipam.FreeRange, error){
			func() ([]ipam.FreeRange, error) { return r.S.Free(ctx, network, f) },
			func() ([]ipam.FreeRange, error) { return r.S.NextFree(ctx, network, f) },
		} {
			if all, err := ask(); !errors.Is(err, ipam.ErrInvalid) && !errors.Is(err, ipam.ErrNotFound) {
				t.Errorf("%s %+v: %v, %v", network, f, all, err)
			}
		}
	}
}

// TestOneMeaningOfFree: after any history, all answers agree on the state of each address: the list of free ones, the
// map, the layout, the counts of pools, subnets and metrics. The address that is named as next is given to a newcomer.
// Newcomers get exactly the addresses that are free. Only what a container requests by its own configuration differs:
// it is counted as free, but listed as free and given to nobody.
func TestOneMeaningOfFree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := ipamtest.NewAt(t, "")
		r.Run("network net1 quarantine=" + rapid.SampledFrom([]string{"0s", "10m"}).Draw(rt, "quarantine") +
			" subnet=192.0.2.0/27,gw=192.0.2.30" + rapid.SampledFrom([]string{"", " static=192.0.2.14-192.0.2.17"}).
			Draw(rt, "static"))
		for _, pool := range rapid.SampledFrom([][]string{{"192.0.2.0-192.0.2.31"},
			{"192.0.2.16-192.0.2.29 name=b", "192.0.2.2-192.0.2.9 name=a", "192.0.2.12-192.0.2.15"}}).Draw(rt, "pools") {
			r.Run("pool net1 " + pool)
		}
		r.Run("attach p net=net1")
		wanted := map[netip.Addr]bool{}
		for range rapid.IntRange(0, 30).Draw(rt, "steps") {
			aStep(rt, r, wanted)
		}

		states := walk(rt, r)
		agree(rt, r, states)
		var walked []string
		for _, a := range slices.SortedFunc(maps.Keys(states), netip.Addr.Compare) {
			if states[a] == ipam.AddressFree && !wanted[a] {
				walked = append(walked, a.String())
			}
		}
		ranges, next := free(t, r, "net1", ipam.FreeFilter{})
		var listed []string
		for _, text := range ranges {
			fields := strings.Fields(text)
			eachIn(ipamtest.MustRange(fields[len(fields)-1]), func(a netip.Addr) { listed = append(listed, a.String()) })
		}
		if !slices.Equal(listed, walked) {
			rt.Fatalf("%q\nare listed as free, and by a walk it is\n%q", ranges, walked)
		}
		var given []string
		for i := 0; ; i++ {
			got, err := r.Step(strings.Fields(fmt.Sprintf("ask p new%d mac=%d", i, 100+i)))
			if err != nil && !refused(err) {
				rt.Fatal(err)
			}
			if want := strings.Join(next, " "); got != want {
				rt.Fatalf("the next one is %q, and %q was given (%v)", want, got, err)
			}
			if err != nil {
				break
			}
			given = append(given, got)
			_, next = free(t, r, "net1", ipam.FreeFilter{})
		}
		slices.SortFunc(given, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
		if !slices.Equal(given, walked) {
			rt.Fatalf("%q were given, and %q were free", given, walked)
		}
	})
}

// aStep makes an edit or request that may change the state of an address of net1, or is refused.
func aStep(rt *rapid.T, r *ipamtest.Stage, wanted map[netip.Addr]bool) {
	addr := ipamtest.MustRange(fmt.Sprint("192.0.2.", rapid.IntRange(1, 29).Draw(rt, "host")))
	var step string
	switch rapid.IntRange(0, 10).Draw(rt, "what") {
	case 0, 1, 2:
		n := rapid.IntRange(1, 12).Draw(rt, "who")
		step = fmt.Sprintf("ask p c%d mac=%d", n, n)
	case 3, 4:
		step = fmt.Sprint("back p ", addr)
	case 5:
		step = fmt.Sprint("exclude net1 ", addr)
	case 6:
		step = fmt.Sprintf("reserve net1 o%d %s%s", rapid.IntRange(1, 9).Draw(rt, "owner"), addr,
			rapid.SampledFrom([]string{"", " for=5m"}).Draw(rt, "for"))
	case 7:
		step, wanted[addr.From()] = fmt.Sprintf("want %s w", addr), true
	case 8:
		step = "wait " + rapid.SampledFrom([]string{"1m", "6m", "11m"}).Draw(rt, "time")
	case 9:
		step = fmt.Sprintf("take net1 box%d 0:ip0=%s", rapid.IntRange(1, 9).Draw(rt, "box"), addr)
	case 10: // a host answered a probe
		_, err := r.S.Edit(ctx, ipam.EditOptions{},
			&ipam.AddExclusion{Network: "net1", Range: addr, Answered: ipamtest.MAC(99)})
		if err != nil && !refused(err) {
			rt.Fatal(err)
		}
		return
	}
	if _, err := r.Step(strings.Fields(step)); err != nil && !refused(err) {
		rt.Fatalf("%s: %v", step, err)
	}
}

func eachIn(r ipam.Range, fn func(netip.Addr)) {
	for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
		fn(a)
	}
}

func refused(err error) bool {
	refusal := new(ipam.Refusal)
	return errors.As(err, &refusal)
}

// walk returns the state of each address of net1's subnet, by the lists.
func walk(t *rapid.T, r *ipamtest.Stage) map[netip.Addr]ipam.AddressState {
	all := map[netip.Addr]ipam.AddressState{}
	info := r.Show("net1")
	sub := info.Subnets[0]
	put := func(from, to netip.Addr, state ipam.AddressState) {
		eachIn(ipam.Range{IPRange: netipx.IPRangeFrom(from, to)}, func(a netip.Addr) { all[a] = state })
	}
	put(sub.CIDR.Addr(), ipam.LastAddr(sub.CIDR), ipam.AddressOutside)
	for _, p := range sub.Pools {
		put(p.Start, p.End, ipam.AddressFree)
	}
	for _, x := range sub.Exclusions {
		put(x.Start, x.End, ipam.AddressExcluded)
	}
	for _, band := range info.Static {
		put(band.From(), band.To(), ipam.AddressExcluded)
	}
	for _, none := range []netip.Addr{sub.CIDR.Addr(), ipam.LastAddr(sub.CIDR)} {
		put(none, none, ipam.AddressExcluded)
	}
	for _, one := range r.Reservations(ipam.AddressFilter{}) {
		all[one.Address] = ipam.AddressReserved
	}
	for l, err := range r.S.Leases(ctx, ipam.LeaseFilter{Remembered: true}) {
		must(t, err)
		switch {
		case l.State == "held":
			all[l.Address] = ipam.AddressLeased
		case l.QuarantineUntil.After(r.Clock.Now()):
			all[l.Address] = ipam.AddressQuarantined
		}
	}
	return all
}

// agree compares the states of net1's addresses with its map, its layout and all counts.
func agree(t *rapid.T, r *ipamtest.Stage, states map[netip.Addr]ipam.AddressState) {
	counted := ipamtest.Counted
	sub := r.Show("net1").Subnets[0]
	layout, err := r.S.Layout(ctx, sub.ID, ipam.LayoutFilter{})
	must(t, err)
	shown := map[netip.Addr]ipam.AddressState{}
	for _, row := range layout.Rows {
		eachIn(row.Range, func(a netip.Addr) { shown[a] = row.State })
	}
	if !maps.Equal(shown, states) {
		t.Fatalf("the layout has\n%v, and the lists\n%v", shown, states)
	}
	metrics, err := r.S.Use(ctx)
	must(t, err)
	left := maps.Clone(states)
	for i, p := range sub.Pools {
		n := map[ipam.AddressState]int{}
		eachIn(ipam.Range{IPRange: netipx.IPRangeFrom(p.Start, p.End)}, func(a netip.Addr) {
			if free := p.Map[a.As4()[3]-p.Start.As4()[3]] == '.'; free != (states[a] == ipam.AddressFree) {
				t.Fatalf("%s is %s, and the map of its pool is %s", a, states[a], p.Map)
			}
			n[states[a]]++
			delete(left, a)
		})
		if counted(&metrics[i].StateCounts) != fmt.Sprint(n) || p.Free.String() != fmt.Sprint(n[ipam.AddressFree]) {
			t.Fatalf("the pool %s has %v: metrics %s, free %s", p.Start, n, counted(&metrics[i].StateCounts), p.Free)
		}
	}
	rest, all := map[ipam.AddressState]int{}, map[ipam.AddressState]int{}
	for _, state := range left {
		rest[state]++
	}
	for _, state := range states {
		all[state]++
	}
	if outside := metrics[len(sub.Pools):]; len(rest) > 0 && counted(&outside[0].StateCounts) != fmt.Sprint(rest) {
		t.Fatalf("outside the pools there are %v, and metrics have %s", rest, counted(&outside[0].StateCounts))
	}
	if counted(&layout.Sum) != fmt.Sprint(all) || counted(&sub.Use.StateCounts) != fmt.Sprint(all) {
		t.Fatalf("there are %v: layout %s, subnet %s", all, counted(&layout.Sum), counted(&sub.Use.StateCounts))
	}
}
