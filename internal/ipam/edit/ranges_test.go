package edit

import (
	"net/netip"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"berth/internal/ipam"
)

// misplacedIn lists nothing if and only if all ranges lie inside the subnet and none overlap. Each listed range is
// outside, or overlaps the other one and does not begin before it.
func TestMisplacedIn(t *testing.T) {
	cidr := netip.MustParsePrefix("10.0.0.0/27")
	rapid.Check(t, func(t *rapid.T) {
		all := make([]ipam.Range, rapid.IntRange(0, 6).Draw(t, "ranges"))
		for i := range all {
			from := rapid.IntRange(0, 33).Draw(t, "from")
			to := min(from+rapid.IntRange(0, 8).Draw(t, "more"), 35)
			all[i] = ipam.Range{IPRange: netipx.IPRangeFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(from)}),
				netip.AddrFrom4([4]byte{10, 0, 0, byte(to)}))}
		}
		wrong := map[int]int{} // by range: the one that it overlaps, or -1: outside
		for _, m := range misplacedIn(cidr, all) {
			if _, twice := wrong[m.At]; twice {
				t.Fatalf("%v: %s is told twice", all, all[m.At])
			}
			wrong[m.At] = m.Over
			if m.Over >= 0 && (!all[m.At].Overlaps(all[m.Over].IPRange) || all[m.At].From().Less(all[m.Over].From())) {
				t.Fatalf("%v: %s does not begin in %s", all, all[m.At], all[m.Over])
			}
		}
		for i, r := range all {
			over, told := wrong[i]
			if outside := !ipam.Covers(cidr, r.IPRange); outside != (told && over < 0) {
				t.Fatalf("%v: %s is outside: %v", all, r, outside)
			}
			for j := range i {
				_, other := wrong[j]
				if r.Overlaps(all[j].IPRange) && !told && !other {
					t.Fatalf("%v: %s and %s overlap, and neither is told", all, all[j], r)
				}
			}
		}
	})
}
