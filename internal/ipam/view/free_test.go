package view_test

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// free is what is listed as free, and what the next one is.
func free(t testing.TB, r *ipamtest.Room, network string, f ipam.FreeFilter) (ranges []string, next []string) {
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

// TestFree: ranges and the next one, of several subnets, pools and families, less exclusions, bands, reservations and
// what was given back a moment ago, in pages and by subnet and pool.
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

// TestFreeAgainstWalk: after any history the ranges are those of a walk that looks at one address after the other, the
// next one is what one who is new is given, and all of them, and no other, are given to as many who are new.
func TestFreeAgainstWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := ipamtest.NewAt(t, "")
		r.Run("network net1 quarantine=" + rapid.SampledFrom([]string{"0s", "10m"}).Draw(rt, "quarantine") +
			" subnet=192.0.2.0/27,gw=192.0.2.30")
		for _, pool := range rapid.SampledFrom([][]string{{"192.0.2.0-192.0.2.31"},
			{"192.0.2.16-192.0.2.29 name=b", "192.0.2.2-192.0.2.9 name=a", "192.0.2.10-192.0.2.15"}}).Draw(rt, "pools") {
			r.Run("pool net1 " + pool)
		}
		r.Run("attach p net=net1")
		wanted := map[string]bool{}
		addr := func() string { return fmt.Sprint("192.0.2.", rapid.IntRange(1, 29).Draw(rt, "host")) }
		for range rapid.IntRange(0, 30).Draw(rt, "steps") {
			var step string
			switch rapid.IntRange(0, 8).Draw(rt, "what") {
			case 0, 1, 2:
				n := rapid.IntRange(1, 12).Draw(rt, "who")
				step = fmt.Sprintf("ask p c%d mac=%d", n, n)
			case 3, 4:
				step = "back p " + addr()
			case 5:
				step = "exclude net1 " + addr()
			case 6:
				step = "reserve net1 o" + fmt.Sprint(rapid.IntRange(1, 9).Draw(rt, "owner")) + " " + addr() +
					rapid.SampledFrom([]string{"", " for=5m"}).Draw(rt, "for")
			case 7:
				at := addr()
				step, wanted[at] = "want "+at+" w", true
			case 8:
				step = "wait " + rapid.SampledFrom([]string{"1m", "6m", "11m"}).Draw(rt, "time")
			}
			if _, err := r.Step(strings.Fields(step)); err != nil && !refused(err) {
				rt.Fatalf("%s: %v", step, err)
			}
		}

		walked := walk(rt, r, wanted)
		ranges, next := free(t, r, "net1", ipam.FreeFilter{})
		var listed []string
		for _, text := range ranges {
			fields := strings.Fields(text)
			from, to, two := strings.Cut(fields[len(fields)-1], "-")
			first, last := netip.MustParseAddr(from), netip.MustParseAddr(from)
			if two {
				last = netip.MustParseAddr(to)
			}
			for a := first; !last.Less(a); a = a.Next() {
				listed = append(listed, a.String())
			}
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

func refused(err error) bool {
	refusal := new(ipam.Refusal)
	return errors.As(err, &refusal)
}

// walk looks at one address of net1 after the other, by what is listed of it.
func walk(t *rapid.T, r *ipamtest.Room, wanted map[string]bool) (all []string) {
	taken := map[netip.Addr]bool{}
	for l, err := range r.S.Leases(ctx, ipam.LeaseFilter{Remembered: true}) {
		must(t, err)
		taken[l.Address] = l.State == "held" || l.QuarantineUntil.After(r.Clock.Now())
	}
	for _, one := range r.Reservations(ipam.AddressFilter{}) {
		taken[one.Address] = true
	}
	info := r.Show("net1")
	for a := netip.MustParseAddr("192.0.2.1"); a.String() != "192.0.2.31"; a = a.Next() {
		open := false
		for _, p := range info.Subnets[0].Pools {
			open = open || !a.Less(p.Start) && !p.End.Less(a)
		}
		for _, x := range info.Subnets[0].Exclusions {
			open = open && (a.Less(x.Start) || x.End.Less(a))
		}
		if open && !taken[a] && !wanted[a.String()] {
			all = append(all, a.String())
		}
	}
	return all
}
