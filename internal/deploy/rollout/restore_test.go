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

// exchanged swaps the addresses of the database and of web/1, and lets the next database fail, or run and be
// unhealthy.
func (s *shop) exchanged(fails string) {
	s.Helper()
	s.reserved["shop/db/1"], s.reserved["shop/web/1"] = s.reserved["shop/web/1"], s.reserved["shop/db/1"]
	s.hashes["db"], s.small.fails[fails] = "d2", 1
}

// TestRunRestores: when a canary fails, the containers that were stopped or taken off their network to make way
// for it run again, if their addresses are free. The error names those that do not run, and the next deploy
// repairs them (BD-8).
func TestRunRestores(t *testing.T) {
	const canary = "a canary of db failed: shop/db/1: it ended with exit code 1"
	for what, c := range map[string]struct {
		change func(s *shop)
		want   string   // the containers afterwards
		says   []string // parts of the error
	}{
		"places changed": {func(s *shop) {
			s.services = append(s.services[:1:1], s.services[3])
			s.service("web").Needs = nil
			s.exchanged("d2")
		}, "db/1 d2 stopped, web/1 w1 runs, web/2 w1 runs",
			[]string{"a canary of db failed, and the others are unchanged: shop/db/1: it ended with exit code 1"}},
		"what it shares is gone": {func(s *shop) { s.exchanged("d2") },
			"db/1 d2 stopped, side/1 s1 stopped, web/1 w1 runs, web/2 w1 runs",
			[]string{canary, "shop/side/1 ran before, but does not run now: ", "what it shares does not run"}},
		"the address is held": {func(s *shop) { s.exchanged("sick d2") },
			"db/1 d2 runs, side/1 s1 stopped, web/1 w1 stopped, web/2 w1 runs",
			[]string{"unhealthy", "shop/web/1 ran before, but does not run now: ", "db/1 has its address 10.0.0.31"}},
		"another network": {func(s *shop) {
			s.onNetwork("10.0.9.0/24")
			s.hashes["db"], s.small.fails["d2"] = "d2", 1
		}, "db/1 d2 stopped, side/1 s1 stopped, web/1 w1 runs, web/2 w1 runs", []string{canary, "shop/side/1 ran"}},
		"the drain of the other": {func(s *shop) {
			s.service("web").Drain = &deploy.Hook{Command: []string{"false"}, Timeout: time.Minute}
			s.exchanged("drain")
		}, allRun, []string{"and the others are unchanged", "it was not drained, so it keeps running"}},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.onNetwork("10.0.0.0/24")
			work := s.service("work") // only what the case is about may fail
			work.Instances = nil
			s.must(s.deploys())
			c.change(s)
			if what != "another network" {
				s.network = nil
			}
			s.refused(s.deploys(), c.says...)
			if got := s.small.has(); got != c.want {
				t.Errorf("there are %s, want %s", got, c.want)
			}
			clear(s.small.fails)
			for i := range s.services {
				s.services[i].Drain = nil
			}
			s.must(s.deploys())
			if got := s.small.has(); s.plan().Changes() || strings.Contains(got, "stopped") {
				t.Errorf("the next one leaves %s", got)
			}
			for _, b := range s.small.all {
				owner := "shop/" + b.title()
				if want, has := s.reserved[owner], b.Addresses["front"]; want.IsValid() && has != want.String() {
					t.Errorf("%s has %s, and %s is reserved for it", owner, has, want)
				}
			}
		})
	}
}

// refused expects an error with all of these words.
func (s *shop) refused(err error, words ...string) {
	s.Helper()
	if err == nil {
		s.Fatal("it is carried out")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			s.Errorf("it says nothing of %q: %v", word, err)
		}
	}
}

// TestRunRingCutOff: a deploy in which three containers swap addresses in a ring is cut off after any of its
// steps. Then its stopped containers are started by hand or by an engine that boots. One more deploy ends the job.
func TestRunRingCutOff(t *testing.T) {
	killed(t, func() *shop {
		s := newShop(t)
		s.smaller()
		web := s.service("web")
		web.Instances = append(web.Instances, deploy.Instance{Owner: "shop/web/2", Number: 2, On: web.Instances[0].On})
		s.must(s.deploys())
		db, first, second := s.reserved["shop/db/1"], s.reserved["shop/web/1"], s.reserved["shop/web/2"]
		s.reserved["shop/db/1"], s.reserved["shop/web/1"], s.reserved["shop/web/2"] = first, second, db
		s.small.takes()
		return s
	}, func(s *shop, n int) {
		s.small.boots()
		s.must(s.deploys())
		if got := s.small.has(); got != "db/1 d1 runs, web/1 w1 runs, web/2 w1 runs" || s.plan().Changes() {
			t.Errorf("killed after %d: there are %s", n, got)
		}
		if asked := strings.Join(s.small.takes(), " "); strings.Contains(asked, "TWICE") {
			t.Errorf("killed after %d: %s", n, asked)
		}
	})
}

// boots starts every stopped container that can start.
func (e *small) boots() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.all {
		b.Running = b.Running || e.refuses(b) == ""
	}
}

// regain frees those of an instance's addresses that are held without an endpoint.
func (e *small) regain(_ context.Context, one *Instance) (free []netip.Addr, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, on := range one.On {
		for _, addr := range on.Gets {
			if e.held[addr.String()] {
				delete(e.held, addr.String())
				free = append(free, addr)
			}
		}
	}
	return free, nil
}

// TestRunRegains: an address whose release the engine has forgotten is freed before a container is started,
// created or recreated with it.
func TestRunRegains(t *testing.T) {
	for what, change := range map[string]func(s *shop, web *body){
		"started": func(_ *shop, web *body) { web.Running = false },
		"made": func(s *shop, web *body) {
			s.small.all = slices.DeleteFunc(s.small.all, func(b *body) bool { return b == web })
		},
		"recreated": func(s *shop, _ *body) { s.hashes["web"] = "w2" },
		"start-first": func(s *shop, _ *body) {
			s.hashes["web"], s.service("web").Update.StartFirst = "w2", true
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.must(s.deploys())
			web := s.small.all[slices.IndexFunc(s.small.all, func(b *body) bool { return b.title() == "web/1" })]
			change(s, web)
			p := s.plan()
			lost := p.service("web").Instances[0].On[0].Gets[0]
			s.small.held = map[string]bool{lost.String(): true}
			s.must(s.carries(t.Context(), p))
			told := slices.ContainsFunc(s.told, func(e Event) bool {
				return e.Step == freeing && e.Instance == "shop/web/1" && strings.HasPrefix(e.Detail, lost.String()+", ")
			})
			if !told || s.plan().Changes() {
				t.Errorf("it tells %v, and there are %s", s.told, s.small.has())
			}
		})
	}
}
