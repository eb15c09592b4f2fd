package docker

import "testing"

// TestFirewallIsRead: a view has the firewall's backend, and the networks that it lets packets into.
func TestFirewallIsRead(t *testing.T) {
	f := newFakeEngine(t)
	f.load("networks.json", "containers.json")
	f.firewall = "nftables"
	f.networks[0]["Options"] = object{"com.docker.network.bridge.gateway_mode_ipv4": "nat-unprotected",
		"com.docker.network.bridge.gateway_mode_ipv6": "routed"}
	name := f.networks[0]["Name"].(string)
	view, err := f.open().Network(t.Context(), name)
	must(t, err)
	if n := view.Networks[0]; !n.Open4 || n.Open6 {
		t.Errorf("the network %s is read as %+v", name, n)
	}
	whole, err := f.open().View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	if whole.Firewall != "nftables" {
		t.Errorf("the firewall is read as %q", whole.Firewall)
	}
}
