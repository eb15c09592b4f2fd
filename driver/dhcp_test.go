package driver

import (
	"strings"
	"testing"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestLN15Options: what makes no sense beside a LAN's DHCP server is refused with what to do, and where no edge is
// there to ask it that is said at once.
func TestLN15Options(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		options opts
		cidr    string
		says    string
	}{
		{opts{"dhcp": "eth0"}, "", "no edge is connected to this daemon, and it alone speaks on LANs; start it on this " +
			"host with `berth edge`"},
		{opts{"dhcp": "eth0"}, "10.0.0.0/24", "or say the gateway with --gateway"},
		{opts{"dhcp": ""}, "", "--ipam-opt dhcp=: say by which interface"},
		{opts{"dhcp": "a b"}, "", "is no interface"},
		{opts{"dhcp": "eth0", "dhcp_id": "name"}, "", "write owner or mac"},
		{opts{"dhcp": "eth0", "dhcp_id": "mac"}, "", "--mac-socket"},
		{opts{"dhcp_id": "mac"}, "", "give both"},
		{opts{"dhcp": "eth0", "pool": "p"}, "", "leave out the pool p"},
		{opts{"dhcp": "eth0", "size": "24"}, "", "leave out the size"},
	} {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: c.cidr, Options: c.options})
		if !strings.Contains(refused, c.says) {
			t.Errorf("%v: %q", c.options, refused)
		}
	}
}
