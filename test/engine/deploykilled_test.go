//go:build engine

package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

var deployKills = flag.Int("deploy-kills", 0, "after how many of the steps of a deploy TestDeployKilled kills it; 1000: after each")

const killedFile = `
version: "3.9"
services:
  web:
    image: ${image}
    command: ${run}
    environment: {ROUND: "${round}"}
    networks: [front]
    depends_on: [db]
    deploy: {replicas: ${replicas}}
  db:
    image: ${image}
    command: ${run}
    environment: {ROUND: "${round}"}
    networks: {front: {ipv4_address: "${db}"}}
    volumes: ["kept:/kept", /unnamed]
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
volumes:
  kept: {name: "${project}-kept"}
`

// A deploy that is killed after any of its steps keeps others away until its lock is over, or is taken away; the next
// one does the rest. Then nothing is doubled, nothing is left behind, and each volume is what it was (BD-1, BO-1).
func TestDeployKilled(t *testing.T) {
	eachGeneration(t, newer, "killed", enterPlanned, 207, killedDeploys)
}

// round is what the files want in a round: each makes all anew, another static address, and one replica more or fewer.
func (p *project) round(planned string, n int) {
	p.Helper()
	p.write(killedFile, map[string]string{"planned": planned, "subnet": p.v4("0/24"),
		"db": p.v4([]string{"80", "81"}[n%2]), "round": time.Duration(n).String(), "replicas": []string{"2", "3"}[n%2]})
}

func killedDeploys(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	p := h.newProject("", nil)
	p.command = command
	p.round(planned, 0)
	p.deploys()
	p.docker("exec", p.containerOf("db", 1), "sh", "-c", "echo precious >/kept/file; echo precious >/unnamed/file")
	n := 1
	p.round(planned, n)
	up := p.killed(-1)
	n++
	p.round(planned, n)
	down := p.killed(-1)
	all := max(up, down) // a round that scales down has other steps than one that scales up
	every := max(1, all/sample(*deployKills, 2, 4))
	waited := false
	for k := 0; k < all; k += every {
		n++
		p.round(planned, n)
		p.killed(k)
		if strings.Contains(p.berth("deploy", "status"), p.name) { // else it was through before that
			p.recovers(&waited)
		}
		p.whole(planned, n)
	}
	p.run("down", "--timeout", "1", "--volumes")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// recovers has the next deploy do the rest: of the first that was killed when its lock is over, of others when it was
// taken away.
func (p *project) recovers(waited *bool) {
	p.Helper()
	said, code := p.deploy("apply", "--yes")
	if code != 1 || !strings.Contains(said, "is being deployed by") || !strings.Contains(said, "berth deploy unlock "+p.name) {
		p.Errorf("beside the lock of one that was killed a deploy ends with %d:\n%s", code, said)
	}
	if *waited {
		p.berth("deploy", "unlock", p.name)
		p.deploys()
		return
	}
	*waited = true
	if said, code := p.deploy("apply", "--yes", "--lock-wait", "2m"); code != 0 {
		p.Errorf("when the lock of one that was killed is over a deploy ends with %d:\n%s", code, said)
	}
	var runs []struct{ Outcome string }
	if err := json.Unmarshal([]byte(p.berth("deploy", "history", p.name, "--format", "json")), &runs); err != nil {
		p.Fatal(err)
	}
	if len(runs) < 2 || runs[0].Outcome != "done" || runs[1].Outcome != "silent" {
		p.Errorf("the history after a deploy that was killed is %v", runs)
	}
}

// whole wants all to be as the files of a round say, and nothing besides.
func (p *project) whole(planned string, n int) {
	p.Helper()
	p.plans(0)
	replicas := 2 + n%2
	if all := p.ids(); len(all) != replicas+1 {
		p.Errorf("there are %d containers, and %d replicas and a database were to be", len(all), replicas)
	}
	seen := map[string]bool{}
	for i := 1; i <= replicas; i++ {
		addr := p.at(p.containerOf("web", i), p.name)
		if all := p.reserved(planned, p.webOwner(i)); !slices.Equal(all, []string{addr}) || seen[addr] {
			p.Errorf("web %d has %s, and reserved is %v", i, addr, all)
		}
		seen[addr] = true
	}
	if left := p.reserved(planned, p.webOwner(3)); n%2 == 0 && len(left) > 0 {
		p.Errorf("web 3 is gone, and has %v", left)
	}
	if has, want := p.at(p.containerOf("db", 1), p.name), p.v4([]string{"80", "81"}[n%2]); has != want {
		p.Errorf("the database has %s, and was to have %s", has, want)
	}
	for _, file := range []string{"/kept/file", "/unnamed/file"} {
		if kept := p.docker("exec", p.containerOf("db", 1), "sh", "-c", "read kept <"+file+"; echo $kept"); kept != "precious" {
			p.Errorf("%s has %q", file, kept)
		}
	}
	out, err := berth(p.Berth, "check")
	if err != nil && strings.Contains(err.Error(), p.v4("")) || strings.Contains(out, p.v4("")) {
		p.Errorf("the check finds: %s (%v)", out, err)
	}
}

// killed carries out what the files say, and kills it when it has told of so many steps; negative: never. It returns
// how many it told of.
func (p *project) killed(after int) (steps int) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--admin-socket", p.Berth.(*Daemon).AdminSocket(), "deploy", "apply",
		"-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--compose-command",
		strings.Join(p.command, " "), "--docker-host", "unix://"+p.Engine.Socket, "--yes", "--format", "json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for said.Scan() {
		if steps++; steps > after && after >= 0 {
			_ = cmd.Process.Kill() // it has ended, or ends by that
		}
	}
	err = cmd.Wait()
	if after < 0 && err != nil || steps == 0 {
		p.Fatalf("the deploy ends with %v after %d steps", err, steps)
	}
	return steps
}
