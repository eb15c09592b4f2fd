package deploy

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// external returns an engine's network with its IPAM driver, its option network and its subnets.
func external(driver, on string, cidrs ...string) *ipam.EngineNetwork {
	n := &ipam.EngineNetwork{Name: "lan0", Driver: driver, Options: map[string]string{}}
	if on != "" {
		n.Options["network"] = on
	}
	for _, cidr := range cidrs {
		n.Subnets = append(n.Subnets, ipam.EngineSubnet{CIDR: netip.MustParsePrefix(cidr)})
	}
	return n
}

// TestExternal: the engine describes an external network: its driver, its planned network, and its subnets, in
// which containers may name addresses. --network is needed where the engine does not say, and refused where it
// contradicts the engine.
func TestExternal(t *testing.T) {
	const file = "services: {web: {image: x, networks: [lan]}}\nnetworks: {lan: {external: true, name: lan0}}\n"
	for what, c := range map[string]struct {
		has     *ipam.EngineNetwork
		by      string // the value of --network
		drivers []string
		on      string // PLANNED ADDRESS, ...
		says    string // the refusal, or why it is left alone
	}{
		"by its option": {has: external("berth", "front", "10.8.0.0/24"), on: "front 10.8.0.10"},
		"by its subnet": {has: external("berth", "", "10.8.0.0/24"), on: "front 10.8.0.10"},
		"as the daemon is called": {has: external("ship:latest", "front", "10.8.0.0/24"),
			drivers: []string{"ship"},
			on:      "front 10.8.0.10"},
		"one of two subnets": {has: external("berth", "two", "10.11.0.0/24"), on: "two 10.11.0.10"},
		"both families": {has: external("berth", "dual", "10.9.0.0/24", "fd00:9::/64"),
			on: "dual 10.9.0.10, fd00:9::a"},
		"one family of two": {has: external("berth", "dual", "10.9.0.0/24"), on: "dual 10.9.0.10"},
		"by hand, as it is": {has: external("berth", "front", "10.8.0.0/24"), by: "front",
			on: "front 10.8.0.10"},
		"by hand, another": {has: external("berth", "front", "10.8.0.0/24"), by: "dual",
			says: "--network lan=dual contradicts the engine, whose network lan0 is on the planned network front"},
		"by hand, another driver": {has: external("default", "", "10.8.0.0/24"), by: "front",
			says: "--network lan=front contradicts the engine, whose network " +
				"lan0 has its addresses from the IPAM driver default"},
		"by hand, other subnets": {has: external("berth", "", "10.99.0.0/24"), by: "front",
			says: "names the subnet 10.99.0.0/24, which the planned network front does not have"},
		"nobody knows": {has: external("berth", "", "10.99.0.0/24"),
			says: "say --network lan=NAME"},
		"another driver": {has: external("default", "", "10.8.0.0/24"),
			says: "no network that a running service is on has Berth"},
		"a plan that is not there": {has: external("berth", "gone", "10.8.0.0/24"),
			says: "is on the planned network \"gone\", which is not there"},
		"it is missing": {says: "the engine has no network lan0; make it with `docker network create lan0`"},
		"it is missing, and planned": {by: "dual",
			says: "make it with `docker network create --ipam-driver berth --ipam-opt " +
				"network=dual --subnet 10.9.0.0/24 --ipv6 --subnet fd00:9::/64 lan0`"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "shop")
			write(t, filepath.Join(dir, "compose.yaml"), []byte(file))
			m := Mapping{Drivers: c.drivers, Engine: map[string]*ipam.EngineNetwork{}, Networks: map[string]string{}}
			if c.has != nil {
				m.Engine["lan0"] = c.has
			}
			if c.by != "" {
				m.Networks["lan"] = c.by
			}
			p := load(t, Source{Files: []string{filepath.Join(dir, "compose.yaml")}})
			plan, err := p.Plan(m, planned())
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("it says %v, want %q", err, c.says)
				}
				if missing := p.Missing(m, planned()); (missing != nil) != (c.has == nil) {
					t.Errorf("missing is %v", missing)
				}
				return
			}
			fine(t, err)
			fine(t, plan.Grant(newLedger().edit(plan.Edits())))
			on := plan.Services()[0].Instances[0].On
			if len(on) != 1 || on[0].Network != "lan0" || !on[0].Named ||
				on[0].Planned+" "+Listed(on[0].Addresses, ", ") != c.on {
				t.Errorf("it is on %+v, want %s", on, c.on)
			}
		})
	}
}
