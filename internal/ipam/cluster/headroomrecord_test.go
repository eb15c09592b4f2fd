package cluster

import (
	"net/netip"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
)

// Of several addresses in doubt that one MAC was given, the latest is the one that its endpoint has lost; of two that
// are as late, the lower one.
func TestLostIsTheLatest(t *testing.T) {
	taken := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	req := &ipam.AddressRequest{MAC: ipam.MAC{2, 0, 0, 0, 0, 1}}
	hr := &headroom{headroomFacts: headroomFacts{CIDR: netip.MustParsePrefix("10.0.0.0/24")},
		addrs: map[netip.Addr]headroomAddr{}}
	addr := netip.MustParseAddr("10.0.0.9")
	for _, after := range []time.Duration{1, 4, 9, 2, 9, 3} {
		holder := &allocator.HeadroomHolder{Kind: ipam.Automatic, MAC: req.MAC, Since: taken.Add(after * time.Second)}
		hr.addrs[addr] = headroomAddr{Lease: 1, Holder: holder}
		addr = addr.Next()
	}
	for range 20 {
		got, err := hr.lost(req, taken.Add(time.Hour))
		if err != nil || got == nil || got.Address != netip.MustParseAddr("10.0.0.11") {
			t.Fatalf("it has lost %+v, %v", got, err)
		}
	}
	got, err := hr.lost(req, taken.Add(5*time.Second))
	if err != nil || got == nil || got.Address != netip.MustParseAddr("10.0.0.10") {
		t.Errorf("of those from before the start it is %+v, %v", got, err)
	}
}

// A container that was renamed has again what it had of the headroom, and another one of its former name what is left.
func TestHeadroomOfRenamed(t *testing.T) {
	taken := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hr := &headroom{headroomFacts: headroomFacts{CIDR: netip.MustParsePrefix("10.0.0.0/24")},
		addrs: map[netip.Addr]headroomAddr{}}
	for addr, id := range map[string]string{"10.0.0.2": "x", "10.0.0.3": "y"} {
		holder := &allocator.HeadroomHolder{Kind: ipam.Automatic, Name: "was-" + id, Container: id, Since: taken}
		hr.addrs[netip.MustParseAddr(addr)] = headroomAddr{Lease: 1, Holder: holder, Released: taken}
	}
	called := map[string]string{"was-y": "x", "was-x": "y", "other": "z"}
	known := &ipam.Known{Container: func(name string) (string, bool) { return called[name], true }}
	for name, want := range map[string]string{"was-y": "10.0.0.2", "was-x": "10.0.0.3", "other": "10.0.0.2"} {
		got, ok, err := chooseHeadroom(hr, &ipam.AddressRequest{Name: name}, taken.Add(time.Hour),
			func(netip.Addr, uint64) bool { return true }, known)
		if err != nil || !ok || got != netip.MustParseAddr(want) {
			t.Errorf("%s is given %s, %t, %v, and not %s", name, got, ok, err, want)
		}
	}
}
