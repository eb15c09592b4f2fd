//go:build edge

package edge_test

import (
	"net/netip"
	"strings"
	"testing"

	"berth/internal/edge"
	"berth/internal/edge/nft"
)

// TestAnotherMAC: a guest has another MAC at its next start, as with Docker Engine 28 and newer. The host forgets the
// old one, of IPv4 and IPv6, and of no other guest. CS-8.
func TestAnotherMAC(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		s := mapped(edge.Keep)
		set(t, p, s)
		expect(t, peer, "tcp", elastic4, guest, peer4)
		const old = "02:00:00:00:00:99"
		for _, a := range []netip.Addr{guest4, guest6, next4} {
			run(t, "ip neigh replace "+a.String()+" lladdr "+old+" dev br0 nud reachable")
		}
		for i := range s.Mappings {
			s.Mappings[i].Start = 2
		}
		set(t, p, s)
		for _, network := range networks {
			expect(t, peer, network, elastic4, guest, peer4)
			expect(t, peer, network, elastic6, guest, peer6)
		}
		if entry := run(t, "ip neigh show "+next4.String()+" dev br0"); !strings.Contains(entry, old) {
			t.Errorf("the entry of another guest is %q", entry)
		}
	})
}
