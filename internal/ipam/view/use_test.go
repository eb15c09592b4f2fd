package view_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// How the addresses of pools are used is what a walk over each address finds in the lists, whatever was planned, taken
// and given back; each address is counted once.
func TestUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := ipamtest.NewScribe(t, ipamtest.DrawnDir(t), "use.db")
		w.Write(rapid.IntRange(0, 30).Draw(t, "edits"))
		used(t, w)
		for range rapid.IntRange(0, 20).Draw(t, "requests") {
			w.Request()
			w.Write(rapid.IntRange(0, 3).Draw(t, "further edits"))
		}
		used(t, w)
	})
}

// used holds what is counted against what the lists say.
func used(t *rapid.T, w *ipamtest.Scribe) {
	uses, err := w.S.Use(ctx)
	if err != nil {
		t.Fatal(err)
	}
	networks, err := w.S.Networks(ctx, ipam.NetworkFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range networks {
		for i := range n.Subnets {
			for _, p := range n.Subnets[i].Pools {
				want = append(want, walked(t, w, &n, &n.Subnets[i], p))
			}
		}
	}
	var got []string
	for _, u := range uses {
		got = append(got, fmt.Sprintf("%s %s %s %s: %d %d %d %s %s", u.Space, u.Network, u.Subnet, u.Pool, u.Leased,
			u.Quarantined, u.Reserved, u.Excluded, u.Free))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("counted:\n%v\nby the lists:\n%v", got, want)
	}
}

// walked is a pool's use by its addresses, one after the other.
func walked(t *rapid.T, w *ipamtest.Scribe, n *ipam.NetworkInfo, sub *ipam.SubnetPlan, p ipam.PoolPlan) string {
	f := ipam.LeaseFilter{Space: n.Space, Subnet: sub.CIDR, Remembered: true}
	of := map[netip.Addr]*ipam.LeaseInfo{}
	for l, err := range w.S.Leases(ctx, f) {
		if err != nil {
			t.Fatal(err)
		}
		of[l.Address] = &l
	}
	reserved := map[netip.Addr]bool{}
	for r, err := range w.S.Reservations(ctx, ipam.AddressFilter{Network: n.Name}) {
		if err != nil {
			t.Fatal(err)
		}
		reserved[r.Address] = true
	}
	closed := slices.Clone(n.Static)
	for _, x := range sub.Exclusions {
		closed = append(closed, ipam.Range{IPRange: netipx.IPRangeFrom(x.Start, x.End)})
	}
	var leased, quarantined, idle, excluded, free int
	for a := p.Start; a.Compare(p.End) <= 0; a = a.Next() {
		l := of[a]
		switch {
		case l != nil && l.State == "held":
			leased++
		case l != nil && !reserved[a] && l.Until.After(w.Clock.Time):
			quarantined++
		case reserved[a]:
			idle++
		case !alloc.Usable(sub.CIDR).Contains(a),
			slices.ContainsFunc(closed, func(r ipam.Range) bool { return r.Contains(a) }):
			excluded++
		default:
			free++
		}
	}
	name := p.Name
	if name == "" {
		name = alloc.FormatRange(netipx.IPRangeFrom(p.Start, p.End))
	}
	return fmt.Sprintf("%s %s %s %s: %d %d %d %d %d", n.Space, n.Name, sub.CIDR, name, leased, quarantined, idle, excluded,
		free)
}

// Use of a thousand pools is counted in a few milliseconds, so that a scrape may ask each second.
func BenchmarkUse(b *testing.B) {
	s := ipamtest.NewService(b, time.Now)
	for i := range 1000 {
		cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		pool := ipamtest.MustPool(b, s, ipam.PoolRequest{CIDR: cidr})
		for n := range 10 {
			ipamtest.MustTake(b, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(n + 1)})
		}
	}
	for b.Loop() {
		if all, err := s.Use(ctx); err != nil || len(all) != 1000 {
			b.Fatal(len(all), err)
		}
	}
}
