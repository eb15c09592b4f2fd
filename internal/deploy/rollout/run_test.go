package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
	"berth/internal/ipam"
	"berth/store/storetest"
)

// shop is a project on a small engine: a database, a service that uses its network, a worker that needs the
// database, and two replicas of web, which need the worker.
type shop struct {
	*testing.T
	small    *small
	engine   *scene.Engine
	compose  compose
	maker    *single.Maker
	services []deploy.Service
	hashes   map[string]string
	images   map[string]scene.Image // that the engine has
	reserved map[string]netip.Addr  // by owner
	settled  []string               // owners, in order
	ran      map[string]Ran
	told     []Event
	when     func(Event) // called with each event; nil: no call
	lost     error       // why the deploy has lost its lock of the project
	workers  int         // how many run at once
	volumes  []deploy.Volume
	orphans  map[string]ipam.Orphan
	task     Task
	network  *deploy.Definition // as the files describe it; nil: they do not say
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, small: &small{left: -1, fails: map[string]int{}}, ran: map[string]Ran{},
		hashes:   map[string]string{"db": "d1", "side": "s1", "work": "m1", "web": "w1"},
		images:   map[string]scene.Image{"web:1": {ID: "sha256:ee"}},
		reserved: map[string]netip.Addr{}}
	s.engine, s.maker = s.small.serve(t)
	s.maker.Exec = s.compose.exec
	s.compose.pull = func(services string) error { return s.small.note("pull " + services) }
	update := deploy.Update{Canaries: 1, MaxInFlight: 1, CanaryWatch: deploy.Span{Most: time.Minute},
		Watch: deploy.Span{Most: time.Minute}}
	for i, one := range []deploy.Service{
		{Name: "db"}, {Name: "side", Needs: []string{"db"}, Shares: []string{"db"}},
		{Name: "work", Needs: []string{"db"}, Worker: true}, {Name: "web", Needs: []string{"work"}},
	} {
		one.Image, one.Update = "web:1", update
		for n := 1; n <= map[bool]int{true: 2, false: 1}[one.Name == "web"]; n++ {
			owner := fmt.Sprintf("shop/%s/%d", one.Name, n)
			on := []deploy.Place{{Network: "front", Named: true}}
			if one.Name == "side" {
				on = nil
			} else {
				s.reserved[owner] = netip.AddrFrom4([4]byte{10, 0, 0, byte(10*i + n)})
			}
			one.Instances = append(one.Instances, deploy.Instance{Owner: owner, Number: n, On: on})
		}
		s.services = append(s.services, one)
	}
	return s
}

func (s *shop) service(name string) *deploy.Service {
	return &s.services[slices.IndexFunc(s.services, func(one deploy.Service) bool { return one.Name == name })]
}

// plan draws a plan of the current state, with second addresses where needed.
func (s *shop) plan() *Plan {
	s.Helper()
	draw := func() *Plan {
		for i := range s.services {
			for k := range s.services[i].Instances {
				if one := &s.services[i].Instances[k]; one.On != nil {
					one.On = []deploy.Place{{Network: "front", Named: true, Addresses: []netip.Addr{s.reserved[one.Owner]}}}
				}
			}
		}
		all, unread, err := s.engine.Containers(context.Background(), "shop")
		fine(s, err)
		stored, err := s.engine.Volumes(context.Background())
		fine(s, err)
		p, err := Draw(Inputs{Task: s.task, Networks: s.networks(), Volumes: s.volumes, Stored: stored, Orphans: s.recorded(),
			Project: "shop", Compose: "5.5.0", Services: s.services, Hashes: s.hashes,
			Workers: s.workers, Images: s.images, Containers: all, Unread: unread, Ran: s.ran})
		fine(s, err)
		return p
	}
	p := draw()
	for owner, has := range p.Beside() {
		next := has[0].As4()
		next[2]++
		s.reserved[owner] = netip.AddrFrom4(next)
	}
	return draw()
}

// deploys draws and carries out a plan of the current state.
func (s *shop) deploys() error {
	s.Helper()
	return s.carries(context.Background(), s.plan())
}

// carries carries out a plan.
func (s *shop) carries(ctx context.Context, p *Plan) error {
	s.Helper()
	s.compose.hashes = maps.Clone(s.hashes)
	s.told = nil
	return Run(ctx, p, Tools{Engine: s.engine, Maker: s.maker, Held: func() error { return s.lost },
		Tell: func(e Event) {
			if s.told = append(s.told, e); s.when != nil {
				s.when(e)
			}
		},
		Release: func(_ context.Context, owner string) error { return s.small.note("release " + owner) },
		Settle:  func(_ context.Context, owner string) error { s.settled = append(s.settled, owner); return nil },
		Regain:  s.small.regain,
		Ran:     func(_ context.Context, name string, as Ran) error { s.ran[name] = as; return nil },
		Orphans: func(context.Context) ([]ipam.Orphan, error) { return s.recorded(), nil }, Edit: s.edit})
}

// note records a release or a pull among the requests to the engine, unless the deploy was killed.
func (e *small) note(what string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left == 0 {
		return errors.New("the deploy was killed")
	}
	e.left--
	e.say("%s", what)
	return nil
}

// wants compares the requests to the engine with the wanted ones, which commas separate.
func (s *shop) wants(what, want string) {
	s.Helper()
	s.equal(what+": it was asked for", strings.Join(s.small.takes(), ", "), want)
}

// tells expects the events of the last deploy, which semicolons separate.
func (s *shop) tells(what, want string) {
	s.Helper()
	var got []string
	for _, e := range s.told {
		line := strings.Join(strings.Fields(fmt.Sprint(e.Step, " ", e.Instance, " ", e.Detail)), " ")
		if e.Canary {
			line += " canary"
		}
		got = append(got, line)
	}
	s.equal(what+": its events are", strings.Join(got, "; "), want)
}

func (s *shop) equal(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s\n%s\nwant\n%s", what, got, want)
	}
}

func (s *shop) must(err error) {
	s.Helper()
	fine(s, err)
}

const allRun = "db/1 d1 runs, side/1 s1 runs, web/1 w1 runs, web/2 w1 runs"

// TestRun: the order in which a project is created and exchanged. Workers run after what they need, and are then
// deleted. A container that shares with another one is stopped before it and created after it. Replicas are
// drained, stopped, saved and recreated one after the other (BD-5 to BD-8, BO-11).
func TestRun(t *testing.T) {
	s := newShop(t)
	s.must(s.deploys())
	s.wants("made",
		"make db/1, start db/1, "+workRuns+", make side/1, start side/1, make web/1, start web/1, "+
			"make web/2, start web/2")
	if got := s.small.has(); got != allRun || s.plan().Changes() {
		t.Fatalf("there are %s, which changes: %v", got, s.plan().Changes())
	}
	s.service("web").Drain = &deploy.Hook{Command: []string{"true"}, Timeout: time.Minute}
	s.hashes["web"] = "w2"
	s.must(s.deploys())
	s.wants("web has changed",
		workRuns+", drain web/1, stop web/1, remove web/1, make web/1, start web/1, drain web/2, stop web/2, "+
			"remove web/2, make web/2, start web/2")
	s.tells("web has changed", "make shop/work/1; run shop/work/1; done shop/work/1 it has run and was deleted; "+
		"drain shop/web/1 shop-web-1; stop shop/web/1 shop-web-1; remove shop/web/1 shop-web-1 canary; "+
		"make shop/web/1 canary; watch shop/web/1 canary; done shop/web/1 canary; "+
		"drain shop/web/2 shop-web-2; stop shop/web/2 shop-web-2; remove shop/web/2 shop-web-2; "+
		"make shop/web/2; watch shop/web/2; done shop/web/2")
	said := filepath.Join(t.TempDir(), "said")
	t.Setenv("SAID", said)
	db := s.service("db")
	db.Snapshot = &deploy.Hook{Command: []string{"sh", "-c",
		`echo $BERTH_PROJECT $BERTH_SERVICE $BERTH_INSTANCE $BERTH_CONTAINER $BERTH_VOLUME_MY_DATA >"$SAID"`},
		Timeout: time.Minute}
	db.Mounts = []deploy.Mount{{Key: "my-data", Volume: "shop_data", Target: "/data"}}
	s.hashes["db"] = "d2"
	s.must(s.deploys())
	s.wants("the database has changed",
		workRuns+", stop side/1, stop db/1, remove db/1, make db/1, start db/1, remove side/1, make side/1, "+
			"start side/1")
	s.tells("the database has changed",
		"make shop/work/1; run shop/work/1; done shop/work/1 it has run and was deleted; "+
			"stop shop/side/1 shop-side-1; stop shop/db/1 shop-db-1; snapshot shop/db/1; "+
			"remove shop/db/1 shop-db-1 canary; make shop/db/1 canary; watch shop/db/1 canary; "+
			"done shop/db/1 canary; remove shop/side/1 shop-side-1 canary; make shop/side/1 canary; "+
			"watch shop/side/1 canary; done shop/side/1 canary")
	text, err := os.ReadFile(said)
	if want := "shop db shop/db/1 shop-db-1 /vol/data\n"; err != nil || string(text) != want {
		t.Errorf("a snapshot is told %q, %v; want %q", text, err, want)
	}
	s.services = s.services[:3]
	s.must(s.deploys())
	s.wants("web is dropped",
		"stop web/1, release shop/web/1, remove web/1, stop web/2, release shop/web/2, remove web/2, "+workRuns)
	s.tells("web is dropped", "stop shop/web/1 shop-web-1; remove shop/web/1 shop-web-1; done shop/web/1 deleted; "+
		"stop shop/web/2 shop-web-2; remove shop/web/2 shop-web-2; done shop/web/2 deleted; "+
		"make shop/work/1; run shop/work/1; done shop/work/1 it has run and was deleted")
}

// TestRunFails: if a worker, a drain, a snapshot or a canary fails, the deploy ends, and what ran before continues
// (BD-9).
func TestRunFails(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *shop)
		want   string // the containers afterwards
		says   string
	}{
		"worker": {func(s *shop) { s.hashes["work"], s.small.fails["m2"] = "m2", 3 }, allRun,
			"shop/work/1: it ended with exit code 3"},
		"drain": {func(s *shop) {
			s.service("web").Drain = &deploy.Hook{Command: []string{"false"}, Timeout: time.Minute}
			s.hashes["web"], s.small.fails["drain"] = "w2", 1
		}, allRun, "a canary of web failed, and the others are unchanged: shop/web/1: it was not drained, so " +
			"it keeps running"},
		"slow drain": {func(s *shop) {
			s.service("web").Drain = &deploy.Hook{Command: []string{"wait"}, Timeout: 10 * time.Millisecond}
			s.hashes["web"], s.small.fails["hang"] = "w2", 1
		}, allRun, "it was not drained, so it keeps running: it has not ended within 10ms"},
		"snapshot": {func(s *shop) {
			s.service("db").Snapshot = &deploy.Hook{Command: []string{"sh", "-c", "echo full; exit 9"}, Timeout: time.Minute}
			s.hashes["db"] = "d2"
		}, allRun, `the snapshot failed, so the container is unchanged: exit status 9; it said "full"`},
		"slow snapshot": {func(s *shop) {
			s.service("db").Snapshot = &deploy.Hook{Command: []string{"sh", "-c", "sleep 1000 & wait"},
				Timeout: 10 * time.Millisecond}
			s.hashes["db"] = "d2"
		}, allRun, "it has not ended within 10ms"},
		"canary": {func(s *shop) { s.hashes["web"], s.small.fails["w2"] = "w2", 1 },
			"db/1 d1 runs, side/1 s1 runs, web/1 w2 stopped, web/2 w1 runs", "it ended with exit code 1"},
		"start-first": {func(s *shop) {
			s.service("web").Update.StartFirst = true
			s.hashes["web"], s.small.fails["w2"] = "w2", 1
		}, "db/1 d1 runs, side/1 s1 runs, web/1 w1 runs, web/1+ w2 stopped, web/2 w1 runs", "it ended with exit code 1"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.must(s.deploys())
			c.change(s)
			err := s.deploys()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
			if got := s.small.has(); got != c.want {
				t.Errorf("there are %s, want %s", got, c.want)
			}
			if last := s.told[len(s.told)-1]; last.Step != Failed {
				t.Errorf("told last is %+v", last)
			}
			clear(s.small.fails)
			for i := range s.services {
				s.services[i].Drain, s.services[i].Snapshot = nil, nil
			}
			s.must(s.deploys())
			if s.plan().Changes() || strings.Contains(s.small.has(), "stopped") {
				t.Errorf("the next one leaves %s", s.small.has())
			}
		})
	}
}

// TestRunStartFirst: the new container runs before the old one is stopped. It has another address, and gets the
// old name last.
func TestRunStartFirst(t *testing.T) {
	s := newShop(t)
	s.service("web").Update.StartFirst = true
	s.service("web").Update.MaxInFlight = 1
	s.must(s.deploys())
	s.small.takes()
	s.settled, s.small.least = nil, 100
	s.hashes["web"] = "w2"
	s.must(s.deploys())
	s.wants("exchanged", "make work/1, start work/1, stop work/1, remove work/1, release shop/work/1, make web/1+, "+
		"start web/1+, stop web/1, remove web/1, rename web/1+, make web/2+, start web/2+, stop web/2, "+
		"remove web/2, rename web/2+")
	s.tells("exchanged", "make shop/work/1; run shop/work/1; done shop/work/1 it has run and was deleted; "+
		"make shop/web/1 canary; watch shop/web/1 canary; stop shop/web/1 shop-web-1; "+
		"remove shop/web/1 shop-web-1 canary; rename shop/web/1 shop-web-1; done shop/web/1 canary; "+
		"make shop/web/2; watch shop/web/2; stop shop/web/2 shop-web-2; remove shop/web/2 shop-web-2; "+
		"rename shop/web/2 shop-web-2; done shop/web/2")
	if s.small.least != 2 {
		t.Errorf("once %d of 2 ran", s.small.least)
	}
	if !slices.Equal(s.settled, []string{"shop/web/1", "shop/web/2"}) {
		t.Errorf("the addresses of before are ended for %v", s.settled)
	}
	if p := s.plan(); p.Changes() {
		t.Errorf("afterwards there is to be done: %s", steps(p))
	}
}

// killed kills a deploy after any of its steps. begin returns the shop before it, and check gets the number of steps.
func killed(t *testing.T, begin func() *shop, check func(*shop, int)) {
	t.Helper()
	for n := range storetest.Sampled(t, 4) {
		s := begin()
		s.small.left = n
		err := s.deploys()
		left := s.small.left
		s.small.left = -1
		check(s, n)
		if err == nil && left > 0 {
			return // it was not killed at all
		}
	}
}

// repeats deploys until nothing is left to do, at most three times.
func (s *shop) repeats() {
	s.Helper()
	for range 3 {
		if s.plan().Changes() {
			s.must(s.deploys())
		}
	}
}

// TestRunKilled: if a deploy is killed after any of its steps at the engine, the next one completes it, with
// nothing twice and nothing left over. With start-first no replica is missing at any time.
func TestRunKilled(t *testing.T) {
	for _, startFirst := range []bool{false, true} {
		killed(t, func() *shop {
			s := newShop(t)
			s.service("web").Update.StartFirst = startFirst
			s.must(s.deploys())
			s.hashes["web"], s.hashes["db"], s.small.least = "w2", "d2", 100
			return s
		}, func(s *shop, n int) {
			s.repeats()
			const want = "db/1 d2 runs, side/1 s1 runs, web/1 w2 runs, web/2 w2 runs"
			if got := s.small.has(); got != want || s.plan().Changes() {
				t.Errorf("killed after %d (start-first %v): there are %s, want %s", n, startFirst, got, want)
			}
			asked := strings.Join(s.small.takes(), " ")
			if strings.Contains(asked, "TWICE") || strings.Contains(asked, "release shop/web") {
				t.Errorf("killed after %d: %s", n, asked)
			}
			if startFirst && s.small.least < 2 {
				t.Errorf("killed after %d: once %d of 2 ran", n, s.small.least)
			}
		})
	}
}

// TestRunDeleteKilled: if a deploy that deletes is killed after any of its steps, the next one releases every
// reservation that it left (BO-3).
func TestRunDeleteKilled(t *testing.T) {
	killed(t, func() *shop {
		s := newShop(t)
		s.must(s.deploys())
		s.service("web").Instances = s.service("web").Instances[:1]
		s.small.takes()
		return s
	}, func(s *shop, n int) {
		s.repeats()
		if got := s.small.has(); strings.Contains(got, "web/2") || s.plan().Changes() {
			t.Errorf("killed after %d: there are %s", n, got)
		}
		if asked := s.small.takes(); !slices.Contains(asked, "release shop/web/2") {
			t.Errorf("killed after %d: it was asked for %s", n, asked)
		}
	})
}
