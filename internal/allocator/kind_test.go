package allocator

import (
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
)

// One function decides the kind of a lease, whether the store is reachable or not.
func TestKindOf(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	addr := netip.MustParseAddr("10.0.0.5")
	network, swarm := &ipam.Attachment{Created: made}, &ipam.Attachment{Created: made, Swarm: true}
	for name, tc := range map[string]struct {
		req   ipam.AddressRequest
		at    *ipam.Attachment
		after time.Duration
		want  ipam.Kind
	}{
		"any":                  {ipam.AddressRequest{}, network, 0, ipam.Automatic},
		"right after the pool": {ipam.AddressRequest{Preferred: addr}, network, time.Second, ipam.Auxiliary},
		"later":                {ipam.AddressRequest{Preferred: addr}, network, 2 * time.Second, ipam.Static},
		"with a name":          {ipam.AddressRequest{Preferred: addr, Name: "web"}, network, 0, ipam.Static},
		"with a MAC": {ipam.AddressRequest{Preferred: addr, MAC: ipam.MAC{2}}, network, 0,
			ipam.Static},
		"of an engine that sends names": {ipam.AddressRequest{Preferred: addr, Telling: true}, network, time.Hour,
			ipam.Auxiliary},
		"of a swarm":        {ipam.AddressRequest{Preferred: addr, Telling: true}, swarm, 0, ipam.Static},
		"of who knows":      {ipam.AddressRequest{Preferred: addr}, nil, 0, ipam.Static},
		"any, of who knows": {ipam.AddressRequest{}, nil, 0, ipam.Automatic},
	} {
		if got := KindOf(tc.req, tc.at, made.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
