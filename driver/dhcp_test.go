package driver

import (
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestLN15Options tests that options that contradict a LAN's DHCP server are refused with what to do, and that a
// missing edge is reported at once.
func TestLN15Options(t *testing.T) {
	b := newBench(t)
	for c := range ipamtest.Rows(3, `
		dhcp=eth0 | | no edge is connected to this daemon, and only an edge can use LANs; start it on this host with
		dhcp=eth0 | 10.0.0.0/24 | or set the gateway with --gateway
		dhcp= | | --ipam-opt dhcp=: name this host's interface
		dhcp=a b | | is not an interface
		dhcp=eth0; dhcp_id=name | | write owner or mac
		dhcp=eth0; dhcp_id=mac | | --mac-socket
		dhcp_id=mac | | give both
		dhcp=eth0; pool=p | | leave out the pool p
		dhcp=eth0; size=24 | | leave out the size
	`) {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: c[1], Options: optsOf(c[0])})
		if !strings.Contains(refused, c[2]) {
			t.Errorf("%v: %q", optsOf(c[0]), refused)
		}
	}
}
