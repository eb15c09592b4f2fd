//go:build engine

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/test/lab"
)

// TestOverride runs Compose projects whose services keep their addresses.
func TestOverride(t *testing.T) {
	t.Parallel()
	for i, s := range []scenario{
		{"by override", keptByOverride},
		{"by MAC", keptByMAC},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(enter(t, machineEngine, daemon(t, fmt.Sprintf("owners%d", i), pluginDir,
				"--put-back", "off"), 71+i)) // only the addresses of the file
		})
	}
}

// project is a Compose project and the files that describe it.
type project struct {
	*Harness
	name    string
	files   []string
	command []string // of Compose; if empty, the quickest
	flags   []string // for each verb of `berth deploy`
	planned string   // the value of ${planned} in the file
}

// newProject writes a Compose file. The scenario sets the variables ${...} in it.
func (h *Harness) newProject(text string, variables map[string]string) *project {
	h.Helper()
	p := &project{Harness: h, name: h.name()}
	p.write(text, variables)
	h.Cleanup(func() { // removes what a refused command left
		lab.Check(h, removeContainers(h.Engine, p.name), removeVolumes(h.Engine, p.name))
	})
	return p
}

// write replaces the project's file.
func (p *project) write(text string, variables map[string]string) {
	p.Helper()
	for name, value := range variables {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	text = strings.NewReplacer("${image}", imageName, "${project}", p.name, "${driver}", p.Berth.Driver(),
		"${run}", `["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]`, "${bridge}",
		bridgeOf(p.name), "${planned}", p.planned, "${subnet}", p.v4("0/24")).Replace(text)
	p.files = []string{p.composeFile(text)}
}

// override lets Berth write the override file, which Compose reads after the project's file.
func (p *project) override(args ...string) []byte {
	p.Helper()
	file := filepath.Join(filepath.Dir(p.files[0]), "berth.override.yaml")
	p.berth(append([]string{"compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(),
		"--docker-host", p.Engine.URL(), "-o", file},
		args...)...)
	text, err := os.ReadFile(file)
	lab.Must(p, err)
	if !slices.Contains(p.files, file) {
		p.files = append(p.files, file)
	}
	return text
}

// run runs Compose with all files, which must succeed.
func (p *project) run(args ...string) {
	p.Helper()
	command := []string{"DOCKER_HOST=unix://" + p.Engine.Socket}
	if command = append(command, p.command...); len(p.command) == 0 {
		command = append(command, quickest(p.T)...)
	}
	command = append(command, "--project-name", p.name)
	for _, f := range p.files {
		command = append(command, "--file", f)
	}
	p.inCompose(p.name, append(command, args...))
}

// has returns a container's endpoint on a network. The container, Docker and Berth's records must agree on its
// addresses and its MAC.
func (p *project) has(container, network string) Endpoint {
	p.Helper()
	p.address(container, network)
	ep := p.endpoint(container, network)
	if ep.GlobalIPv6Address != "" {
		p.recorded(ep.GlobalIPv6Address, ep.MacAddress)
		lab.Check(p, p.Engine.ShowsAddress(container,
			fmt.Sprintf("%s/%d", ep.GlobalIPv6Address, ep.GlobalIPv6PrefixLen)))
	}
	return ep
}

// reserved returns the addresses that an owner has reserved on a planned network, IPv4 first.
func (h *Harness) reserved(planned, owner string) (all []string) {
	h.Helper()
	var got []struct{ Address string }
	h.json(&got, "reservation", "ls", planned, "--owner", owner)
	for _, r := range got {
		all = append(all, r.Address)
	}
	return all
}

// over runs a check after each step in the life of a project. Under -short it leaves out the steps that others
// contain; if brief, it runs only the first and the last.
func (p *project) over(victim string, brief bool, check func()) {
	p.Helper()
	steps := []func(){
		func() { p.run("up", "--detach") },
		func() { p.docker("kill", victim); p.run("up", "--detach") },
		func() { p.docker("rm", "-f", victim); p.run("up", "--detach") },
		func() { p.run("up", "--detach", "--force-recreate") },
		func() { p.run("restart", "--timeout", "1") },
		func() { p.run("down", "--timeout", "1"); p.run("up", "--detach") },
		func() {
			lab.Must(p, p.Berth.Kill(), p.Berth.Revive())
			p.run("up", "--detach", "--force-recreate")
		},
	}
	for i, step := range steps {
		part := i == 1 || i == 4 // the kill and the restart
		if testing.Short() && (part || brief && i > 0 && i < len(steps)-1) {
			continue
		}
		step()
		check()
	}
}

const ownersFile = `
version: "3.7"
services:
  web:
    image: ${image}
    command: ${run}
    networks: {front: {aliases: [www]}}
  db:
    image: ${image}
    command: ${run}
    container_name: ${project}-db
    networks:
      front: {ipv4_address: ${db}}
  both:
    image: ${image}
    command: ${run}
    networks: [front, back]
  worker:
    image: ${image}
    command: ${run}
    scale: 3
    networks: [front]
networks:
  front:
    driver_opts: {com.docker.network.bridge.name: ${bridge}}
    ipam: {driver: ${driver}, options: {network: ${front}}}
  back:
    ipam: {driver: ${driver}, options: {network: ${back}, pool: web}}
`

// BO-2: with its override, each service of a project keeps its own addresses through its whole life. The replicas of
// another service, which can have no fixed addresses, take none of these.
func keptByOverride(h *Harness) {
	front := h.plan("--subnet", h.v4("0/25")+",gateway="+h.v4("1")+",pool="+h.v4("10")+"-"+h.v4("99"),
		"--subnet", h.v6("::/64")+",gateway="+h.v6("::1")+",pool="+h.v6("::10")+"-"+h.v6("::99"))
	back := h.plan("--subnet", h.v4("128/25")+",gateway="+h.v4("129"), "--mac-prefix", "aa:00:71")
	h.berth("pool", "add", back, h.v4("140+9"), "--name", "web")
	p := h.newProject(ownersFile, map[string]string{"front": front, "back": back, "db": h.v4("80")})
	p.command = oldest(h.T)
	first := p.override()
	if again := p.override(); string(first) != string(again) {
		h.Errorf("written again, the override differs:\n%s\n%s", first, again)
	}
	web, db, both := p.name+"_web_1", p.name+"-db", p.name+"_both_1"
	inFront, inBack := p.name+"_front", p.name+"_back"
	if got := h.reserved(front, db); len(got) != 2 || got[0] != h.v4("80") {
		h.Fatalf("%s has %v reserved", db, got)
	}
	// The MAC is that of the network whose name is the first in Docker.
	macs := map[string]string{}
	p.over(web, false, func() {
		h.Helper()
		for _, c := range []struct{ container, owner, planned, network string }{
			{web, p.name + "/web/1", front, inFront},
			{db, db, front, inFront},
			{both, p.name + "/both/1", front, inFront},
			{both, p.name + "/both/1", back, inBack},
		} {
			want := h.reserved(c.planned, c.owner)
			ep := p.has(c.container, c.network)
			if got := slices.DeleteFunc([]string{ep.IPAddress, ep.GlobalIPv6Address},
				func(a string) bool { return a == "" }); !slices.Equal(got, want) {
				h.Errorf("%s has %v on %s; reserved for %s is %v", c.container, got, c.network, c.owner, want)
			}
			if c.container == both && c.network == inFront {
				continue // docker-compose 1.29 has no option for the MAC on a container's second network
			}
			if before, known := macs[c.container]; known && before != ep.MacAddress ||
				!strings.Contains(string(first), ep.MacAddress) {
				h.Errorf("%s has the MAC %s, before %s; the override is\n%s", c.container, ep.MacAddress, before, first)
			}
			macs[c.container] = ep.MacAddress
		}
		p.apart("worker", inFront, 3,
			slices.Concat(h.reserved(front, p.name+"/web/1"), h.reserved(front, db),
				h.reserved(front, p.name+"/both/1")))
		h.calls(web, h.v4("80"))
	})
	if !strings.HasPrefix(macs[both], "aa:00:71:") {
		h.Errorf("on a network with a MAC prefix %s has the MAC %s", both, macs[both])
	}
	if third := p.override(); string(first) != string(third) {
		h.Errorf("written while it runs, the override differs:\n%s\n%s", first, third)
	}
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--release")
	if left := h.show(front).Use.Reserved + h.show(back).Use.Reserved; left != 0 {
		h.Errorf("after --release %d addresses are reserved", left)
	}
}

// apart checks that the replicas of a service have different addresses and none that is kept for another owner.
func (p *project) apart(service, network string, count int, kept []string) {
	p.Helper()
	seen := map[string]bool{}
	for _, a := range kept {
		seen[a] = true
	}
	for i := range count {
		a := p.has(fmt.Sprintf("%s_%s_%d", p.name, service, i+1), network).IPAddress
		if seen[a] {
			p.Errorf("%s %d has %s, which is another's", service, i+1, a)
		}
		seen[a] = true
	}
}

// BO-2: a MAC in the Compose file keeps its reserved address without an override. Replicas of another service get the
// other addresses, however many come and go.
func keptByMAC(h *Harness) {
	h.onMAC()
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1")+",pool="+h.v4("10")+"-"+h.v4("19"))
	const mac, absent = "02:42:0a:d5:49:01", "02:42:0a:d5:49:02"
	h.berth("reservation", "add", front, "--owner", mac)
	h.berth("reservation", "add", front, "--owner", absent)
	kept := slices.Concat(h.reserved(front, mac), h.reserved(front, absent))
	if len(kept) != 2 {
		h.Fatalf("reserved are %v", kept)
	}
	p := h.newProject(`
services:
  db:
    image: ${image}
    command: ${run}
    mac_address: `+mac+`
    networks: [front]
  worker:
    image: ${image}
    command: ${run}
    networks: [front]
networks:
  front:
    ipam: {driver: ${driver}, options: {network: ${front}}, config: [{subnet: ${subnet}}]}
`, map[string]string{"front": front})
	p.command = oldest(h.T)
	db, network := p.name+"_db_1", p.name+"_front"
	check := func(workers int) {
		h.Helper()
		if ep := p.has(db, network); ep.IPAddress != kept[0] || ep.MacAddress != mac {
			h.Errorf("%s has %s and the MAC %s; reserved for %s is %s", db, ep.IPAddress, ep.MacAddress, mac, kept[0])
		}
		p.apart("worker", network, workers, kept)
	}
	p.over(db, true, func() { h.Helper(); check(1) })
	for range sample(0, 1, 3) {
		p.run("up", "--detach", "--scale", "worker=3")
		check(3)
		p.run("up", "--detach", "--scale", "worker=3", "--force-recreate")
		check(3)
		p.run("up", "--detach", "--scale", "worker=1")
		check(1)
	}
	p.run("down", "--timeout", "1")
	if got := h.reserved(front, mac); !slices.Equal(got, kept[:1]) {
		h.Errorf("after down, reserved for %s is %v", mac, got)
	}
}
