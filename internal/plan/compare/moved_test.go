package compare_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
	"berth/internal/plan/compare"
)

// samplePlan draws a plan of one network that can always be made: owners with up to three addresses, devices,
// pools, exclusions and notes. A second draw has the same owners and slots, and everything else is new.
func samplePlan(t *rapid.T, owners []int, later time.Time) string {
	hosts := make([]int, 60)
	for i := range hosts {
		hosts[i] = 10 + i
	}
	hosts = rapid.Permutation(hosts).Draw(t, "addresses")
	addr := func() netip.Addr {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(hosts[0])})
		hosts = hosts[1:]
		return a
	}
	note := func() string { return rapid.SampledFrom([]string{"a", "b", "behind the proxy"}).Draw(t, "note") }
	span := func(from, to int) ipam.Range {
		last := rapid.IntRange(from, to).Draw(t, "last")
		return ipam.Range{IPRange: netipx.IPRangeFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(from)}),
			netip.AddrFrom4([4]byte{192, 0, 2, byte(last)}))}
	}
	n := ipam.PlannedNetwork{Name: "front", Space: ipam.LocalSpace, Tags: map[string]string{"site": note()}}
	quarantine := ipam.Duration(rapid.IntRange(1, 9).Draw(t, "quarantine")) * ipam.Duration(time.Minute)
	n.Quarantine = &quarantine
	sub := ipam.PlannedSubnet{CIDR: netip.MustParsePrefix("192.0.2.0/24"), Name: "lan",
		Gateway:     netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 5).Draw(t, "gateway"))}),
		GatewayNote: note(), Note: note()}
	sub.Pools = []ipam.PlannedPool{{Range: span(80, 120), Name: "web"}, {Range: span(130, 150)}}
	sub.Exclusions = []ipam.PlannedExclusion{{Range: span(140, 160), Note: note()}}
	sub.Static = []ipam.PlannedBand{{Range: span(200, 220)}}
	n.Subnets = []ipam.PlannedSubnet{sub}
	for i, slots := range owners {
		owner := fmt.Sprintf("o%d", i)
		if i%3 == 2 {
			for slot := range slots {
				n.Addresses = append(n.Addresses, ipam.PlannedAddress{Owner: owner, Address: addr(), Slot: slot,
					Note: note()})
			}
			continue
		}
		until := later.Add(time.Duration(rapid.IntRange(1, 99).Draw(t, "until")) * time.Second)
		for slot := range slots {
			r := ipam.PlannedReservation{Owner: owner, Address: addr(), Slot: slot, Automatic: i%2 == 0}
			r.Note, r.Until = note(), until
			n.Reservations = append(n.Reservations, r)
		}
	}
	byAddress(&n)
	var b bytes.Buffer
	w := plan.NewYAML(&b)
	_ = w.Write(&n) // into memory
	_ = w.Close()
	return b.String()
}

func byAddress(n *ipam.PlannedNetwork) {
	slices.SortFunc(n.Reservations, func(a, b ipam.PlannedReservation) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(n.Addresses, func(a, b ipam.PlannedAddress) int { return a.Address.Compare(b.Address) })
}

// Any move within an exported document, even a swap of owners, takes an apply one transaction. A second apply
// changes nothing. No --prune is needed.
func TestAnyMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := ipamtest.NewScribe(t, ipamtest.DrawnDir(t), "one.db")
		owners := rapid.SliceOfN(rapid.IntRange(1, 3), 0, 8).Draw(t, "owners")
		later := w.Clock.Now().Add(time.Hour)
		for range 3 {
			document := samplePlan(t, owners, later)
			before := w.Export()
			if made, err := applied(t, w, document, compare.Options{}); err != nil || made > 1 {
				t.Fatalf("%d transactions, %v\n%s\nover\n%s", made, err, document, before)
			}
			if want, got := sorted(w, document), sorted(w, w.Export()); want != got {
				t.Fatalf("%s\nover\n%s", gocmp.Diff(want, got), before)
			}
			if made, err := applied(t, w, document, compare.Options{}); made != 0 || err != nil {
				t.Fatalf("again: %d, %v", made, err)
			}
			if problems, err := w.S.Check(ctx); err != nil || len(problems) > 0 {
				t.Fatalf("berth state check says: %q, %v", problems, err)
			}
		}
	})
}
