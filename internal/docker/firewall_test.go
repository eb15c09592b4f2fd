package docker

import "testing"

// TestFirewallIsRead: a view has the firewall's backend and the networks that the firewall lets packets into.
func TestFirewallIsRead(t *testing.T) {
	f := recorded(t)
	f.Firewall = "nftables"
	f.Networks[0]["Options"] = object{"com.docker.network.bridge.gateway_mode_ipv4": "nat-unprotected",
		"com.docker.network.bridge.gateway_mode_ipv6": "routed"}
	name := f.Networks[0]["Name"].(string)
	view, err := open(f).Network(t.Context(), name)
	must(t, err)
	if n := view.Networks[0]; !n.Open4 || n.Open6 {
		t.Errorf("the network %s is read as %+v", name, n)
	}
	whole, err := open(f).View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	if whole.Firewall != "nftables" {
		t.Errorf("the firewall is read as %q", whole.Firewall)
	}
}
