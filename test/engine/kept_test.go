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
	restart bool // the container comes back at once; Berth recognises it without a witness
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

// On an engine that does not say who asks, a container gets its old address again, whatever happens to it while others
// are idle on its network. A witness knows which container it must be. Without one, Berth recognises a restart by the
// release right before it.
func TestKept(t *testing.T) {
	t.Parallel()
	for i, w := range ways(machineEngine) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			k := startKept(t, machineEngine, pluginDir, w, 140+i)
			k.idlers()
			for _, s := range happenings() {
				c := s.begin(k)
				got := k.stays(sample(*keptRounds, 2, 10), k.network, []string{c}, func() { s.happen(k, c) })
				if got.missed() > w.mayMiss(got.of, s.restart) {
					t.Errorf("after %s: %+v", s.name, got)
				}
				k.docker("rm", "-f", c)
			}
			k.sound()
		})
	}
}

// mayMiss returns how many of a number of rounds may end with another address: one of a hundred with a witness, five
// after restarts without one. Of a few rounds two may miss on a busy machine, and of two rounds one.
func (w way) mayMiss(rounds int, restart bool) int {
	percent := 100
	switch {
	case w.witnessed():
		percent = 1
	case restart:
		percent = 5
	}
	if rounds < 100 && percent < 100 {
		return min(2, rounds-1)
	}
	return rounds * percent / 100
}
