//go:build engine

package engine

import (
	"flag"
	"testing"
)

var keptRounds = flag.Int("kept.rounds", 0,
	"how often each thing happens after which a container should have the address of before")

// happening is what people do to one container.
type happening struct {
	name    string
	restart bool // it comes back at once, so that it is known without a witness
	begin   func(*kept) (container string)
	happen  func(k *kept, container string)
}

func happenings() []happening {
	ordinary := func(k *kept) string { return k.container(k.network) }
	var project *project
	return []happening{
		{"`docker restart`", true, ordinary, func(k *kept, c string) { k.docker("restart", "--time", "1", c) }},
		{"`docker stop`, `docker start`", false, ordinary, func(k *kept, c string) {
			k.docker("stop", "--time", "1", c)
			k.docker("start", c)
		}},
		{"`docker rm`, `docker run` of one name", false, ordinary, func(k *kept, c string) {
			k.docker("rm", "-f", c)
			k.docker(containerCommand(c, k.network)...)
		}},
		{"`docker-compose up --force-recreate`", false, func(k *kept) string {
			project = k.newProject(`
services:
  web:
    image: ${image}
    command: ${run}
networks:
  default: {external: true, name: ${network}}
`, map[string]string{"network": k.network})
			project.run("up", "--detach")
			return project.name + "_web_1"
		}, func(*kept, string) { project.run("up", "--detach", "--force-recreate", "--timeout", "1") }},
	}
}

// A container has the address that it had before, on an engine that does not say who asks: whatever one does to it,
// one after the other, while others are idle on its network. A witness knows who it must be; without one a restart
// is known by the release before it. The engine's own IPAM beside it is measured, and nothing asked of it.
func TestKept(t *testing.T) {
	t.Parallel()
	found := &results{title: "one container"}
	t.Cleanup(func() { t.Logf("\n%s", found) })
	for i, w := range ways(machineEngine) {
		if w.builtIn && testing.Short() {
			continue // nothing is asked of it
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			k := startKept(t, machineEngine, pluginDir, w, 140+i)
			k.idlers()
			for _, s := range happenings() {
				c := s.begin(k)
				got := k.stays(sample(*keptRounds, 2, 10), k.network, []string{c}, func() { s.happen(k, c) })
				found.add(s.name, w.name, got)
				if got.missed() > w.mayMiss(got.of, s.restart) {
					t.Errorf("after %s the address was that of before %s", s.name, got)
				}
				k.docker("rm", "-f", c)
			}
			k.sound()
			if w.witnessed() {
				t.Logf("guesses: %+v", k.witness().Guesses)
			}
		})
	}
}

// mayMiss is how many of a number of rounds may end with another address: one of a hundred with a witness, five after
// restarts without one. A few rounds say whether it works at all, on a machine that is busy by chance, too: two may
// miss, and one of the two under -short.
func (w way) mayMiss(rounds int, restart bool) int {
	percent := 100
	switch {
	case w.witnessed():
		percent = 1
	case restart && !w.builtIn:
		percent = 5
	}
	if rounds < 100 && percent < 100 {
		return min(2, rounds-1)
	}
	return rounds * percent / 100
}
