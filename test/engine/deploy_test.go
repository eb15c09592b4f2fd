//go:build engine

package engine

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

const deployedFile = `
version: "3.9"
services:
  web:
    image: ${image}
    command: ${web}
    environment: {ROUND: "${round}"}
    networks: [front]
    depends_on: [db]
    deploy: {replicas: ${replicas}}
  db:
    image: ${image}
    command: ${run}
    networks: {front: {ipv4_address: "${db}"}}
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// A project is made, changed, and made smaller by `berth deploy`, with either generation of Compose: each replica keeps
// the address that is reserved for it, a canary goes first, what is dropped gives its address back, and afterwards that
// same command's `up` makes nothing anew (BD-5, BD-7, BD-8, BO-2, BO-3, BO-9).
func TestDeploy(t *testing.T) {
	eachGeneration(t, newer, "deploy", enterPlanned, 227, deployed)
}

func deployed(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	says := func(round, replicas string) map[string]string {
		return map[string]string{"planned": planned, "subnet": h.v4("0/24"), "db": h.v4("80"), "round": round,
			"replicas": replicas, "web": "${run}"}
	}
	p := h.newProject(deployedFile, says("one", "3"))
	p.command = command
	p.plans(2, "4 to create")
	p.deploys()
	p.plans(0, "nothing to do")
	first := p.ids()
	p.run("up", "--detach")
	if again := p.ids(); !slices.Equal(again, first) || len(first) != 4 {
		p.Errorf("`up` makes %v of %v", again, first)
	}
	has := map[int]string{}
	for n := 1; n <= 3; n++ {
		has[n] = p.at(p.containerOf("web", n), p.name)
	}
	p.write(deployedFile, says("two", "3"))
	p.plans(2, "3 to recreate")
	said := p.deploys()
	if i, j := strings.Index(said, "done "+p.name+"/web/1 (canary)"), strings.Index(said, "stop "+p.name+"/web/2"); i < 0 ||
		j < i {
		p.Errorf("the canary is not first:\n%s", said)
	}
	for n := 1; n <= 3; n++ {
		if now := p.at(p.containerOf("web", n), p.name); now != has[n] {
			p.Errorf("web %d had %s, and has %s", n, has[n], now)
		}
	}
	canaryFails(p, says)
	h.docker("rm", "--force", p.containerOf("web", 3))
	p.write(deployedFile, says("two", "1"))
	p.plans(2, "2 to delete", "reserved, and no container")
	p.deploys()
	p.plans(0, "nothing to do")
	if left := p.reserved(planned, p.name+"/web/3"); len(left) > 0 {
		p.Errorf("web 3 is gone, and %v is reserved for it", left)
	}
	p.run("up", "--detach")
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
	changePlaces(h, planned, command)
}

const ringFile = `
version: "3.9"
services:
  a: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${a}"}}}
  b: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${b}"}}}
  c: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${c}"}}}
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// changePlaces: static addresses that are exchanged, by two and in a ring of three, are given in one deploy.
func changePlaces(h *House, planned string, command []string) {
	h.Helper()
	says := func(a, b, c string) map[string]string {
		return map[string]string{"planned": planned, "subnet": h.v4("0/24"), "a": h.v4(a), "b": h.v4(b), "c": h.v4(c)}
	}
	p := h.newProject(ringFile, says("11", "12", "13"))
	p.command = command
	p.deploys()
	for _, want := range [][3]string{{"12", "11", "13"}, {"13", "12", "11"}} {
		p.write(ringFile, says(want[0], want[1], want[2]))
		p.deploys()
		p.plans(0)
		for i, service := range []string{"a", "b", "c"} {
			if has := p.at(p.containerOf(service, 1), p.name); has != h.v4(want[i]) {
				p.Errorf("%s has %s, and was to have %s", service, has, h.v4(want[i]))
			}
			if all := p.reserved(planned, p.name+"/"+service+"/1"); !slices.Equal(all, []string{h.v4(want[i])}) {
				p.Errorf("%s has %v reserved, and was to have %s", service, all, h.v4(want[i]))
			}
		}
	}
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// canaryFails: a canary that ends stops the deploy, which shows the last that it has said and leaves the others as they
// were; afterwards the next deploy does the rest (BD-9).
func canaryFails(p *project, says func(round, replicas string) map[string]string) {
	p.Helper()
	before := []string{p.containerOf("web", 2), p.containerOf("web", 3)}
	broken := says("three", "3")
	broken["web"] = `["sh", "-c", "echo it has no key; exit 3"]`
	p.write(deployedFile, broken)
	said, code := p.deploy("apply", "--yes")
	if code != 1 || !strings.Contains(said, "| it has no key") || !strings.Contains(said, "exit code 3") {
		p.Errorf("a canary that fails ends with %d:\n%s", code, said)
	}
	if after := []string{p.containerOf("web", 2), p.containerOf("web", 3)}; !slices.Equal(before, after) {
		p.Errorf("the others were %v, and are %v", before, after)
	}
	p.write(deployedFile, says("two", "3"))
	p.plans(2, "1 to recreate")
	p.deploys()
	p.plans(0)
}

// deploy runs a verb of `berth deploy`.
func (p *project) deploy(verb string, args ...string) (said string, code int) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(5*time.Minute))
	defer cancel()
	args = append([]string{"deploy", verb, "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(),
		"--compose-command", strings.Join(p.command, " "), "--docker-host", "unix://" + p.Engine.Socket}, append(slices.Clone(p.flags), args...)...)
	out, err := exec.CommandContext(ctx, binary, append([]string{"--admin-socket", p.Berth.(*Daemon).AdminSocket()},
		args...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		p.Fatal(err)
	}
	return string(out), 0
}

// plans wants an exit code and words of a plan.
func (p *project) plans(want int, words ...string) {
	p.Helper()
	said, code := p.deploy("plan")
	if code != want {
		p.Errorf("the plan ends with %d, and %d was to come:\n%s", code, want, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			p.Errorf("the plan says nothing of %q:\n%s", w, said)
		}
	}
}

// deploys carries out what the files say, and returns what it tells.
func (p *project) deploys() string {
	p.Helper()
	said, code := p.deploy("apply", "--yes")
	if code != 0 {
		p.Fatalf("the deploy ends with %d:\n%s", code, said)
	}
	return said
}
