package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// newPushed returns a house and its witness, which gets pushed views.
func newPushed(t *testing.T) (*house, *Witness) {
	t.Helper()
	h := newHouse(t, t.TempDir())
	t.Cleanup(func() { must(t, h.close()) })
	h.network("front", "10.8.0.0/24")
	h.clock.wait(time.Second)
	return h, h.witness(nil, nil)
}

func checkOf(t *testing.T, w *Witness, req ipam.CheckRequest) ipam.CheckReport {
	t.Helper()
	r, err := w.Check(t.Context(), req)
	must(t, err)
	return r
}

// show pushes the current view.
func (h *house) show(t *testing.T, w *Witness) {
	t.Helper()
	must(t, w.Show(t.Context(), h.taken()))
}

// TestShow: a pushed view does what a look does.
func TestShow(t *testing.T) {
	h, w := newPushed(t)
	a := h.run("web", "front")
	h.clock.wait(time.Second)
	h.show(t, w)
	l := h.leaseOf(a)
	if by := w.SeenBy("local", a, l.ID); l.Name != "web" || by == nil || by.Container != "web" {
		t.Errorf("the lease is called %q, and seen by %v", l.Name, by)
	}
	if s := w.State(); s.Engine != ipam.EngineReachable || s.Runs != 0 {
		t.Errorf("the state is %+v", s)
	}
	before := h.taken()
	before.Taken = before.Taken.Add(-time.Second)
	before.Containers = nil
	must(t, w.Show(t.Context(), before))
	if w.SeenBy("local", a, l.ID) == nil {
		t.Error("a view that came late took the place of a later one")
	}
}

// TestPushedRepair: pushed views allow repairs, as long as they keep coming.
func TestPushedRepair(t *testing.T) {
	for name, row := range map[string]struct {
		gap  time.Duration // a gap without a view, with a check at its end
		want string
	}{
		"each minute":       {0, "unused_lease 10.8.0.2 repaired"},
		"with a small gap":  {2 * time.Minute, "unused_lease 10.8.0.2 repaired"},
		"with a larger gap": {2*time.Minute + time.Second, "unused_lease 10.8.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			h, w := newPushed(t)
			h.run("gone", "front")
			h.vanish("gone")
			h.clock.wait(time.Second)
			for range 3 {
				h.show(t, w)
				wantTold(t, checkOf(t, w, ipam.CheckRequest{Repair: true}), "unused_lease 10.8.0.2")
				h.clock.wait(time.Minute)
			}
			h.clock.wait(row.gap - time.Minute)
			if r := checkOf(t, w, ipam.CheckRequest{Repair: true}); row.gap > fresh {
				if r.Engine != ipam.EngineUnreachable || len(r.Findings) != 0 ||
					!strings.Contains(r.Trouble, "2m1s old") {
					t.Errorf("of an old view: %+v", r)
				}
			} else if r.Engine != ipam.EngineReachable {
				t.Errorf("of a fresh view: %+v", r)
			}
			h.clock.wait(3 * time.Minute)
			h.show(t, w)
			wantTold(t, checkOf(t, w, ipam.CheckRequest{Repair: true}), row.want)
		})
	}
}

// TestPushedEndpoints: a finding about an endpoint in a single view may be over. A later view of the same endpoint
// confirms it.
func TestPushedEndpoints(t *testing.T) {
	h, w := newPushed(t)
	h.number++
	h.appear("web", "front", addr("10.8.0.9"))
	h.show(t, w)
	wantTold(t, checkOf(t, w, ipam.CheckRequest{Repair: true}))
	h.clock.wait(time.Second)
	wantTold(t, checkOf(t, w, ipam.CheckRequest{Repair: true})) // the same view
	h.vanish("web")
	h.number++
	h.appear("web", "front", addr("10.8.0.9"))
	h.clock.wait(time.Second)
	h.show(t, w)
	wantTold(t, checkOf(t, w, ipam.CheckRequest{Repair: true})) // another endpoint
	h.clock.wait(time.Second)
	h.show(t, w)
	wantTold(t, checkOf(t, w, ipam.CheckRequest{Repair: true}), "uncovered_address 10.8.0.9 repaired")
	if l := h.leaseOf(addr("10.8.0.9")); l.MAC != macN(2) || l.State != "held" {
		t.Errorf("the lease is %+v", l)
	}
}

// TestGivenView: a request may contain a view.
func TestGivenView(t *testing.T) {
	h, w := newPushed(t)
	h.run("gone", "front")
	h.vanish("gone")
	h.clock.wait(time.Second)
	given := func() ipam.CheckRequest {
		view := h.taken()
		return ipam.CheckRequest{Repair: true, View: &view}
	}
	wantTold(t, checkOf(t, w, given()), "unused_lease 10.8.0.2")
	h.clock.wait(5 * time.Minute)
	wantTold(t, checkOf(t, w, given()), "unused_lease 10.8.0.2 repaired")
	wantTold(t, checkOf(t, w, given()))
}

// TestGivenViewBesideEngine: if the daemon's own engine does not answer, the view of a request gives findings. But
// nothing that needs a wait is repaired.
func TestGivenViewBesideEngine(t *testing.T) {
	tn, leak := leaked(t)
	tn.engine.stop()
	for range 3 {
		view := tn.taken()
		r := tn.check(ipam.CheckRequest{Repair: true, View: &view})
		wantTold(t, r, "unused_lease "+leak)
		if s := tn.w.State(); s.Engine != ipam.EngineUnreachable {
			t.Errorf("the engine is %s", s.Engine)
		}
		tn.clock.wait(5 * time.Minute)
	}
}

// TestViewsRefused: a view of another host or time is refused.
func TestViewsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*ipam.EngineView)
		want   string
	}{
		"another host": {func(v *ipam.EngineView) { v.Host = "h2" }, `of host "h2"`},
		"too old":      {func(v *ipam.EngineView) { v.Taken = v.Taken.Add(-fresh - time.Second) }, "2m1s ago"},
		"never taken":  {func(v *ipam.EngineView) { v.Taken = time.Time{} }, "says nothing about what runs now"},
		"to come":      {func(v *ipam.EngineView) { v.Taken = v.Taken.Add(fresh + time.Second) }, "set the clock"},
	} {
		t.Run(name, func(t *testing.T) {
			h, w := newPushed(t)
			view := h.taken()
			row.change(&view)
			if err := w.Show(t.Context(), view); !errors.Is(err, ipam.ErrInvalid) ||
				!strings.Contains(err.Error(), row.want) {
				t.Errorf("pushed: %v", err)
			}
			if _, err := w.Check(t.Context(), ipam.CheckRequest{View: &view}); !errors.Is(err, ipam.ErrInvalid) ||
				!strings.Contains(err.Error(), row.want) {
				t.Errorf("given: %v", err)
			}
			if s := w.State(); s.Engine != ipam.NoEngine || s.Runs != 0 {
				t.Errorf("the state is %+v", s)
			}
		})
	}
}

// TestPushedBeforeClock: after the clock is set back, older views with later times do not block new ones.
func TestPushedBeforeClock(t *testing.T) {
	h, w := newPushed(t)
	h.show(t, w)
	h.clock.wait(-time.Hour)
	a := h.run("web", "front")
	h.clock.wait(time.Second)
	h.show(t, w)
	if by := w.SeenBy("local", a, h.leaseOf(a).ID); by == nil || by.Container != "web" {
		t.Errorf("it is seen by %v", by)
	}
	if hint := w.cfg.Roster.guess(ipam.Question{Space: "local", CIDR: prefix("10.8.0.0/24")}); hint.Live {
		t.Errorf("nobody tells what happens, and it is %+v", hint)
	}
}

// silentOnlooker never answers.
type silentOnlooker struct{ ipam.Onlooker }

func (silentOnlooker) Locked(context.Context, ipam.Question) ipam.Locked { return ipam.Locked{} }

// TestListen: an onlooker counts until it ends or another begins. Until a view from after that, nothing is guessed.
func TestListen(t *testing.T) {
	h, w := newPushed(t)
	h.view.Containers = []ipam.EngineContainer{{ID: "id-web", Name: "web", State: "exited",
		Endpoints: []ipam.EngineEndpoint{{Network: "id-front"}}}}
	q := ipam.Question{Space: "local", CIDR: prefix("10.8.0.0/24")}
	want := func(what string, hint ipam.Hint) {
		t.Helper()
		if got := w.cfg.Roster.guess(q); got.Name != hint.Name || got.Live != hint.Live || w.State().Live != hint.Live {
			t.Errorf("%s: %+v, live: %t; want %+v", what, got, w.State().Live, hint)
		}
	}
	shown := func() {
		h.clock.wait(time.Second)
		h.show(t, w)
	}
	begin := func() (func(*ipam.EngineNews), func()) {
		hear, end, err := w.Listen("h1", silentOnlooker{})
		must(t, err)
		return hear, end
	}
	begins := func() *ipam.EngineNews {
		h.clock.wait(time.Millisecond)
		return &ipam.EngineNews{At: h.clock.Now(), Begins: true}
	}
	live, lost := ipam.Hint{Name: "web", Live: true}, ipam.Hint{}
	shown()
	first, endFirst := begin()
	shown()
	want("before the first word", lost)
	first(begins())
	want("before the first view", lost)
	shown()
	want("the first one tells", live)
	second, endSecond := begin()
	shown()
	want("another one listens, and has told nothing", lost)
	first(begins())
	shown()
	want("the first one tells again", lost)
	second(begins())
	shown()
	want("the second one tells", live)
	endFirst()
	want("the first one has ended", live)
	first(&ipam.EngineNews{At: h.clock.Now(),
		Event: &ipam.EngineEvent{Action: eventDestroy, Container: ipam.EngineContainer{ID: "id-web"}}})
	want("the first one tells of an end", live)
	endSecond()
	want("the second one has ended", lost)
	shown()
	want("nobody tells", lost)
}

// TestListenRefused: news of another host are refused, and so are all news if the daemon has an engine.
func TestListenRefused(t *testing.T) {
	_, w := newPushed(t)
	if _, _, err := w.Listen("h2", silentOnlooker{}); !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), `host "h2"`) {
		t.Errorf("of another host: %v", err)
	}
	tn := newTown(t)
	if _, _, err := tn.w.Listen("h1", silentOnlooker{}); !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "by itself") {
		t.Errorf("beside an engine: %v", err)
	}
}

// TestOldView: a view of another's tells that the engine can be reached for as long as it is fresh, however it came.
func TestOldView(t *testing.T) {
	for name, row := range map[string]struct {
		tell   func(*house, *Witness)
		engine string
		detail string
	}{
		"of one check": {func(h *house, w *Witness) {
			view := h.taken()
			checkOf(t, w, ipam.CheckRequest{View: &view})
		}, ipam.NoEngine, ""},
		"that was sent": {func(h *house, w *Witness) { h.show(t, w) }, ipam.EngineUnreachable,
			"the last view that berth witness has sent is 2m1s old"},
	} {
		t.Run(name, func(t *testing.T) {
			h, w := newPushed(t)
			row.tell(h, w)
			h.clock.wait(fresh)
			if s, r := w.State(), w.Report(); s.Engine != ipam.EngineReachable || r.Engine != s.Engine {
				t.Errorf("fresh: the state is %+v, the report %+v", s, r)
			}
			h.clock.wait(time.Second)
			s, r := w.State(), w.Report()
			if s.Engine != row.engine || s.Detail != row.detail || r.Engine != row.engine {
				t.Errorf("old: the state is %+v, the report %+v", s, r)
			}
		})
	}
}
