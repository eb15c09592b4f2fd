package rollout

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/deploy"
)

// networks returns the network front, as the files describe it and as the engine has it.
func (s *shop) networks() []NetworkState {
	s.Helper()
	if s.network == nil {
		return nil
	}
	has, there, err := s.engine.Network(context.Background(), "front")
	fine(s, err)
	return []NetworkState{{Wants: *s.network, Has: has, There: there}}
}

// onNetwork lets the files name a subnet, from which the services get their addresses.
func (s *shop) onNetwork(subnet string) {
	s.network = &deploy.Definition{Network: "front", Services: []string{"db", "web"}, Driver: "bridge", IPAM: "berth",
		Pools: []deploy.Pool{{Subnet: subnet}}}
	s.small.makes = subnet
	base := netip.MustParsePrefix(subnet).Addr().As4()
	for owner, addr := range s.reserved {
		next := addr.As4()
		base[3] = next[3]
		s.reserved[owner] = netip.AddrFrom4(base)
	}
}

// TestRunTask: a task stops services against the order of the dependencies, after their drains, and releases
// nothing. It starts services in the order of the dependencies, and recreates them as a deploy does (BD-10).
func TestRunTask(t *testing.T) {
	s := newShop(t)
	s.service("web").Drain = &deploy.Hook{Command: []string{"drain"}, Timeout: time.Minute}
	s.must(s.deploys())
	s.small.takes()
	s.task = Task{Do: Stop}
	s.must(s.deploys())
	s.wants("stop", "drain web/1, stop web/1, drain web/2, stop web/2, stop side/1, stop db/1")
	if s.plan().Changes() {
		t.Error("what is stopped is to be stopped")
	}
	s.task = Task{Start, "web", 2}
	s.must(s.deploys())
	s.wants("start one", "start web/2")
	s.task = Task{Do: Start}
	s.must(s.deploys())
	s.wants("start", "start db/1, start side/1, start web/1")
	s.task = Task{Recreate, "db", 0}
	s.must(s.deploys())
	s.wants("recreate what another one uses",
		"stop side/1, stop db/1, remove db/1, make db/1, start db/1, remove side/1, make side/1, "+
			"start side/1")
	s.task = Task{Recreate, "web", 2}
	s.must(s.deploys())
	s.wants("recreate one", "drain web/2, stop web/2, remove web/2, make web/2, start web/2")
	s.task = Task{Recreate, "work", 0}
	s.must(s.deploys())
	s.wants("recreate a worker", "make work/1, start work/1, stop work/1, remove work/1, release shop/work/1")
	s.small.fails["drain"] = 1
	s.task = Task{Do: Stop}
	if err := s.deploys(); err == nil || !strings.Contains(err.Error(), "it was not drained, so it keeps running") {
		t.Errorf("a drain that fails: %v", err)
	}
	s.wants("a drain that fails", "drain web/1")
	if got := s.small.has(); got != allRun {
		t.Errorf("after a stop that failed there are %s", got)
	}
}

// TestStopsAsTheySay: a deploy names neither a signal nor a time when it stops a container, so that the
// container's own apply (BD-12).
func TestStopsAsTheySay(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *shop)
		stops  []string
		fails  bool
	}{
		"exchanged": {func(s *shop) { s.hashes["web"] = "w2" }, []string{"stop work/1", "stop web/1", "stop web/2"}, false},
		"dropped":   {func(s *shop) { s.services = s.services[:3] }, []string{"stop web/1", "stop web/2", "stop work/1"}, false},
		"stopped": {func(s *shop) { s.task = Task{Do: Stop} },
			[]string{"stop web/1", "stop web/2", "stop side/1", "stop db/1"}, false},
		"one that starts first, and fails": {func(s *shop) {
			s.service("web").Update.StartFirst = true
			s.hashes["web"], s.small.fails["sick w2"] = "w2", 1
		}, []string{"stop work/1", "stop web/1+"}, true},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.must(s.deploys())
			c.change(s)
			s.small.takes()
			if err := s.deploys(); (err != nil) != c.fails {
				t.Errorf("it ends with %v", err)
			}
			stops := slices.DeleteFunc(s.small.takes(), func(asked string) bool { return !strings.HasPrefix(asked, "stop ") })
			if !slices.Equal(stops, c.stops) {
				t.Errorf("%q are stopped, want %q", stops, c.stops)
			}
			if len(s.small.otherwise) > 0 {
				t.Errorf("stopped otherwise than they say: %q", s.small.otherwise)
			}
		})
	}
}

// TestRunNetwork: a network is recreated after all its containers have stopped and left it. They come back one
// after the other. If the deploy is killed after any of its steps, the next one completes it.
func TestRunNetwork(t *testing.T) {
	renumbered := func() *shop {
		s := newShop(t)
		s.onNetwork("10.0.0.0/24")
		s.must(s.deploys())
		s.onNetwork("10.0.9.0/24")
		s.small.takes()
		return s
	}
	s := renumbered()
	s.must(s.deploys())
	if all := s.small.asked; all[0] == "stop web/2" { // both stop at once
		all[0], all[1] = all[1], all[0]
	}
	s.wants("renumbered", "stop web/1, stop web/2, stop side/1, stop db/1, leave db/1, leave web/1, leave web/2, "+
		"no network 10.0.0.0/24, remove db/1, network 10.0.9.0/24, make db/1, start db/1, make work/1, "+
		"start work/1, stop work/1, remove work/1, release shop/work/1, remove side/1, make side/1, "+
		"start side/1, remove web/1, make web/1, start web/1, remove web/2, make web/2, start web/2")
	killed(t, renumbered, func(s *shop, n int) {
		s.repeats()
		if got := s.small.has(); got != allRun || s.plan().Changes() || s.small.net != "10.0.9.0/24" {
			t.Errorf("killed after %d: there are %s on %s", n, got, s.small.net)
		}
		for _, b := range s.small.all {
			if addr := b.Addresses["front"]; b.service() != "side" && !strings.HasPrefix(addr, "10.0.9.") {
				t.Errorf("killed after %d: %s has %q", n, b.title(), addr)
			}
		}
		if asked := strings.Join(s.small.takes(), " "); strings.Contains(asked, "TWICE") ||
			strings.Contains(asked, "release shop/web") || strings.Count(asked, "no network") > 1 {
			t.Errorf("killed after %d: %s", n, asked)
		}
	})
}

// TestRunNetworkLasting: a container joins a network after the plan was drawn, and would lose it. The deploy
// refuses before any container leaves.
func TestRunNetworkLasting(t *testing.T) {
	s := newShop(t)
	s.onNetwork("10.0.0.0/24")
	s.must(s.deploys())
	s.onNetwork("10.0.9.0/24")
	p := s.plan()
	s.small.all = append(s.small.all, &body{ID: "probe", Name: "shop-web-run-1", Running: true,
		Labels:    map[string]string{"com.docker.compose.project": "shop", "com.docker.compose.oneoff": "True"},
		Addresses: map[string]string{"front": "10.0.0.99"}})
	s.small.takes()
	err := s.carries(context.Background(), p)
	if err == nil || !strings.Contains(err.Error(), "the container shop-web-run-1 is on it and stays unchanged") {
		t.Errorf("it says %v", err)
	}
	if asked := strings.Join(s.small.takes(), " "); strings.Contains(asked, "leave") {
		t.Errorf("it was asked for %s", asked)
	}
}
