package docker

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// life is a rosterRig in which anything may happen.
type life struct{ *rosterRig }

var lifeNetworks = []string{"front", "back", "twin"}

func (l life) chair(t *rapid.T) *chair {
	s := &chair{network: rapid.SampledFrom(lifeNetworks).Draw(t, "network")}
	if rapid.IntRange(0, 3).Draw(t, "wants") == 0 {
		s.wanted = append(s.wanted, addr(fmt.Sprintf("10.8.0.%d", rapid.IntRange(1, 3).Draw(t, "address"))))
	}
	return s
}

func (l life) any(t *rapid.T) *guest {
	if len(l.all) == 0 {
		t.Skip("nobody is there")
	}
	return rapid.SampledFrom(l.all).Draw(t, "container")
}

func (g *guest) sits(network string) bool {
	return slices.ContainsFunc(g.on, func(s *chair) bool { return s.network == network })
}

func (l life) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"create": func(t *rapid.T) {
			g := l.create(fmt.Sprintf("c%d", l.number+1), "", l.chair(t))
			if rapid.Bool().Draw(t, "listed") {
				l.list(g)
			}
		},
		"list": func(t *rapid.T) { l.list(l.any(t)) },
		"start": func(t *rapid.T) {
			if g := l.any(t); !g.runs {
				l.start(g)
			}
		},
		"end": func(t *rapid.T) {
			if g := l.any(t); g.runs {
				l.end(g, rapid.Bool().Draw(t, "stopped"))
			}
		},
		"rename": func(t *rapid.T) {
			l.number++
			l.rename(l.any(t), fmt.Sprintf("c%d", l.number))
		},
		"connect": func(t *rapid.T) {
			if g, s := l.any(t), l.chair(t); !g.sits(s.network) {
				l.connect(g, s)
			}
		},
		"disconnect": func(t *rapid.T) {
			if g := l.any(t); len(g.on) > 0 {
				l.disconnect(g, g.on[0].network)
			}
		},
		"destroy": func(t *rapid.T) {
			g := l.any(t)
			if g.runs {
				l.end(g, false)
			}
			l.destroy(g)
		},
		"view": func(*rapid.T) { l.view() },
	}
}

// truth returns the containers without addresses, and those that ask for one, by network.
func (l life) truth() (idle, wanted []string) {
	for _, g := range l.all {
		for _, s := range g.on {
			if !g.runs {
				idle = append(idle, s.network+" "+g.Name)
			}
			for _, addr := range s.wanted {
				wanted = append(wanted, fmt.Sprintf("%s %s %s %t", s.network, addr, g.Name, g.ran))
			}
		}
	}
	slices.Sort(idle)
	slices.Sort(wanted)
	return idle, wanted
}

// known returns the same from the roster.
func (l life) known() (idle, wanted []string) {
	for network, all := range l.roster.idle {
		for _, m := range all {
			idle = append(idle, network+" "+m.Name)
		}
	}
	for network, addrs := range l.roster.wanted {
		for addr, all := range addrs {
			for _, m := range all {
				wanted = append(wanted, fmt.Sprintf("%s %s %s %t", network, addr, m.Name, m.ran))
			}
		}
	}
	slices.Sort(idle)
	slices.Sort(wanted)
	return idle, wanted
}

func (l life) compare(t *rapid.T) {
	idle, wanted := l.truth()
	gotIdle, gotWanted := l.known()
	if !slices.Equal(idle, gotIdle) || !slices.Equal(wanted, gotWanted) {
		t.Fatalf("idle are %q, and the roster says %q; wanted are %q, and the roster says %q", idle, gotIdle, wanted,
			gotWanted)
	}
	if len(l.roster.strange) > 0 || len(l.roster.gone) > 0 || len(l.roster.containers) != len(l.all) {
		t.Fatalf("left: %v", l.leaks())
	}
}

// TestRosterModel: news may come in any order. After the last news and a view, the roster is right and keeps nothing
// of removed containers.
func TestRosterModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := life{newRosterRig(t)}
		l.run("begin")
		l.holds = true
		t.Repeat(l.steps())
		order := rapid.Permutation(l.held).Draw(t, "order")
		l.release(order)
		l.clock.wait(recently)
		l.view()
		l.compare(t)
		for len(l.all) > 0 {
			l.destroy(l.all[0])
		}
		l.view()
		if left := l.leaks(); len(left) > 0 {
			t.Fatalf("all are gone, and it keeps %q", left)
		}
	})
}

// TestRosterInOrder: if news come in order, the roster is right at every moment. It misses no container without an
// address, and counts no running container as one.
func TestRosterInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := life{newRosterRig(t)}
		l.run("begin\nview")
		steps := l.steps()
		steps["create"] = func(t *rapid.T) { l.list(l.create(fmt.Sprintf("c%d", l.number+1), "", l.chair(t))) }
		delete(steps, "connect") // a stopped container's connection has no event
		steps[""] = func(t *rapid.T) {
			idle, _ := l.truth()
			got, _ := l.known()
			for _, one := range idle {
				if !slices.Contains(got, one) {
					t.Fatalf("%s holds nothing, and the roster says %q", one, got)
				}
			}
			for _, g := range l.all {
				for _, s := range g.on {
					if g.runs && slices.Contains(got, s.network+" "+g.Name) {
						t.Fatalf("%s runs, and the roster says %q", g.Name, got)
					}
				}
			}
		}
		t.Repeat(steps)
	})
}
