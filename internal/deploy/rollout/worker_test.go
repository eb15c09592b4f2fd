package rollout

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/deploy"
)

// TestRunNeeded: what a worker needs runs while the worker runs, even if it had to be recreated and did not run:
// because it failed, a copy of its volume took it away, or a deploy was cut off (BD-6).
func TestRunNeeded(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		s := newShop(t)
		s.must(s.deploys())
		s.hashes["db"], s.small.fails["d2"] = "d2", 1
		if err := s.deploys(); err == nil {
			t.Fatal("what fails is not told of")
		}
		s.hashes["db"] = "d3"
		s.small.takes()
		s.must(s.deploys())
		s.wants("recreated", "stop db/1, remove db/1, make db/1, start db/1, make work/1, start work/1, stop work/1, "+
			"remove work/1, release shop/work/1, stop side/1, remove side/1, make side/1, start side/1")
	})
	t.Run("taken away by a copy", func(t *testing.T) {
		s := shopWithVolume(t, false)
		s.declares("shop_data", map[string]string{"o": "bind"})
		s.volumes[0].Services = append(s.volumes[0].Services, "work")
		s.must(s.deploys())
	})
	t.Run("cut off", func(t *testing.T) {
		killed(t, func() *shop {
			s := newShop(t)
			s.must(s.deploys())
			s.hashes["db"] = "d2"
			return s
		}, func(s *shop, n int) {
			s.must(s.deploys())
			if p := s.plan(); p.Changes() {
				t.Errorf("killed after %d: there are %s, and there is to be done: %s", n, s.small.has(), steps(p))
			}
		})
	})
}

// works tells whether the container is a worker's.
func (b *body) works() bool { return strings.HasPrefix(b.service(), "work") }

// meets updates most with the number of workers that run.
func (e *small) meets() {
	now := 0
	for _, b := range e.all {
		if b.works() && b.Running {
			now++
		}
	}
	e.most = max(e.most, now)
}

// worked ends an inspected worker once enough workers have run at once. It waits for one more inspection, in which
// one worker too many would begin, but not for ever.
func (e *small) worked(b *body) {
	if !b.works() || !b.Running {
		return
	}
	const beside, patience = 1, 50
	if b.looks++; b.looks > patience || e.most >= e.meet && b.looks > beside {
		b.Running = false
	}
}

// worker adds a worker that needs some services.
func (s *shop) worker(name string, needs ...string) {
	one := *s.service("work")
	one.Name, one.Needs = name, needs
	one.Instances = []deploy.Instance{{Owner: "shop/" + name + "/1", Number: 1, On: one.Instances[0].On}}
	at := slices.IndexFunc(s.services, func(other deploy.Service) bool { return other.Name == "web" })
	s.services = slices.Insert(s.services, at, one)
	s.hashes[name] = name + "1"
	s.reserved["shop/"+name+"/1"] = netip.AddrFrom4([4]byte{10, 0, 9, byte(len(s.services))})
}

// requests returns the requests that create and start containers, or with a "-" delete workers that have run.
func requests(titles string) string {
	var all []string
	for title := range strings.FieldsSeq(titles) {
		if ended, is := strings.CutPrefix(title, "-"); is {
			all = append(all, "stop "+ended, "remove "+ended, "release shop/"+ended)
		} else {
			all = append(all, "make "+title, "start "+title)
		}
	}
	return strings.Join(all, ", ")
}

// TestRunTogether: workers that do not need each other run at once, as many as the files say. Their containers are
// created in order (BD-11).
func TestRunTogether(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *shop)
		at     int // how many may run at once
		meet   int
		most   int
		want   string // after the database; empty: in any order
	}{
		"one after the other": {func(s *shop) { s.worker("workb", "db") }, 0, 1, 1,
			"work/1 -work/1 workb/1 -workb/1"},
		"two of three": {func(s *shop) { s.worker("workb", "db"); s.worker("workc", "db") }, 2, 2, 2, ""},
		"all":          {func(s *shop) { s.worker("workb", "db"); s.worker("workc", "db") }, 9, 3, 3, ""},
		"one needs the other": {func(s *shop) { s.worker("workb", "work") }, 2, 1, 1,
			"work/1 -work/1 workb/1 -workb/1"},
		"one needs what needs the other": {func(s *shop) {
			late := *s.service("side")
			late.Name, late.Needs, late.Shares = "late", []string{"work"}, nil
			late.Instances = []deploy.Instance{{Owner: "shop/late/1", Number: 1}}
			s.hashes["late"] = "l1"
			s.worker("workb", "late")
			s.services = slices.Insert(s.services, 3, late)
		}, 2, 1, 1, "work/1 -work/1 late/1 workb/1 -workb/1"},
		"replicas, one after the other": {func(s *shop) { s.replicas("work", 3) }, 0, 1, 1,
			"work/1 work/2 work/3 -work/1 -work/2 -work/3"},
		"replicas at once": {func(s *shop) { s.replicas("work", 3) }, 3, 3, 3,
			"work/1 work/2 work/3 -work/1 -work/2 -work/3"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			c.change(s)
			s.workers, s.small.meet = c.at, c.meet
			s.must(s.deploys())
			if s.small.most != c.most {
				t.Errorf("%d workers have run at once, want %d", s.small.most, c.most)
			}
			if c.want != "" {
				s.wants(what, requests("db/1 "+c.want+" side/1 web/1 web/2"))
			}
			if p := s.plan(); p.Changes() || s.small.has() != allRun && what != "one needs what needs the other" {
				t.Errorf("there are %s, and there is to be done: %s", s.small.has(), steps(p))
			}
		})
	}
}

// replicas gives a worker several replicas.
func (s *shop) replicas(name string, count int) {
	one := s.service(name)
	for n := 2; n <= count; n++ {
		owner := fmt.Sprintf("shop/%s/%d", name, n)
		one.Instances = append(one.Instances, deploy.Instance{Owner: owner, Number: n, On: one.Instances[0].On})
		s.reserved[owner] = netip.AddrFrom4([4]byte{10, 0, 8, byte(n)})
	}
}

// TestRunTogetherFails: when a worker fails, no other one begins. Running workers continue to their ends, all are
// deleted, and the next deploy repeats those that did not succeed (BD-6, BD-11).
func TestRunTogetherFails(t *testing.T) {
	for what, c := range map[string]struct {
		fails  string
		atOnce int
		ran    bool // whether workb succeeds
	}{
		"one after the other": {"work/1", 1, false},
		"two at once":         {"work/1", 2, true},
		"a replica":           {"workb/2", 1, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.worker("workb", "db")
			s.worker("workc", "db")
			if what == "a replica" {
				s.replicas("workb", 2)
			}
			s.workers, s.small.meet = c.atOnce, c.atOnce
			s.small.fails[c.fails] = 3
			want := "shop/" + c.fails + ": it ended with exit code 3"
			if err := s.deploys(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it ends with %v", err)
			}
			if got := s.small.has(); got != "db/1 d1 runs" {
				t.Errorf("there are %s", got)
			}
			if c.atOnce == 1 && slices.Contains(s.small.takes(), "make workc/1") {
				t.Error("workc has begun")
			}
			failed, _, _ := strings.Cut(c.fails, "/")
			if _, did := s.ran[failed]; did || (s.ran["workb"].Hash != "") != c.ran {
				t.Errorf("to a good end have run %v", s.ran)
			}
			clear(s.small.fails)
			s.must(s.deploys())
			if p := s.plan(); p.Changes() || s.small.has() != allRun {
				t.Errorf("there are %s, and there is to be done: %s", s.small.has(), steps(p))
			}
		})
	}
}

// TestRunStopOnce: a service whose end others wait for is stopped like any other if it runs (BD-10).
func TestRunStopOnce(t *testing.T) {
	s := newShop(t)
	s.must(s.deploys())
	s.service("web").Once = true // it still runs
	s.small.takes()
	s.task = Task{Do: Stop}
	s.must(s.deploys())
	s.wants("stop", "stop web/1, stop web/2, stop side/1, stop db/1")
}
