package cluster

import (
	"net/netip"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
)

var taken = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// spared returns a headroom from which addresses were given out.
func spared(all map[string]headroomAddr) *headroom {
	hr := &headroom{headroomFacts: headroomFacts{CIDR: netip.MustParsePrefix("10.0.0.0/24")},
		addrs: map[netip.Addr]headroomAddr{}}
	for addr, one := range all {
		one.Lease, one.Holder.Kind = 1, ipam.Automatic
		hr.addrs[netip.MustParseAddr("10.0.0."+addr)] = one
	}
	return hr
}

// If one MAC has several addresses in doubt, its endpoint has lost the latest; of two equally late ones, the
// lower.
func TestLostIsTheLatest(t *testing.T) {
	req, all := &ipam.AddressRequest{MAC: testMAC(1)}, map[string]headroomAddr{}
	for addr, after := range map[string]time.Duration{"9": 1, "10": 4, "11": 9, "12": 2, "13": 9, "14": 3} {
		all[addr] = headroomAddr{Holder: &allocator.HeadroomHolder{MAC: req.MAC, Since: taken.Add(after * time.Second)}}
	}
	for range 20 {
		for want, begun := range map[string]time.Duration{"10.0.0.11": time.Hour, "10.0.0.10": 5 * time.Second} {
			got, err := spared(all).lost(req, taken.Add(begun))
			if err != nil || got == nil || got.Address != netip.MustParseAddr(want) {
				t.Fatalf("before %s it has lost %+v, %v", begun, got, err)
			}
		}
	}
}

// A renamed container gets its old headroom address again, and a new container with its former name gets what is
// left.
func TestHeadroomOfRenamed(t *testing.T) {
	had := func(id string) headroomAddr {
		return headroomAddr{Released: taken,
			Holder: &allocator.HeadroomHolder{Name: "was-" + id, Container: id, Since: taken}}
	}
	called := map[string]string{"was-y": "x", "was-x": "y", "other": "z"}
	known := &ipam.Known{Container: func(name string) (string, bool) { return called[name], true }}
	for name, want := range map[string]string{"was-y": "10.0.0.2", "was-x": "10.0.0.3", "other": "10.0.0.2"} {
		got, ok, err := chooseHeadroom(spared(map[string]headroomAddr{"2": had("x"), "3": had("y")}),
			&ipam.AddressRequest{Name: name}, taken.Add(time.Hour),
			func(netip.Addr, uint64) bool { return true }, known)
		if err != nil || !ok || got != netip.MustParseAddr(want) {
			t.Errorf("%s is given %s, %t, %v, and not %s", name, got, ok, err, want)
		}
	}
}
