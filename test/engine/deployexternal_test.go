//go:build engine

package engine

import (
	"slices"
	"sync"
	"testing"
)

const externalFile = `
version: "3.9"
services:
  web: {image: ${image}, command: ${run}, environment: {ROUND: "${round}"}, networks: [n], deploy: {replicas: 2}}
networks:
  n: {external: true, name: "${front}"}
`

// A project on an existing network of somebody else is deployed without further settings. Each replica has its address
// in its configuration, also when it is recreated. A network that contradicts the engine is refused. A missing network
// is refused, too, with the line that creates it.
func TestDeployExternal(t *testing.T) {
	eachGeneration(t, newer, 175, func(h *Harness, command []string) {
		planned := h.plan("--subnet", h.v4("0/24")+",pool")
		other := h.plan("--subnet", h.v4("0/24"), "--space", "lab")
		front := h.network("--ipam-opt", "network="+planned, "--subnet", h.v4("0/24"))
		p := h.newProject(externalFile, map[string]string{"front": front, "round": "1"})
		p.command = command
		p.plans(2, "2 to create", " on "+front)
		p.deploys()
		fixed := func() (all []string) {
			for _, number := range []int{1, 2} {
				id := p.containerOf("web", number)
				asked, _, _ := h.asks(id, front)
				p.same(p.webOwner(number)+"'s addresses", []string{p.at(id, front)}, []string{asked})
				all = append(all, asked)
			}
			return all
		}
		before := fixed()
		p.plans(0, "nothing to do")
		p.write(externalFile, map[string]string{"front": front, "round": "2"})
		p.deploys()
		p.same("the addresses", before, fixed())
		p.plans(0, "nothing to do")
		p.flags = []string{"--network", "n=" + other}
		p.plans(1, "contradicts the engine, whose network "+front+" is on the planned network "+planned)
		p.flags = nil
		p.write(externalFile, map[string]string{"front": other, "round": "2"})
		p.plans(1, "the engine has no network "+other+"; create it with `docker network create --ipam-driver "+
			p.Berth.Driver()+" --ipam-opt network="+other+" --subnet "+p.v4("0/24")+" "+other+"`")
	})
}

// Two deploys begin at once for the last two addresses of a network: one succeeds, and the other is refused and
// creates nothing (BD-4). A replica that was removed by hand comes back with its address (BO-2).
func TestDeployLast(t *testing.T) {
	eachGeneration(t, older, 223, func(h *Harness, command []string) {
		planned := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254"))
		h.berth("pool", "add", planned, h.span(10, 11))
		front := h.network("--ipam-opt", "network="+planned, "--subnet", h.v4("0/24"))
		var all [2]*project
		var said [2]string
		var codes [2]int
		var both sync.WaitGroup
		for i := range all {
			all[i] = h.newProject(externalFile, map[string]string{"front": front, "round": "1"})
			all[i].command, all[i].flags = command, []string{"--network", "n=" + planned}
			both.Go(func() { said[i], codes[i] = all[i].deploy("apply", "--yes") })
		}
		both.Wait()
		if !slices.Equal(slices.Sorted(slices.Values(codes[:])), []int{0, 1}) {
			h.Fatalf("two deploys for two addresses end with %d and %d:\n%s\n%s", codes[0], codes[1], said[0], said[1])
		}
		p, refused := all[slices.Index(codes[:], 0)], all[slices.Index(codes[:], 1)]
		if left := refused.ids(); len(left) > 0 {
			h.Errorf("the refused deploy has created %v", left)
		}
		first, second := p.at(p.containerOf("web", 1), front), p.at(p.containerOf("web", 2), front)
		p.same("the addresses", []string{h.v4("10"), h.v4("11")}, slices.Sorted(slices.Values([]string{first, second})))
		other := p.containerOf("web", 2)
		p.docker("rm", "--force", p.containerOf("web", 1))
		p.plans(2, "1 to create", "1 to keep")
		p.deploys()
		p.same("web 1 and 2", []string{first, other}, []string{p.at(p.containerOf("web", 1), front),
			p.containerOf("web", 2)})
	})
}
