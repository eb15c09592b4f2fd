//go:build engine

package engine

import (
	"context"
	"strings"
	"testing"
)

const swapFile = `
version: "3.9"
services:
  a: {image: ${image}, command: ${does}, networks: {front: {ipv4_address: "${a}"}}}
  b: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${b}"}}}
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// Two services are to change places. When the first one fails the other one runs as before. A deploy that is killed at
// any of its steps, and whose containers are started again by hand, is done by one more (BD-8, BD-9).
func TestDeployRestores(t *testing.T) {
	eachGeneration(t, newer, "restores", enterPlanned, 177, restores)
}

func restores(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	says := func(does, a, b string) map[string]string {
		return map[string]string{"planned": planned, "subnet": h.v4("0/24"), "does": does, "a": h.v4(a), "b": h.v4(b)}
	}
	p := h.newProject(swapFile, says("${run}", "11", "12"))
	p.command = command
	p.deploys()
	b := p.containerOf("b", 1)
	p.write(swapFile, says(`["sh", "-c", "exit 3"]`, "12", "11"))
	said, code := p.deploy("apply", "--yes")
	if code != 1 || !strings.Contains(said, "a canary of a failed, and the others are as they were") {
		p.Errorf("a canary that fails ends with %d:\n%s", code, said)
	}
	if has := p.at(b, p.name); has != h.v4("12") {
		p.Errorf("what made way for it has %q", has)
	}
	ends := []string{"11", "12"}
	p.write(swapFile, says("${run}", ends[1], ends[0]))
	p.deploys()
	p.swapped(ends[1], ends[0])
	p.returns(says)
	p.write(swapFile, says("${run}", ends[0], ends[1]))
	steps := p.killed(-1)
	p.swapped(ends[0], ends[1])
	for k := 0; k < steps; k += max(1, steps/sample(0, 3, steps)) {
		ends[0], ends[1] = ends[1], ends[0]
		p.write(swapFile, says("${run}", ends[0], ends[1]))
		p.killed(k)
		if strings.Contains(p.berth("deploy", "status"), p.name) { // else it was through before that
			p.berth("deploy", "unlock", p.name)
		}
		for _, id := range p.ids() {
			_, _ = run(context.Background(), nil, "docker", "--host", "unix://"+p.Engine.Socket, "start",
				id) // it may be refused
		}
		p.deploys()
		p.swapped(ends[0], ends[1])
	}
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// returns: the network is made anew, and the canary fails on it: the other one, which had to leave, is on the new one
// with its address and its names, and stays there.
func (p *project) returns(says func(does, a, b string) map[string]string) {
	p.Helper()
	anew := strings.Replace(swapFile, "    ipam:", "    internal: true\n    ipam:", 1)
	b := p.containerOf("b", 1)
	p.write(anew, says(`["sh", "-c", "exit 3"]`, "12", "11"))
	said, code := p.deploy("apply", "--yes")
	if code != 1 || !strings.Contains(said, "a canary of a failed, and the others are as they were") {
		p.Errorf("a canary that fails on a network that is recreated ends with %d:\n%s", code, said)
	}
	if has := p.at(b, p.name); has != p.v4("11") {
		p.Errorf("what had to leave the network has %q", has)
	}
	aliases := p.docker("inspect", "--format", "{{json (index .NetworkSettings.Networks \""+p.name+"\").Aliases}}", b)
	if !strings.Contains(aliases, `"b"`) {
		p.Errorf("what had to leave the network is called %s there", aliases)
	}
	p.write(anew, says("${run}", "12", "11"))
	p.plans(2, "1 to recreate, 1 to keep")
	p.deploys()
	p.swapped("12", "11")
	p.write(swapFile, says("${run}", "12", "11"))
	p.deploys()
}

// swapped wants the two to run with addresses, and nothing besides to be done.
func (p *project) swapped(a, b string) {
	p.Helper()
	p.plans(0)
	for service, want := range map[string]string{"a": a, "b": b} {
		if has := p.at(p.containerOf(service, 1), p.name); has != p.v4(want) {
			p.Errorf("%s has %s, and was to have %s", service, has, p.v4(want))
		}
	}
	if all := p.ids(); len(all) != 2 {
		p.Errorf("there are %v", all)
	}
}
