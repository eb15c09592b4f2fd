//go:build engine

package engine

import (
	"fmt"
	"strings"
	"testing"
)

// crowdRounds is how often what happens to several containers is tried.
func crowdRounds() int { return sample(*keptRounds/5, 5, 20) }

// crowd is how many containers come back at once at most.
func crowd() int { return sample(0, 4, 8) }

// five are the services of a project, which is made afresh all at once.
var five = []string{"a", "b", "c", "d", "e"}

// fiveFile is a Compose file of five services on a network that is there; what is said of each beside it is its own.
func fiveFile(network string, own func(service string) string) string {
	text := "version: \"3.7\"\nservices:\n"
	for _, s := range five {
		text += fmt.Sprintf("  %s: {image: \"${image}\", command: ${run}, networks: {lan: {%s}}}\n", s, own(s))
	}
	return text + "networks: {lan: {external: true, name: " + network + "}}\n"
}

func nothing(string) string { return "" }

// fives are the containers of the five services.
func (p *project) fives() (all []string) {
	for _, s := range five {
		all = append(all, p.name+"_"+s+"_1")
	}
	return all
}

// recreated starts the services of a project and makes all of them afresh at once, again and again.
func (p *project) recreated(network string) tally {
	p.Helper()
	p.run("up", "--detach")
	got := p.stays(crowdRounds(), network, p.fives(), func() {
		p.run("up", "--detach", "--force-recreate", "--timeout", "1")
	})
	p.run("down", "--timeout", "1")
	return got
}

// inOrder stops several containers and starts them one after the other, in the order in which they were stopped, and in
// another one.
func (k *kept) inOrder(network string, containers []string, count func(situation string, got tally)) {
	k.Helper()
	for _, s := range []struct {
		name  string
		start []string
	}{
		{"`docker stop a b c d; docker start a b c d`", containers},
		{"`docker stop a b c d; docker start d b a c`", []string{containers[3], containers[1], containers[0],
			containers[2]}},
	} {
		count(s.name, k.stays(crowdRounds(), network, containers, func() {
			k.docker(append([]string{"stop", "--time", "0"}, containers...)...)
			k.docker(append([]string{"start"}, s.start...)...)
		}))
		k.sound()
	}
}

// atOnce restarts two, four and eight containers at once; under -short four.
func (k *kept) atOnce(network string, containers []string, count func(situation string, got tally)) {
	k.Helper()
	sizes := []int{2, 4, 8}
	if testing.Short() {
		sizes = []int{crowd()}
	}
	for _, n := range sizes {
		some := containers[:n]
		got := k.stays(crowdRounds(), network, some, func() { k.together(some, "restart", "--time", "0") })
		count(fmt.Sprintf("%d restarted at once", n), got)
		k.sound()
	}
}

const recreatedAtOnce = "5 services, `up --force-recreate`"

// Several containers that are started one after the other have each its own address again, where somebody asks the
// engine who starts. Of those that are started at once nobody can tell which is which: they share out what they had
// among themselves, and those that are pinned have their own. The engine's own IPAM is measured beside it.
func TestCrowd(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 50)
	found := &results{title: "several"}
	for i, w := range ways(e.Engine) {
		if testing.Short() && (w.beside || !w.witnessed() && !w.builtIn) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			k := startKept(t, e.Engine, e.Sockets, w, 144+i)
			k.idlers()
			var all []string
			for range crowd() {
				all = append(all, k.container(k.network))
			}
			count := func(s string, got tally) {
				found.add(s, w.name, got)
				if w.witnessed() && got.outside > 0 {
					t.Errorf("%s: %s", s, got)
				}
			}
			k.inOrder(k.network, all[:4], func(s string, got tally) {
				count(s, got)
				if w.witnessed() && got.missed() > 0 {
					t.Errorf("%s: %s have the address of before", s, got)
				}
			})
			k.atOnce(k.network, all, count)
			if !testing.Short() {
				p := k.newProject(fiveFile(k.network, nothing), nil)
				count(recreatedAtOnce, p.recreated(k.network))
				k.sound()
			}
			if w.witnessed() {
				t.Logf("%+v", k.witness())
			}
		})
	}
	t.Run("for good", func(t *testing.T) {
		k := startKept(t, e.Engine, e.Sockets, ways(e.Engine)[0], 148)
		front := k.plan("--subnet", k.v4("128/25")+",gateway="+k.v4("129")+",pool="+k.span(130, 199))
		network := k.on(front, "--subnet", k.v4("128/25"))
		sure := func(s, way string, got tally) {
			found.add(s, way, got)
			if got.missed() > 0 {
				t.Errorf("%s, %s: %s have the address of before", way, s, got)
			}
		}
		var all []string
		for range crowd() {
			all = append(all, k.container(network))
		}
		k.pin(all)
		k.atOnce(network, all, func(s string, got tally) { sure(s, "pinned", got) })

		p := k.newProject(fiveFile(network, nothing), nil)
		p.run("up", "--detach")
		k.pin(p.fives())
		restarted := p.stays(crowdRounds(), network, p.fives(), func() { p.run("restart", "--timeout", "1") })
		sure("5 services, `docker-compose restart`", "pinned", restarted)
		k.sound()
		p.run("down", "--timeout", "1")

		if !testing.Short() { // what the override file says, too
			p = k.newProject(fiveFile(network, func(s string) string {
				return "ipv4_address: " + k.v4(fmt.Sprint(200+strings.Index("abcde", s)))
			}), nil)
			sure(recreatedAtOnce, "ipv4_address", p.recreated(network))
			k.sound()
		}

		p = k.newProject(fiveFile(network, nothing), nil)
		p.override("--network", "lan="+front)
		sure(recreatedAtOnce, "override file", p.recreated(network))
		k.sound()
	})
	t.Logf("\n%s", found)
}

// An engine that is stopped in order, or killed, and started again starts all its containers at once. Those that are
// pinned have the addresses of before, and the others share out what they had.
func TestCrowdBoots(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 51)
	w := ways(e.Engine)[0]
	k := startKept(t, e.Engine, e.Sockets, w, 151)
	front := k.plan("--subnet", k.v4("128/26")+",gateway="+k.v4("129")+",pool="+k.span(130, 180))
	const pinned, builtIn = "pinned", "built-in IPAM"
	networks := map[string]string{
		w.name:  k.network,
		pinned:  k.on(front, "--subnet", k.v4("128/26")),
		builtIn: k.of(way{builtIn: true}, "192/26"),
	}
	columns := []string{w.name, pinned, builtIn}
	if testing.Short() {
		columns = columns[:2] // nothing is asked of the engine's own
	}
	containers := map[string][]string{}
	var all []string
	for _, column := range columns {
		for range crowd() {
			c := k.container(networks[column], "--restart", "always")
			containers[column], all = append(containers[column], c), append(all, c)
		}
	}
	k.pin(containers[pinned])
	k.sound()

	found := &results{title: fmt.Sprintf("%d containers with --restart always", crowd())}
	at := func(column string) (where []string) {
		for _, c := range containers[column] {
			where = append(where, k.at(c, networks[column]))
		}
		return where
	}
	for _, ending := range []struct {
		name string
		stop func() error
	}{{"engine stopped and started", e.StopEngine}, {"engine killed and started", e.Kill}} {
		for range crowdRounds() {
			before := map[string][]string{}
			for _, column := range columns {
				before[column] = at(column)
			}
			if err := ending.stop(); err != nil {
				t.Fatal(err)
			}
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			k.allRun(all)
			k.follows()
			for _, column := range columns {
				var got tally
				got.count(before[column], at(column))
				found.add(ending.name, column, got)
				if column == w.name && got.outside > 0 {
					t.Errorf("%s: %s", ending.name, got)
				}
				if column == pinned && got.missed() > 0 {
					t.Errorf("%s: of those pinned %s have the address of before", ending.name, got)
				}
			}
			k.sound()
		}
	}
	t.Logf("\n%s\n%+v", found, k.witness())
}
