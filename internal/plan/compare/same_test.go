package compare_test

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan/compare"
)

// An export is the plan: an apply or an import accepts it, and changes nothing.
func TestExportIsThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := ipamtest.NewScribe(t, ipamtest.DrawnDir(t), "one.db")
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			w.Write(rapid.IntRange(1, 12).Draw(t, "edits"))
			for range rapid.IntRange(0, 4).Draw(t, "requests") {
				w.Request()
			}
		}
		for _, network := range []string{"from", "to"} { // on the first one only replaced addresses remain
			_, err := w.S.Edit(ctx, ipam.EditOptions{},
				&ipam.CreateNetwork{Name: network, Space: network,
					Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.0.0.0/28"), Pool: true}}},
				&ipam.AddReservation{Network: network, Owner: "moved", Replace: true, Only: []string{}})
			if err != nil {
				t.Fatal(err)
			}
		}
		exported := w.Export()
		for _, opt := range []compare.Options{{}, {Prune: true}, {Adds: true}} {
			opt.Now = w.Clock.Now()
			document, now := w.Read(exported), w.Read(exported)
			d, err := compare.Plans(&document, &now, opt)
			if err != nil || len(d.Changes) > 0 || len(d.Parts) > 0 {
				t.Fatalf("%+v: %v, %+v\n%s", opt, err, d, exported)
			}
			if !lonely(&now) {
				t.Fatalf("no owner has only replaced addresses on a network\n%s", exported)
			}
		}
	})
}

// lonely reports whether an owner has only replaced reservations on some network.
func lonely(p *ipam.Plan) bool {
	for _, n := range p.Networks {
		wanted := map[string]bool{}
		for _, r := range n.Reservations {
			wanted[r.Owner] = wanted[r.Owner] || !r.Replaced
		}
		for _, keeps := range wanted {
			if !keeps {
				return true
			}
		}
	}
	return false
}

// anyPlan draws a plan that may contradict itself: subnets that overlap, addresses of two owners, full slots.
func anyPlan(t *rapid.T) *ipam.Plan {
	addr := func() netip.Addr {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 6).Draw(t, "address"))})
	}
	owner := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner") }
	small := func(label string) int { return rapid.IntRange(0, 2).Draw(t, label) }
	p := &ipam.Plan{Elastic: &ipam.PlannedElastic{}}
	for range 1 + small("networks") {
		n := ipam.PlannedNetwork{Name: rapid.SampledFrom([]string{"", "net1", "net2"}).Draw(t, "name")}
		if n.Name != "" {
			n.Tags = map[string]string{owner(): "x", owner(): "y"}
			for range small("subnets") {
				cidr := netip.PrefixFrom(addr(), 24+2*small("bits")).Masked()
				n.Subnets = append(n.Subnets, ipam.PlannedSubnet{CIDR: cidr, Name: owner(), Gateway: addr()})
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "reservations") {
			r := ipam.PlannedReservation{Owner: owner(), Address: addr(), Unplaced: rapid.Bool().Draw(t, "unplaced"),
				Slot: small("slot"), Automatic: rapid.Bool().Draw(t, "automatic"),
				Terms: ipam.Terms{Replaced: rapid.Bool().Draw(t, "replaced")}}
			if rapid.Bool().Draw(t, "ends") {
				r.Until = time.Date(2099, 1, 1+small("day"), 0, 0, 0, 0, time.UTC)
			}
			n.Reservations = append(n.Reservations, r)
			n.Addresses = append(n.Addresses, ipam.PlannedAddress{Owner: owner(), Address: addr(), Slot: small("slot")})
		}
		p.Networks = append(p.Networks, n)
	}
	for range small("elastic addresses") {
		p.Elastic.Addresses = append(p.Elastic.Addresses, ipam.PlannedElasticAddress{Address: addr(),
			Account: owner(), Instance: owner()})
	}
	return p
}

// Comparing the same document with the same plan always has the same result, even if they contradict themselves.
func TestCompareAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document, now := anyPlan(t), anyPlan(t)
		opt := compare.Options{Prune: rapid.Bool().Draw(t, "prune"), Adds: rapid.Bool().Draw(t, "adds")}
		first := ""
		for range 8 {
			d, err := compare.Plans(document, now, opt)
			text, bad := json.Marshal(struct {
				Difference *compare.Difference
				Err        error
			}{d, err})
			if first == "" {
				first = string(text)
			}
			if bad != nil || string(text) != first {
				t.Fatalf("%v: first\n%s\nthen\n%s", bad, first, text)
			}
		}
	})
}
