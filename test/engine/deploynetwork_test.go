//go:build engine

package engine

import (
	"net/netip"
	"strings"
	"testing"
)

// A project's file renumbers its network. The deploy recreates the network and the project's containers, which get
// addresses of the new subnet. `up` recreates nothing afterwards. If a foreign container, or one of `compose run`, is
// on the network, nothing changes (BD-3, BD-4, BO-13). With a new gateway each container keeps its address (BO-14).
func TestDeployNetwork(t *testing.T) {
	eachGeneration(t, newer, 203, func(h *Harness, command []string) {
		file := strings.Replace(deployedFile, `{subnet: "${subnet}"}`, `{subnet: "${subnet}", gateway: "${gateway}"}`, 1)
		p := h.newProject("", nil)
		p.command, p.planned = command, h.plan("--subnet", h.v4("0/25")+",pool")
		write := func(subnet, gateway, db string) {
			says := h.says("one", "3")
			says["subnet"], says["gateway"], says["db"] = h.v4(subnet), h.v4(gateway), h.v4(db)
			p.write(file, says)
		}
		write("0/25", "100", "80")
		p.deploys()
		has := p.addresses()
		write("0/25", "101", "80")
		p.plans(2, "4 to recreate", h.v4("100")+" -> "+h.v4("101"))
		p.deploys()
		p.hasAgain(has)
		if gateway := h.gateway(p.containerOf("web", 1), p.name); gateway != h.v4("101") {
			p.Errorf("web has the gateway %s", gateway)
		}
		p.plans(0)

		oneOff, stranger := p.name+"-probe", p.name+"-stranger"
		p.run("run", "--detach", "--no-deps", "--name", oneOff, "web", "sleep", "1000")
		ids := p.ids()
		h.berth("subnet", "add", p.planned, h.v4("128/25"))
		h.berth("pool", "add", p.planned, h.v4("130+60"))
		write("128/25", "254", "200")
		h.docker("run", "--detach", "--name", stranger, "--network", p.name, imageName, "sleep", "1000")
		changes := "its subnet changes " + h.v4("0/25") + " -> " + h.v4("128/25")
		p.plans(1, "the network "+p.name+" is recreated: "+changes,
			"the container "+stranger+" of another project is on it",
			"the container "+oneOff+" is on it and stays unchanged")
		p.fails()
		p.same("the containers", ids, p.ids())
		h.docker("rm", "--force", stranger, oneOff)
		p.plans(2, "4 to recreate", changes)
		p.deploys()
		p.plans(0)
		p.runsAt(map[string]string{"db/1": "200"})
		p.upLeaves(4)
		for _, addr := range p.addresses() {
			if a, err := netip.ParseAddr(addr); err != nil || !netip.MustParsePrefix(h.v4("128/25")).Contains(a) {
				p.Errorf("after the network was renumbered there is %q", addr)
			}
		}
	})
}
