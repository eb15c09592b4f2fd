//go:build engine

package engine

import (
	"testing"
)

// The replicas of fixed have static addresses; those of any have automatic ones.
const addressedFile = `
x-berth: {update: {max_in_flight: 50%, watch: 1s-60s}}
services:
  fixed:
    image: ${image}
    command: ${run}
    networks: [front]
    deploy: {replicas: 3}
    x-berth: {addresses: ["${a}", "${b}", "${c}"], update: {canaries: 0}}
  any:
    image: ${image}
    command: ${run}
    networks: [front]
    deploy: {replicas: ${any}}
` + frontNetwork

const wrongFile = `
services:
  any:
    image: ${image}
    command: ${run}
    networks: [front]
    deploy: {replicas: ${any}}
    x-berth: {upgrade: {canaries: 1}}
  taken:
    image: ${image}
    networks: {front: {ipv4_address: "${a}"}}
` + frontNetwork

// Replicas get the addresses of the file, also if these change places in a ring. An exclusion over one replica's
// address moves only that replica. A pool that is too small, and every other error, is reported at once, before any
// change. Compose's own `up` changes nothing after a deploy (BD-2, BD-3, BD-4, BO-7, BO-9, BO-13).
func TestDeployAddressed(t *testing.T) {
	eachGeneration(t, newer, 217, func(h *Harness, command []string) {
		p := h.newProject("", nil)
		p.command, p.planned = command, h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
		h.berth("pool", "add", p.planned, h.v4("20+3"))
		says := func(any string, fixed ...string) map[string]string {
			return map[string]string{"any": any, "a": h.v4(fixed[0]), "b": h.v4(fixed[1]), "c": h.v4(fixed[2])}
		}
		p.write(addressedFile, says("2", "81", "82", "83"))
		p.deploys()
		p.runsAt(map[string]string{"fixed/1": "81", "fixed/2": "82", "fixed/3": "83"})
		p.upLeaves(5)
		p.write(addressedFile, says("2", "82", "83", "81"))
		p.plans(2, "3 to recreate", "2 to keep")
		p.deploys()
		p.runsAt(map[string]string{"fixed/1": "82", "fixed/2": "83", "fixed/3": "81"})
		p.moves()
		p.refuses(says)
		p.write(addressedFile, says("2", "82", "83", "81"))
		p.plans(0, "nothing to do")
	})
}

// moves: an exclusion over a running replica's address moves that replica and recreates no other (BO-9).
func (p *project) moves() {
	p.Helper()
	others := func() []string {
		return []string{p.containerOf("any", 2), p.containerOf("fixed", 1), p.containerOf("fixed", 2),
			p.containerOf("fixed", 3)}
	}
	before, old := others(), p.at(p.containerOf("any", 1), p.name)
	p.berth("exclusion", "add", p.planned, old)
	p.plans(2, "1 to recreate", "4 to keep", old+" -> "+p.v4("22"))
	p.deploys()
	p.runsAt(map[string]string{"any/1": "22"})
	p.same("the others", before, others())
	p.plans(0, "nothing to do")
}

// refuses: all errors are reported at once, and nothing is changed.
func (p *project) refuses(says func(string, ...string) map[string]string) {
	p.Helper()
	before := p.ids()
	p.berth("reservation", "add", p.planned, "--owner", "printer", "--ip", p.v4("90"))
	p.write(wrongFile, says("3", "90", "90", "90"))
	p.docker("pause", p.containerOf("any", 2))
	words := []string{
		":8: services.any.x-berth.upgrade is not a known key", ":11: " + p.name + "/taken/1 on networks.front: " +
			p.v4("90") + " is held by printer",
		"(1 wanted, 0 free)", p.name + "/any/3 on networks.front: ",
		"cannot be reached: it is paused; run `berth check`", "there are 4 problems",
	}
	p.plans(1, words...)
	p.fails(words...)
	p.docker("unpause", p.containerOf("any", 2))
	p.same("the containers", before, p.ids())
	p.berth("reservation", "rm", p.planned, "--owner", "printer")
}
