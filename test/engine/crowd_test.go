//go:build engine

package engine

import (
	"fmt"
	"testing"
)

// crowdRounds returns how often a test repeats what happens to several containers.
func crowdRounds() int { return sample(*keptRounds/5, 5, 20) }

// crowd returns how many containers come back at once at most.
func crowd() int { return sample(0, 4, 8) }

// five are the services of a project. All are recreated at once.
var five = []string{"a", "b", "c", "d", "e"}

// fiveFile is a Compose file of five services on an existing network.
func fiveFile(network string) string {
	text := "version: \"3.7\"\nservices:\n"
	for _, s := range five {
		text += fmt.Sprintf("  %s: {image: \"${image}\", command: ${run}, networks: {lan: {}}}\n", s)
	}
	return text + "networks: {lan: {external: true, name: " + network + "}}\n"
}

// fives are the containers of the five services.
func (p *project) fives() (all []string) {
	for _, s := range five {
		all = append(all, p.name+"_"+s+"_1")
	}
	return all
}

// recreated starts the services of a project and recreates them all at once, repeatedly.
func (p *project) recreated(network string) tally {
	p.Helper()
	p.run("up", "--detach")
	got := p.stays(crowdRounds(), network, p.fives(), func() {
		p.run("up", "--detach", "--force-recreate", "--timeout", "1")
	})
	p.run("down", "--timeout", "1")
	return got
}

// atOnce restarts two, four and eight containers at once; under -short only four.
func (k *kept) atOnce(network string, containers []string, check func(what string, got tally)) {
	k.Helper()
	sizes := []int{2, 4, 8}
	if testing.Short() {
		sizes = []int{crowd()}
	}
	for _, n := range sizes {
		check(fmt.Sprintf("%d restarted at once", n), k.stays(crowdRounds(), network, containers[:n],
			func() { k.together(containers[:n], "restart", "--time", "0") }))
		k.sound()
	}
}

// crowded starts containers on a network and returns their names.
func (h *Harness) crowded(network string, options ...string) (all []string) {
	h.Helper()
	for range crowd() {
		all = append(all, h.container(network, options...))
	}
	return all
}

// outside checks that the containers share out their old addresses among themselves.
func (k *kept) outside(what string, got tally) {
	k.Helper()
	if k.way.witnessed() && got.outside > 0 {
		k.Errorf("%s: %+v", what, got)
	}
}

// sure checks that each container has its old address.
func (k *kept) sure(what string, got tally) {
	k.Helper()
	if got.missed() > 0 {
		k.Errorf("%s: %+v", what, got)
	}
}

// If several containers start one after the other, and a witness asks the engine which one starts, each gets its own
// address again. If they start at once, Berth cannot tell them apart: they share out their old addresses, and pinned
// containers keep theirs.
func TestCrowd(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 50)
	for i, w := range ways(e.Engine) {
		if testing.Short() && (w.beside || !w.witnessed()) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			k := startKept(t, e.Engine, e.Sockets, w, 144+i)
			k.idlers()
			all := k.crowded(k.network)
			some := all[:4]
			for _, start := range [][]string{some, {some[3], some[1], some[0], some[2]}} {
				got := k.stays(crowdRounds(), k.network, some, func() {
					k.docker(append([]string{"stop", "--time", "0"}, some...)...)
					k.docker(append([]string{"start"}, start...)...)
				})
				k.outside("one after the other", got)
				if w.witnessed() {
					k.sure("one after the other", got)
				}
				k.sound()
			}
			k.atOnce(k.network, all, k.outside)
			if !testing.Short() {
				k.outside("up --force-recreate", k.newProject(fiveFile(k.network), nil).recreated(k.network))
				k.sound()
			}
		})
	}
	t.Run("for good", func(t *testing.T) {
		k := startKept(t, e.Engine, e.Sockets, ways(e.Engine)[0], 148)
		front := k.plan("--subnet", k.v4("128/25")+",gateway="+k.v4("129")+",pool="+k.span(130, 199))
		network := k.on(front, "--subnet", k.v4("128/25"))
		all := k.crowded(network)
		k.pin(all)
		k.atOnce(network, all, k.sure)

		p := k.newProject(fiveFile(network), nil)
		p.run("up", "--detach")
		k.pin(p.fives())
		k.sure("docker-compose restart, pinned", p.stays(crowdRounds(), network, p.fives(),
			func() { p.run("restart", "--timeout", "1") }))
		k.sound()
		p.run("down", "--timeout", "1")

		p = k.newProject(fiveFile(network), nil)
		p.override("--network", "lan="+front)
		k.sure("up --force-recreate with an override file", p.recreated(network))
		k.sound()
	})
}
