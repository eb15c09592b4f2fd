package edit_test

import (
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
)

// A subnet whose addresses no container can have is refused wherever a subnet enters.
func TestNoHostSubnets(t *testing.T) {
	for subnet, works := range map[string]bool{
		"0.0.0.0/0": false, "0.1.0.0/16": false, "127.1.0.0/16": false, "127.0.0.1/32": false, "224.0.1.0/24": false,
		"239.255.0.0/16": false, "255.255.255.255/32": false, "::/0": false, "::/64": false, "::1/128": false,
		"fe80::/64": false, "fe80:0:0:1::/64": false, "ff02::/64": false,

		"126.0.0.0/7": true, "128.0.0.0/16": true, "169.254.170.0/24": true, "223.255.255.0/24": true,
		"240.0.0.0/8": true, "255.255.255.0/24": true, "::1:0:0:0/80": true, "c000::/2": true, "fec0::/64": true,
		"fd00::/64": true,
	} {
		t.Run(subnet, func(t *testing.T) {
			r := ipamtest.New(t)
			outcome := func(line string) {
				t.Helper()
				if !works {
					line += " ! invalid; which no container can use; choose another"
				}
				r.Run("\n" + line + "\n")
			}
			small := map[bool]string{true: "fd00::ffff:0/128", false: "1.2.3.4/32"}[strings.Contains(subnet, ":")]
			r.Run("\nnetwork lan space=a\nnetwork big space=b subnet=" + small + "\n")
			outcome("network new space=c subnet=" + subnet)
			outcome("subnet lan " + subnet)
			outcome("subnet.set big " + small + " cidr=" + subnet)
			outcome("attach A space=d cidr=" + subnet)
			p, err := plan.ReadYAML(strings.NewReader(
				"version: 1\nnetworks:\n- {name: told, space: e, subnets: [{cidr: \"" + subnet + "\"}]}\n"))
			fine(t, err)
			if _, err := r.S.Import(ctx, p, ipam.ImportOptions{}); (err == nil) != works {
				t.Errorf("import: %v", err)
			}
		})
	}
}
