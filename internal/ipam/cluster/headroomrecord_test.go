package cluster

import (
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/choose"
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
		holder := &choose.HeadroomHolder{Kind: ipam.Automatic, MAC: req.MAC, Since: taken.Add(after * time.Second)}
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
