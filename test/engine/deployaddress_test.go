//go:build engine

package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// The replicas of fixed have addresses of their own; those of any have what they get.
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
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

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
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// Replicas get the addresses that the files give each of them, also where these change places in a ring; an exclusion
// over the address of one moves that one and leaves the others; a pool that is too small, and all else that is in the
// way, is told at once before anything is done; what a deploy has made, Compose's own `up` leaves as it is (BD-2, BD-3,
// BD-4, BO-7, BO-9, BO-13).
func TestDeployAddressed(t *testing.T) {
	eachGeneration(t, newer, "addressed", enterPlanned, 217, addressed)
}

func addressed(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", planned, h.v4("20+3"))
	says := func(any string, fixed ...string) map[string]string {
		return map[string]string{"planned": planned, "subnet": h.v4("0/24"), "any": any, "a": h.v4(fixed[0]),
			"b": h.v4(fixed[1]), "c": h.v4(fixed[2])}
	}
	p := h.newProject(addressedFile, says("2", "81", "82", "83"))
	p.command = command
	p.deploys()
	p.at3("fixed", "81", "82", "83")
	first := p.ids()
	p.run("up", "--detach")
	if again := p.ids(); !slices.Equal(again, first) || len(first) != 5 {
		p.Errorf("`up` makes %v of %v", again, first)
	}
	p.write(addressedFile, says("2", "82", "83", "81"))
	p.plans(2, "3 to recreate", "2 to keep")
	p.deploys()
	p.at3("fixed", "82", "83", "81")
	p.moves(planned)
	p.refuses(planned, says)
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// at3 wants the replicas of a service to run with addresses, and to have these and no others reserved.
func (p *project) at3(service string, want ...string) {
	p.Helper()
	for i, end := range want {
		if has := p.at(p.containerOf(service, i+1), p.name); has != p.v4(end) {
			p.Errorf("%s %d has %s, and was to have %s", service, i+1, has, p.v4(end))
		}
	}
	p.plans(0, "nothing to do")
}

// moves: an exclusion over a running replica's address moves that one, and no other is made anew (BO-9).
func (p *project) moves(planned string) {
	p.Helper()
	all := []string{p.containerOf("any", 2), p.containerOf("fixed", 1), p.containerOf("fixed", 2),
		p.containerOf("fixed", 3)}
	old := p.at(p.containerOf("any", 1), p.name)
	p.berth("exclusion", "add", planned, old)
	p.plans(2, "1 to recreate", "4 to keep", old+" -> "+p.v4("22"))
	p.deploys()
	if has := p.at(p.containerOf("any", 1), p.name); has != p.v4("22") {
		p.Errorf("what moved has %s", has)
	}
	if reserved := p.reserved(planned, p.name+"/any/1"); !slices.Equal(reserved, []string{p.v4("22")}) {
		p.Errorf("what moved has %v reserved", reserved)
	}
	now := []string{p.containerOf("any", 2), p.containerOf("fixed", 1), p.containerOf("fixed", 2),
		p.containerOf("fixed", 3)}
	if !slices.Equal(all, now) {
		p.Errorf("the others were %v, and are %v", all, now)
	}
	p.plans(0, "nothing to do")
}

// refuses: all that is in the way is told at once, and nothing is done.
func (p *project) refuses(planned string, says func(string, ...string) map[string]string) {
	p.Helper()
	before := p.ids()
	p.berth("reservation", "add", planned, "--owner", "printer", "--ip", p.v4("90"))
	p.write(wrongFile, says("3", "90", "90", "90"))
	if _, err := run(context.Background(), nil, "docker", "--host", "unix://"+p.Engine.Socket, "pause",
		p.containerOf("any", 2)); err != nil {
		p.Fatal(err)
	}
	for _, verb := range []string{"plan", "apply"} {
		args := map[string][]string{"apply": {"--yes"}}[verb]
		said, code := p.deploy(verb, args...)
		if code != 1 {
			p.Errorf("%s ends with %d", verb, code)
		}
		for _, want := range []string{
			":8: services.any.x-berth.upgrade is not known", ":11: " + p.name + "/taken/1 on networks.front: " +
				"NetworkReservationAlreadyInUse: " + p.v4("90") + " is held by printer",
			"(1 wanted, 0 free)", p.name + "/any/3 on networks.front: NetworkReservationNotEnoughCapacity",
			"cannot be reached: it is paused; run `berth check`", "these are 4 problems",
		} {
			if !strings.Contains(said, want) {
				p.Errorf("%s says nothing of %q:\n%s", verb, want, said)
			}
		}
	}
	if _, err := run(context.Background(), nil, "docker", "--host", "unix://"+p.Engine.Socket, "unpause",
		p.containerOf("any", 2)); err != nil {
		p.Fatal(err)
	}
	if after := p.ids(); !slices.Equal(before, after) {
		p.Errorf("there were %v, and are %v", before, after)
	}
	p.berth("reservation", "rm", planned, "--owner", "printer")
	p.write(addressedFile, says("2", "82", "83", "81"))
	p.plans(0, "nothing to do")
}
