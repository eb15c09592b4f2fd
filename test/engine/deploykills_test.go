//go:build engine

package engine

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

var (
	applyKills  = flag.Int("deploy-kills.apply", 0, "how often TestDeployKills kills a deploy")
	daemonKills = flag.Int("deploy-kills.daemon", 0, "how often it kills the daemon in the midst of one")
	bothKills   = flag.Int("deploy-kills.both", 0, "how often it kills both")
	killsSeed   = flag.Uint64("deploy-kills.seed", 0, "of the moments; 0: another one each time")
)

// Three of web roll behind a canary, and a and b change places, in each round.
const killsFile = `
version: "3.9"
x-berth: {update: {canary_watch: 200ms-60s, watch: 200ms-60s}}
services:
  web:
    image: ${image}
    command: ${run}
    environment: {ROUND: "${round}"}
    networks: [front]
    deploy: {replicas: 3}
  a: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${a}"}}}
  b: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${b}"}}}
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// A deploy, the daemon, or both are killed at a random moment of a rolling deploy with a canary and a swap: one more
// deploy ends the job, nothing is doubled or left, and no lock stays (BD-1, BD-8, BO-1).
func TestDeployKills(t *testing.T) {
	eachGeneration(t, newer, "kills", enterPlanned, 179, func(h *House, command []string) {
		p := h.newProject("", nil)
		k := &kills{project: p, planned: h.plan("--subnet", h.v4("0/24")+",pool")}
		p.command = command
		seed := *killsSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		h.Logf("the seed is %d", seed)
		k.moments = rand.New(rand.NewPCG(seed, 0))
		k.writes()
		p.deploys()
		k.writes()
		begun := time.Now()
		k.steps = p.killed(-1)
		k.each = time.Since(begun) / time.Duration(k.steps)
		rounds := slices.Concat(slices.Repeat([]string{"apply"}, sample(*applyKills, 1, 40)),
			slices.Repeat([]string{"daemon"}, sample(*daemonKills, 1, 40)),
			slices.Repeat([]string{"apply and daemon"}, sample(*bothKills, 1, 20)))
		begun = time.Now()
		for _, victim := range rounds {
			k.round(victim)
			if h.Failed() {
				break
			}
		}
		h.Logf("%d rounds in %s", k.n-2, time.Since(begun).Round(time.Second))
		p.run("down", "--timeout", "1")
		p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
	})
}

// kills is a project whose deploys are cut off.
type kills struct {
	*project
	planned string
	moments *rand.Rand
	n       int           // of the round
	steps   int           // that a whole deploy tells of
	each    time.Duration // how long one of these takes
}

// writes has the files want all of web anew, and a and b to change places.
func (k *kills) writes() {
	k.Helper()
	k.n++
	k.write(killsFile, map[string]string{"planned": k.planned, "subnet": k.v4("0/24"), "round": fmt.Sprint(k.n),
		"a": k.v4(k.ends()[0]), "b": k.v4(k.ends()[1])})
}

// ends are the addresses of a and b in this round.
func (k *kills) ends() []string { return [][]string{{"201", "202"}, {"202", "201"}}[k.n%2] }

// round cuts a deploy off, and has one more end the job.
func (k *kills) round(victim string) {
	k.Helper()
	k.writes()
	after, wait := k.moments.IntN(k.steps), time.Duration(k.moments.Int64N(int64(k.each)))
	said := k.cutOff(victim, after, wait)
	if strings.Contains(k.berth("deploy", "status"), k.name) { // of one that was killed
		k.berth("deploy", "unlock", k.name)
	}
	again, code := k.deploy("apply", "--yes")
	if code != 0 {
		k.Errorf("round %d: %s killed %s after step %d, which said\n%s\nand one more deploy ends with %d:\n%s", k.n, victim,
			wait, after, said, code, again)
		return
	}
	k.isWhole(fmt.Sprintf("round %d, %s killed %s after step %d", k.n, victim, wait, after))
}

// cutOff carries out what the files say, and kills so long after one of its steps.
func (k *kills) cutOff(victim string, after int, wait time.Duration) (said string) {
	k.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--admin-socket", k.Berth.(*Daemon).AdminSocket(), "deploy", "apply",
		"-f", k.files[0], "-p", k.name, "--ipam-driver", k.Berth.Driver(), "--compose-command",
		strings.Join(k.command, " "), "--docker-host", "unix://"+k.Engine.Socket, "--yes", "--format", "json")
	var wrong strings.Builder
	cmd.Stderr = &wrong
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	killed := make(chan error, 1)
	lines, step := bufio.NewScanner(out), 0
	for ; lines.Scan(); step++ {
		said += lines.Text() + "\n"
		if step != after {
			continue
		}
		time.AfterFunc(wait, func() {
			if strings.Contains(victim, "apply") {
				_ = cmd.Process.Kill() // it may have ended
			}
			if !strings.Contains(victim, "daemon") {
				killed <- nil
				return
			}
			if err := k.Berth.Kill(); err != nil {
				killed <- err
				return
			}
			killed <- k.Berth.Revive()
		})
	}
	_ = cmd.Wait()    // as it may
	if step > after { // else it was through before that
		if err := <-killed; err != nil {
			k.Fatal(err)
		}
	}
	return said + wrong.String()
}

// isWhole wants all to be as the files say, each with its address and its lease, and nothing besides.
func (k *kills) isWhole(what string) {
	k.Helper()
	if said, code := k.deploy("plan"); code != 0 {
		k.Errorf("%s: there is to be done, %d:\n%s", what, code, said)
	}
	if said := k.berth("deploy", "status"); strings.Contains(said, k.name) {
		k.Errorf("%s: it is locked:\n%s", what, said)
	}
	if all := k.ids(); len(all) != 5 {
		k.Errorf("%s: there are %v", what, all)
	}
	has := map[string]bool{}
	for i := range 3 {
		has[k.at(k.containerOf("web", i+1), k.name)] = true
	}
	for i, service := range []string{"a", "b"} {
		addr := k.at(k.containerOf(service, 1), k.name)
		if has[addr] = true; addr != k.v4(k.ends()[i]) {
			k.Errorf("%s: %s has %s", what, service, addr)
		}
	}
	held := 0
	for _, l := range k.leases(k.v4("0/24")) {
		if l.Kind != "gateway" {
			held++
		}
		if l.Kind != "gateway" && !has[l.Address] {
			k.Errorf("%s: %s is held by nobody", what, l.Address)
		}
	}
	if len(has) != 5 || held != 5 {
		k.Errorf("%s: %d addresses are had, and %d held", what, len(has), held)
	}
}
