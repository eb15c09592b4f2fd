package deploy

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// external returns an engine's network: "DRIVER PLANNED|- CIDR...". PLANNED is its option network. Empty: none.
func external(text string) map[string]*ipam.EngineNetwork {
	words := strings.Fields(text)
	if len(words) == 0 {
		return map[string]*ipam.EngineNetwork{}
	}
	n := &ipam.EngineNetwork{Name: "lan0", Driver: words[0], Options: map[string]string{}}
	if words[1] != "-" {
		n.Options["network"] = words[1]
	}
	for _, cidr := range words[2:] {
		n.Subnets = append(n.Subnets, ipam.EngineSubnet{CIDR: netip.MustParsePrefix(cidr)})
	}
	return map[string]*ipam.EngineNetwork{"lan0": n}
}

// TestExternal: the engine describes an external network: its driver, its planned network, and its subnets, in
// which containers may name addresses. --network is needed where the engine does not say, and refused where it
// contradicts the engine.
func TestExternal(t *testing.T) {
	const file = "services: {web: {image: x, networks: [lan]}}\nnetworks: {lan: {external: true, name: lan0}}\n"
	// the engine's network, --network, and the planned network with the address, or after ! the refusal
	for row := range ipamtest.Rows(4, `
		by its option | berth front 10.8.0.0/24 | | front 10.8.0.10
		by its subnet | berth - 10.8.0.0/24 | | front 10.8.0.10
		as the daemon is called | ship:latest front 10.8.0.0/24 | | front 10.8.0.10
		one of two subnets | berth two 10.11.0.0/24 | | two 10.11.0.10
		both families | berth dual 10.9.0.0/24 fd00:9::/64 | | dual 10.9.0.10, fd00:9::a
		one family of two | berth dual 10.9.0.0/24 | | dual 10.9.0.10
		by hand, as it is | berth front 10.8.0.0/24 | front | front 10.8.0.10
		by hand, another | berth front 10.8.0.0/24 | dual | ! --network lan=dual contradicts the engine, whose network lan0 is on the planned network front
		by hand, another driver | default - 10.8.0.0/24 | front | ! --network lan=front contradicts the engine, whose network lan0 has its addresses from the IPAM driver default
		by hand, other subnets | berth - 10.99.0.0/24 | front | ! names the subnet 10.99.0.0/24, which the planned network front does not have
		nobody knows | berth - 10.99.0.0/24 | | ! give --network lan=NAME
		another driver | default - 10.8.0.0/24 | | ! no network of a running service has Berth
		a plan that is not there | berth gone 10.8.0.0/24 | | ! is on the planned network "gone", which does not exist
		it is missing | | | ! the engine has no network lan0; create it with \x60docker network create lan0\x60
		it is missing, and planned | | dual | ! create it with \x60docker network create --ipam-driver berth --ipam-opt network=dual --subnet 10.9.0.0/24 --ipv6 --subnet fd00:9::/64 lan0\x60
	`) {
		t.Run(row[0], func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "shop")
			write(t, filepath.Join(dir, "compose.yaml"), []byte(file))
			m := Mapping{Engine: external(row[1]), Networks: map[string]string{}}
			if row[2] != "" {
				m.Networks["lan"] = row[2]
			}
			if strings.HasPrefix(row[1], "ship:") {
				m.Drivers = []string{"ship"}
			}
			p := load(t, Source{Files: []string{filepath.Join(dir, "compose.yaml")}})
			plan, err := p.Plan(m, planned())
			if says, is := strings.CutPrefix(row[3], "! "); is {
				if says = strings.ReplaceAll(says, `\x60`, "`"); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("it says %v, want %q", err, says)
				}
				if missing := p.Missing(m, planned()); (missing != nil) != (row[1] == "") {
					t.Errorf("missing is %v", missing)
				}
				return
			}
			fine(t, err)
			fine(t, plan.Grant(newLedger().edit(plan.Edits())))
			on := plan.Services()[0].Instances[0].On
			if len(on) != 1 || on[0].Network != "lan0" || !on[0].Named ||
				on[0].Planned+" "+Listed(on[0].Addresses, ", ") != row[3] {
				t.Errorf("it is on %+v, want %s", on, row[3])
			}
		})
	}
}
