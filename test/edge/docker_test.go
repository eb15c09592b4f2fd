//go:build edge

package edge_test

import (
	"strings"
	"testing"
)

// dockerIPTables imitates the engine's iptables backend: it drops traffic into a bridge that has no published
// port, and traffic sent directly to a container's address.
func dockerIPTables(t *testing.T) {
	t.Helper()
	rules := `
		TOOL -P FORWARD DROP
		TOOL -N DOCKER-USER
		TOOL -A FORWARD -j DOCKER-USER
		TOOL -A FORWARD -o br0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
		TOOL -A FORWARD -i br0 -j ACCEPT
		TOOL -A FORWARD -o br0 -j DROP
		TOOL -t raw -A PREROUTING -d SUBNET ! -i br0 -j DROP
		TOOL -t nat -A POSTROUTING -s SUBNET ! -o br0 -j MASQUERADE`
	script(t, strings.NewReplacer("TOOL", "iptables -w", "SUBNET", subnet4.String()).Replace(rules))
	script(t, strings.NewReplacer("TOOL", "ip6tables -w", "SUBNET", subnet6.String()).Replace(rules))
}

// dockerNFTables imitates the nftables backend, with its option bridge-accept-fwmark if one is given.
func dockerNFTables(t *testing.T, fwmark string) {
	t.Helper()
	accept := ""
	if fwmark != "" {
		accept = "meta mark & " + fwmark + " == " + fwmark + " accept;"
	}
	rules := strings.NewReplacer("MARK", accept).Replace(`table FAMILY docker-bridges {
		chain in { ct state established,related accept; MARK iifname "br0" accept; counter drop; }
		chain raw-PREROUTING { type filter hook prerouting priority raw; FAMILY daddr SUBNET iifname != "br0" drop; }
		chain filter-FORWARD { type filter hook forward priority filter; oifname "br0" jump in; iifname "br0" accept; }
		chain nat-POSTROUTING { type nat hook postrouting priority srcnat;
			iifname "br0" oifname != "br0" FAMILY saddr SUBNET masquerade; }
	}`)
	for family, subnet := range map[string]string{"ip": subnet4.String(), "ip6": subnet6.String()} {
		run(t, "nft -f - <<'E'\n"+strings.NewReplacer("FAMILY", family, "SUBNET", subnet).Replace(rules)+"\nE\n")
	}
}
