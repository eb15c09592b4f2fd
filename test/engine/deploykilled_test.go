//go:build engine

package engine

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
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
volumes:
  kept: {name: "${project}-kept"}
` + frontNetwork

// If a deploy, or its daemon, is killed after any step, the next deploy finishes the job. The lock of a killed deploy
// keeps others away until it ends or is removed. Afterwards nothing is doubled, nothing is left behind, and each
// volume has its content (BD-1, BO-1).
func TestDeployKilled(t *testing.T) {
	eachGeneration(t, newer, 207, func(h *Harness, command []string) {
		p := h.deployed(command, "", nil)
		p.round(0)
		p.deploys()
		p.docker("exec", p.containerOf("db", 1), "sh", "-c", "echo precious >/kept/file; echo precious >/unnamed/file")
		p.round(1)
		up := p.killed(-1, nil)
		p.round(2)
		steps := max(up, p.killed(-1, nil)) // a round that scales down has other steps than one that scales up
		waited, n := false, 2
		for k := 0; k < steps; k += max(1, steps/sample(*deployKills, 2, 4)) {
			n++
			p.round(n)
			p.killed(k, nil)
			if strings.Contains(p.berth("deploy", "status"), p.name) { // else the deploy had finished
				p.recovers(&waited)
			}
			p.whole(n)
		}
		n++
		p.round(n)
		p.killed(steps/2, func() error {
			if err := p.Berth.Kill(); err != nil {
				return err
			}
			return p.Berth.Revive()
		})
		p.unlock()
		p.deploys()
		p.whole(n)
	})
}

// round writes the file of a round. Each round recreates everything, with another static address and one replica more
// or fewer.
func (p *project) round(n int) {
	p.Helper()
	p.write(killedFile, map[string]string{"db": p.v4([]string{"80", "81"}[n%2]), "round": fmt.Sprint(n),
		"replicas": []string{"2", "3"}[n%2]})
}

// recovers checks that the next deploy finishes the job: first after the lock has ended, later after an unlock.
func (p *project) recovers(waited *bool) {
	p.Helper()
	p.fails("another deploy of the project", "berth deploy unlock "+p.name)
	if *waited {
		p.unlock()
		p.deploys()
		return
	}
	*waited = true
	said, code := p.deploy("apply", "--yes", "--lock-wait", "2m")
	p.ended("a deploy after the lock of a killed one has ended", said, code, 0)
	if runs := p.history(); len(runs) < 2 || !strings.HasSuffix(runs[0], ": done") ||
		!strings.HasSuffix(runs[1], ": silent") {
		p.Errorf("the history after a killed deploy is %v", runs)
	}
}

// whole checks that everything is as in the file of a round, and that there is nothing else.
func (p *project) whole(n int) {
	p.Helper()
	p.plans(0)
	replicas := 2 + n%2
	if all := p.ids(); len(all) != replicas+1 {
		p.Errorf("there are %d containers, not %d replicas and a database", len(all), replicas)
	}
	seen := map[string]bool{}
	for i := 1; i <= replicas; i++ {
		addr := p.at(p.containerOf("web", i), p.name)
		if all := p.reserved(p.planned, p.webOwner(i)); !slices.Equal(all, []string{addr}) || seen[addr] {
			p.Errorf("web %d has %s, and %v is reserved for it", i, addr, all)
		}
		seen[addr] = true
	}
	if left := p.reserved(p.planned, p.webOwner(3)); n%2 == 0 && len(left) > 0 {
		p.Errorf("web 3 is deleted, and has %v", left)
	}
	p.runsAt(map[string]string{"db/1": []string{"80", "81"}[n%2]})
	for _, file := range []string{"/kept/file", "/unnamed/file"} {
		kept := p.docker("exec", p.containerOf("db", 1), "sh", "-c", "read kept <"+file+"; echo $kept")
		if kept != "precious" {
			p.Errorf("%s has %q", file, kept)
		}
	}
	out, err := berth(p.Berth, "check")
	if err != nil && strings.Contains(err.Error(), p.v4("")) || strings.Contains(out, p.v4("")) {
		p.Errorf("berth check: %s (%v)", out, err)
	}
}

// killed runs a deploy. After the given number of reported steps it kills the deploy, or calls instead. A negative
// number kills nothing. It returns the number of reported steps.
func (p *project) killed(after int, instead func() error) (steps int) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(5*time.Minute))
	defer cancel()
	cmd := p.deployCommand(ctx, "apply", true, "--yes", "--format", "json")
	out, err := cmd.StdoutPipe()
	lab.Must(p, err)
	lab.Must(p, cmd.Start())
	said := bufio.NewScanner(out)
	for said.Scan() {
		switch steps++; {
		case after < 0 || steps <= after:
		case instead == nil:
			_ = cmd.Process.Kill() // it may have ended already
		case steps == after+1:
			lab.Must(p, instead())
		}
	}
	err = cmd.Wait()
	if after < 0 && err != nil || steps == 0 {
		p.Fatalf("the deploy ends with %v after %d steps", err, steps)
	}
	return steps
}
