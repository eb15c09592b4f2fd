package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanUnnamed: a deploy refuses a network whose planned subnets the files do not name, with the place and what to
// write. A file with the subnets, or a network that Docker has in them, ends the refusal.
func TestPlanUnnamed(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
	h.plan("dual", "10.9.0.0/24", "10.9.0.10+10", "fd00:9::/64", "fd00:9::10+10")
	h.engine.Images["x"] = "sha256:x"
	h.must(h.compose.Hashes(map[string]string{"web": "h-web"}))
	file := ""
	compose := func(network string) {
		file = h.file("services: {web: {image: x, networks: [net]}}\nnetworks:\n  net:\n    " + network + "\n")
	}
	refused := func(want string) {
		t.Helper()
		for _, verb := range []string{"plan", "apply"} {
			if code, out, said := h.berth(verb, "-f", file); code != 1 || out != "" || !strings.Contains(said, want) {
				t.Errorf("%s does %d, and not say %s:\n%s%s", verb, code, want, out, said)
			}
		}
		if writes := h.engine.Writes(); len(writes) > 0 || h.compose.Asked() != "" {
			t.Errorf("it asked the engine %v and the compose command %s", writes, h.compose.Asked())
		}
	}
	planned := func(args ...string) {
		t.Helper()
		code, out, said := h.berth("plan", append([]string{"-f", file}, args...)...)
		if code != 2 || !strings.Contains(out, "shop/web/1") {
			t.Errorf("it does %d:\n%s%s", code, out, said)
		}
	}
	const front = "networks.net does not name the subnet 10.8.0.0/24 of the planned network front, so Docker would " +
		"create the network on an unplanned subnet; write config: [{subnet: 10.8.0.0/24%s}] in its ipam\n"
	for config, gateway := range map[string]string{"": "", ", config: []": "", ", config: [{}]": "",
		", config: [{gateway: 10.8.0.1}]": ", gateway: 10.8.0.1"} {
		compose("ipam: {driver: berth, options: {network: front}" + config + "}")
		refused(file + ":4: " + fmt.Sprintf(front, gateway))
	}
	compose("ipam: {driver: berth, options: {network: dual}}")
	refused(":4: networks.net does not name the subnet 10.9.0.0/24 and fd00:9::/64 of the planned network dual, so " +
		"Docker would create the network on an unplanned subnet; write enable_ipv6: true in it, and config: " +
		"[{subnet: 10.9.0.0/24}, {subnet: \"fd00:9::/64\"}] in its ipam\n")
	compose("{enable_ipv6: true, ipam: {driver: berth, options: {network: dual}, config: [{subnet: 10.9.0.0/24}]}}")
	refused(":4: networks.net does not name the subnet fd00:9::/64 of the planned network dual")

	compose("ipam: {driver: berth, options: {network: front}}")
	write := func(name, text string) string {
		name = filepath.Join(h.dir, name)
		h.must(os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	const config = "networks: {net: {ipam: {config: [{subnet: 10.8.0.0/24}]}}}\n"
	planned("-f", write("own.yaml", config))
	left := write("berth.override.yaml", "# Written by `berth compose`\n"+config)
	if code, _, said := h.berth("plan", "-f", file, "-f", left); code != 1 ||
		!strings.Contains(said, "(a deploy does not use what `berth compose` wrote: "+left+")") {
		t.Errorf("with the override of berth compose it does %d:\n%s", code, said)
	}
	network := func(subnet string) {
		h.engine.Networks = []map[string]any{{"Id": "net-id", "Name": "shop_net", "Driver": "bridge",
			"Labels": map[string]string{"com.docker.compose.project": "shop"},
			"IPAM": map[string]any{"Driver": "berth", "Options": map[string]string{"network": "front"},
				"Config": []map[string]string{{"Subnet": subnet}}}}}
	}
	network("172.16.0.0/16")
	refused(fmt.Sprintf(front, ""))
	network("10.8.0.0/24")
	planned()
}
