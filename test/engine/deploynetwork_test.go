//go:build engine

package engine

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A project's network is renumbered by its file: it is made anew with all of the project's containers on it, which come
// back with addresses of the new subnet, with either generation of Compose; `up` makes nothing anew afterwards. Where
// somebody else's container is on it, or one of `compose run`, nothing is touched (BD-3, BD-4, BO-13).
func TestDeployNetwork(t *testing.T) {
	eachGeneration(t, newer, "renumber", enterPlanned, 203, renumbered)
}

func renumbered(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/25")+",pool")
	says := func(subnet, db string) map[string]string {
		return map[string]string{"planned": planned, "subnet": h.v4(subnet), "db": h.v4(db), "round": "one",
			"replicas": "3", "web": "${run}"}
	}
	p := h.newProject(deployedFile, says("0/25", "80"))
	p.command = command
	p.deploys()
	oneOff := p.name + "-probe"
	p.run("run", "--detach", "--no-deps", "--name", oneOff, "web", "sleep", "1000")
	ids := p.ids()
	h.berth("subnet", "add", planned, h.v4("128/25"))
	h.berth("pool", "add", planned, h.v4("130+60"))
	p.write(deployedFile, says("128/25", "200"))
	stranger := p.name + "-stranger"
	h.docker("run", "--detach", "--name", stranger, "--network", p.name, imageName, "sleep", "1000")
	p.plans(1, "the network "+p.name+" is recreated: its subnet changes "+h.v4("0/25")+" -> "+h.v4("128/25"),
		"the container "+stranger+" is on it, which is not of this project",
		"the container "+oneOff+" is on it, which is left as it is")
	if said, code := p.deploy("apply", "--yes"); code != 1 {
		p.Errorf("a network with a stranger on it is recreated with %d:\n%s", code, said)
	}
	if now := p.ids(); !slices.Equal(now, ids) {
		p.Errorf("a refused deploy makes %v of %v", now, ids)
	}
	h.docker("rm", "--force", stranger, oneOff)
	p.plans(2, "4 to recreate", "its subnet changes "+h.v4("0/25")+" -> "+h.v4("128/25"))
	p.deploys()
	p.plans(0)
	subnet := netip.MustParsePrefix(h.v4("128/25"))
	for _, addr := range p.addresses() {
		if a, err := netip.ParseAddr(addr); err != nil || !subnet.Contains(a) {
			p.Errorf("after the network was renumbered there is %q", addr)
		}
	}
	if db := p.at(p.containerOf("db", 1), p.name); db != h.v4("200") {
		p.Errorf("the database has %s", db)
	}
	ids = p.ids()
	p.run("up", "--detach")
	if again := p.ids(); !slices.Equal(again, ids) || len(ids) != 4 {
		p.Errorf("`up` makes %v of %v", again, ids)
	}
	for _, addr := range p.addresses() {
		if a, err := netip.ParseAddr(addr); err != nil || !subnet.Contains(a) {
			p.Errorf("after `up` there is %q", addr)
		}
	}
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// Another name server of a service, and another gateway of its network, which is made anew for it, leave each container
// its address (BO-14).
func TestDeployGateway(t *testing.T) {
	eachGeneration(t, newer, "gateway", enterPlanned, 211, regated)
}

func regated(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	file := strings.NewReplacer("networks: [front]", "networks: [front]\n    dns: ${dns}",
		`{subnet: "${subnet}"}`, `{subnet: "${subnet}", gateway: "${gateway}"}`).Replace(deployedFile)
	says := func(dns, gateway string) map[string]string {
		return map[string]string{"planned": planned, "subnet": h.v4("0/24"), "db": h.v4("80"), "round": "one",
			"replicas": "3", "web": "${run}", "dns": h.v4(dns), "gateway": h.v4(gateway)}
	}
	p := h.newProject(file, says("53", "200"))
	p.command = command
	p.deploys()
	has := p.addresses()
	p.write(file, says("54", "200"))
	p.plans(2, "3 to recreate")
	p.deploys()
	p.hasAgain(has)
	if dns := p.docker("inspect", "--format", "{{.HostConfig.Dns}}", p.containerOf("web", 1)); dns != "["+h.v4("54")+"]" {
		p.Errorf("web has the name servers %s", dns)
	}
	p.write(file, says("54", "254"))
	p.plans(2, "4 to recreate", h.v4("200")+" -> "+h.v4("254"))
	p.deploys()
	p.hasAgain(has)
	if gateway := h.gateway(p.containerOf("web", 1), p.name); gateway != h.v4("254") {
		p.Errorf("web has the gateway %s", gateway)
	}
	p.plans(0)
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}
