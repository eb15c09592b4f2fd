//go:build engine

package engine

import (
	"strings"
	"testing"
)

const externalFile = `
version: "3.9"
services:
  web: {image: ${image}, command: ${run}, environment: {ROUND: "${round}"}, networks: [n], deploy: {replicas: 2}}
networks:
  n: {external: true, name: "${front}"}
`

// A project on a network that somebody else has made is deployed without a further word, and each replica has its
// address in its configuration, also when it is made anew. One that contradicts the engine is refused, as is a network
// that is not there, with the line that makes it.
func TestDeployExternal(t *testing.T) {
	eachGeneration(t, newer, "external", enterPlanned, 175, onExternal)
}

func onExternal(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	other := h.plan("--subnet", h.v4("0/24"), "--space", "lab")
	front := h.network("--ipam-opt", "network="+planned, "--subnet", h.v4("0/24"))
	p := h.newProject(externalFile, map[string]string{"front": front, "round": "1"})
	p.command = command
	p.plans(2, "2 to create", " on "+front)
	p.deploys()
	has := map[string]string{}
	for round := range 2 {
		for _, number := range []int{1, 2} {
			id := p.containerOf("web", number)
			addr := p.at(id, front)
			fixed := strings.TrimSpace(p.docker("inspect", "--format",
				"{{with index .NetworkSettings.Networks \""+front+"\"}}{{.IPAMConfig.IPv4Address}}{{end}}", id))
			if owner := p.webOwner(number); fixed != addr || round > 0 && has[owner] != addr {
				p.Errorf("round %d: %s has %s, had %s, and %s in its configuration", round, owner, addr, has[owner], fixed)
			} else {
				has[owner] = addr
			}
		}
		p.plans(0, "nothing to do")
		if round == 0 {
			p.write(externalFile, map[string]string{"front": front, "round": "2"})
			p.deploys()
		}
	}
	override := p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--docker-host",
		"unix://"+p.Engine.Socket, "--scale", "web=1")
	if want := "ipv4_address: \"" + has[p.webOwner(1)] + "\""; !strings.Contains(override, want) {
		p.Errorf("the override says nothing of %s:\n%s", want, override)
	}
	p.flags = []string{"--network", "n=" + other}
	p.plans(1, "contradicts the engine, whose network "+front+" is on the planned network "+planned)
	p.flags = nil
	p.write(externalFile, map[string]string{"front": other, "round": "2"})
	p.plans(1, "the engine has no network "+other+"; make it with `docker network create --ipam-driver "+p.Berth.Driver()+
		" --ipam-opt network="+other+" --subnet "+p.v4("0/24")+" "+other+"`")
	p.write(externalFile, map[string]string{"front": front, "round": "2"})
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}
