package routes

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

func route(prefix, link, kind string, addrs ...string) Route {
	r := Route{HostRoute: ipam.HostRoute{Prefix: netip.MustParsePrefix(prefix), Link: link}, Kind: kind}
	for _, a := range addrs {
		r.Addrs = append(r.Addrs, netip.MustParseAddr(a))
	}
	return r
}

// attached is a Docker network of host h1 on 10.30.0.0/24, with the routes that existed before it.
func attached(beneath ...Route) ipam.AttachmentInfo {
	at := ipam.AttachmentInfo{Space: "local", CIDR: netip.MustParsePrefix("10.30.0.0/24"), Network: "shop", Host: "h1",
		Gateway: netip.MustParseAddr("10.30.0.1")}
	for _, r := range beneath {
		at.Beneath = append(at.Beneath, r.HostRoute)
	}
	return at
}

// gateways reports whether the records have the address as a gateway. An attachment may have its own gateway.
func gateways(space string, addr netip.Addr) bool {
	return space == "local" && addr == netip.MustParseAddr("10.30.0.11")
}

// TestShadowed: a route that came later is found, whether it is longer or shorter than the subnet. Routes to the
// containers, and those that existed before on the same link, are not found.
func TestShadowed(t *testing.T) {
	lan := route("10.30.0.0/24", "eth0", "device")
	full := attached()
	for len(ipam.RoutesOver(full.CIDR, full.Beneath)) < 64 {
		r := route("10.30.0.0/30", strings.Repeat("x", len(full.Beneath)+1), "tun")
		full.Beneath = append(full.Beneath, r.HostRoute)
	}
	elsewhere, swarm := attached(), attached()
	elsewhere.Host, swarm.Swarm = "h2", true
	for _, row := range []struct {
		what string
		at   []ipam.AttachmentInfo
		r    Route
		want string // part of the detail; empty: nothing is found
	}{
		{"the same", []ipam.AttachmentInfo{attached()}, route("10.30.0.0/24", "tun0", "tun"),
			"packets of this host to 10.30.0.0/24 take that route"},
		{"longer", []ipam.AttachmentInfo{attached()}, route("10.30.0.7/32", "wg0", "wireguard"),
			"packets of this host to 10.30.0.7/32 take that route"},
		{"shorter", []ipam.AttachmentInfo{attached()}, route("10.0.0.0/8", "tun0", "tun"),
			"the addresses 10.30.0.0/24 behind that route"},
		{"to nowhere", []ipam.AttachmentInfo{attached()}, route("10.30.0.0/24", "", ""), "10.30.0.0/24 to nowhere"},
		{"another machine's bridge", []ipam.AttachmentInfo{attached()},
			route("10.30.0.0/24", "virbr0", "bridge", "10.30.0.254"), "over virbr0"},
		{"beside", []ipam.AttachmentInfo{attached()}, route("10.31.0.0/24", "tun0", "tun"), ""},
		{"its bridge", []ipam.AttachmentInfo{attached()}, route("10.30.0.0/24", "shop0", "bridge", "10.30.0.1"), ""},
		{"a bridge of the engine's", []ipam.AttachmentInfo{attached()},
			route("10.30.0.0/24", "br-0123456789ab", "bridge", "10.30.0.9"), ""},
		{"its bridge, with a gateway of its own", []ipam.AttachmentInfo{attached()},
			route("10.30.0.0/24", "brlan", "bridge", "10.30.0.11"), ""},
		{"the way to macvlan containers", []ipam.AttachmentInfo{attached(lan)},
			route("10.30.0.64/27", "shim0", "macvlan"), ""},
		{"the LAN", []ipam.AttachmentInfo{attached(lan)}, lan, ""},
		{"the LAN by another link", []ipam.AttachmentInfo{attached(lan)}, route("10.30.0.0/24", "tun0", "tun"), "tun0"},
		{"there when the second was made", []ipam.AttachmentInfo{attached(), attached(lan)}, lan, ""},
		{"another host's", []ipam.AttachmentInfo{elsewhere}, route("10.30.0.0/24", "tun0", "tun"), ""},
		{"a swarm's", []ipam.AttachmentInfo{swarm}, route("10.30.0.0/24", "tun0", "tun"), ""},
		{"too many to remember", []ipam.AttachmentInfo{full}, route("10.30.0.0/24", "tun0", "tun"), ""},
	} {
		found := Shadowed("h1", row.at, []Route{row.r, row.r}, gateways, time.Unix(1, 0))
		if row.want == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", row.what, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Kind != ipam.ShadowedSubnet || found[0].Network != "shop" ||
			found[0].Subnet != attached().CIDR || !strings.Contains(found[0].Detail, row.want) ||
			!strings.Contains(found[0].Detail, row.r.String()) {
			t.Errorf("%s: %+v", row.what, found)
		}
	}
}

// TestList: List reads the kernel's routes, without default routes.
func TestList(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Prefix.Bits() < 2 || r.Prefix != r.Prefix.Masked() || r.Link == "" && r.Kind != "" {
			t.Errorf("%+v", r)
		}
	}
}
