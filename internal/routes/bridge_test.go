package routes

import (
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestOnLAN: a bridge that overlaps a LAN of the host is found, whichever of the two is larger. A bridge that has
// the LAN's card as a port is not found. Neither are networks without a bridge, VPNs, and other hosts' networks.
func TestOnLAN(t *testing.T) {
	lan := func(prefix, link, master string) Route {
		r := route(prefix, link, "device")
		r.Connected, r.Master = true, master
		return r
	}
	bridge := route("10.30.0.0/24", "br-0123456789ab", "bridge", "10.30.0.1")
	named := route("10.30.0.0/24", "brlan", "bridge", "10.30.0.1")
	bridge.Connected, named.Connected = true, true
	elsewhere, swarm := attached(), attached()
	elsewhere.Host, swarm.Swarm = "h2", true
	for _, row := range []struct {
		what   string
		at     ipam.AttachmentInfo
		routes []Route
		found  bool
	}{
		{"the LAN", attached(), []Route{lan("10.30.0.0/24", "eth0", ""), bridge}, true},
		{"a part of the LAN", attached(), []Route{bridge, lan("10.30.0.0/16", "eth0", "")}, true},
		{"over the LAN", attached(), []Route{bridge, lan("10.30.0.128/25", "eth0", "")}, true},
		{"the LAN's bridge", attached(), []Route{named, lan("10.30.0.0/24", "brlan", "")}, false},
		{"its card has an address still", attached(), []Route{named, lan("10.30.0.0/24", "eth0", "brlan")}, false},
		{"beside", attached(), []Route{bridge, lan("10.31.0.0/24", "eth0", "")}, false},
		{"macvlan", attached(), []Route{lan("10.30.0.0/24", "eth0", "")}, false},
		{"no LAN", attached(), []Route{bridge, route("10.30.0.0/24", "tun0", "tun")}, false},
		{"another host's", elsewhere, []Route{bridge, lan("10.30.0.0/24", "eth0", "")}, false},
		{"a swarm's", swarm, []Route{bridge, lan("10.30.0.0/24", "eth0", "")}, false},
	} {
		found := OnLAN("h1", []ipam.AttachmentInfo{row.at}, row.routes, gateways, time.Unix(1, 0))
		if len(found) > 0 != row.found {
			t.Errorf("%s: %+v", row.what, found)
			continue
		}
		if row.found && (found[0].Kind != ipam.BridgeOnLAN || found[0].Subnet != row.at.CIDR ||
			!strings.Contains(found[0].Detail, "of eth0") || !strings.Contains(found[0].Detail, bridge.Link)) {
			t.Errorf("%s: %+v", row.what, found[0])
		}
	}
}
