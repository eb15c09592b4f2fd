package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestPushed: pushed views, and views in requests, do what a look and a check do. They allow repairs while no gap
// between them exceeds two minutes. A view also shows for that long that the engine can be reached.
func TestPushed(t *testing.T) {
	const gone = "run gone front\nvanish gone\nwait 1s\n"
	playScenarios(t, newPushed, strings.NewReplacer("GONE", gone,
		"THREE", gone+strings.Repeat("show\ncheck repair -> unused_lease 10.8.0.2\nwait 1m\n", 3)).Replace(`
		as a look:
			run web front
			wait 1s
			show
			at 10.8.0.2 -> held web 1 front
			seen 10.8.0.2 -> web
			state -> reachable 0
		each minute:
			THREE
			wait 2m
			show
			check repair -> unused_lease 10.8.0.2 repaired
		with a small gap:
			THREE
			wait 1m
			check repair -> unused_lease 10.8.0.2
			wait 3m
			show
			check repair -> unused_lease 10.8.0.2 repaired
		with a larger gap:
			THREE
			wait 1m1s
			check repair -> unreachable, nothing
			wait 3m
			show
			check repair -> unused_lease 10.8.0.2
		# A finding about an endpoint in a single view may be over; a later view of the same endpoint confirms it.
		of endpoints:
			appear web front 10.8.0.9
			show
			check repair -> nothing
			wait 1s
			check repair -> nothing
			# another endpoint
			vanish web
			appear web front 10.8.0.9
			wait 1s
			show
			check repair -> nothing
			at 10.8.0.9 -> none
			wait 1s
			# the second view confirms it, and what runs is leased without a request
			show
			at 10.8.0.9 -> held web 2 front
			check repair -> nothing
		of requests:
			GONE
			check repair given -> unused_lease 10.8.0.2
			wait 5m
			check repair given -> unused_lease 10.8.0.2 repaired
			check repair given -> nothing
		# Older views with later times do not block new ones.
		the clock is set back:
			show
			wait -1h
			run web front
			wait 1s
			show
			seen 10.8.0.2 -> web
		of one check, which gets old:
			check given
			wait 2m
			state -> reachable 1
			wait 1s
			state -> none 1
		that was sent, and gets old:
			show
			wait 2m
			state -> reachable 0
			wait 1s
			state -> unreachable 0
	`))
	tn := newPushed(t)
	tn.run("web", "front")
	before := tn.taken()
	before.Containers = nil
	tn.plays("wait 1s\nshow")
	must(t, tn.w.Show(t.Context(), before))
	tn.plays("seen 10.8.0.2 -> web") // a late view does not replace a newer one
	tn.plays("wait 2m1s")
	if s := tn.w.State(); s.Detail != "the last report from berth witness is 2m1s old" ||
		tn.w.Report().Engine != s.Engine {
		t.Errorf("the state is %+v, the report %+v", s, tn.w.Report())
	}
}

// TestGivenViewBesideEngine: if the daemon's own engine does not answer, the view of a request gives findings.
// Nothing that needs a wait is repaired.
func TestGivenViewBesideEngine(t *testing.T) {
	tn, _ := leaked(t)
	tn.plays(`
		stop
		check repair given -> unused_lease 10.8.0.3
		state -> unreachable 1
		wait 5m
		check repair given -> unused_lease 10.8.0.3
		wait 5m
		check repair given -> unused_lease 10.8.0.3
		state -> unreachable 3
	`)
}

// TestViewsRefused: a view of another host, or one that is undated, too old or from the future, is refused.
func TestViewsRefused(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		# its host, when it was taken, and what is said
		h2 | 0s | of host "h2"
		h1 | -2m1s | 2m1s ago
		h1 | 2m1s | set the clock
		h1 | never | does not show which containers run now
	`) {
		tn := newPushed(t)
		view := tn.taken()
		view.Host = row[0]
		if d, err := time.ParseDuration(row[1]); err == nil {
			view.Taken = view.Taken.Add(d)
		} else {
			view.Taken = time.Time{}
		}
		_, err := tn.w.Check(t.Context(), ipam.CheckRequest{View: &view})
		for _, err := range []error{tn.w.Show(t.Context(), view), err} {
			if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), row[2]) {
				t.Errorf("%s: %v", row, err)
			}
		}
		tn.plays("state -> none 0")
	}
}

// silentOnlooker never answers.
type silentOnlooker struct{ ipam.Onlooker }

func (silentOnlooker) Locked(context.Context, ipam.Question) ipam.Locked { return ipam.Locked{} }

// TestListen: an onlooker counts until it ends or another one begins. Nothing is guessed until a later view comes.
func TestListen(t *testing.T) {
	h := newPushed(t)
	w := h.w
	h.view.Containers = []ipam.EngineContainer{{ID: "id-web", Name: "web", State: "exited",
		Endpoints: []ipam.EngineEndpoint{{Network: "id-front"}}}}
	q := ipam.Question{Space: "local", CIDR: prefix("10.8.0.0/24")}
	hears, ends := map[string]func(*ipam.EngineNews){}, map[string]func(){}
	for row := range ipamtest.Rows(2, `
		# what the onlookers 1 and 2 do, and whether it is guessed
		show listen:1 show | false
		begins:1 | false
		show | true
		# another one listens, and has told nothing; then the first one tells again
		listen:2 show | false
		begins:1 show | false
		begins:2 show | true
		ends:1 | true
		gone:1 | true
		ends:2 | false
		show | false
	`) {
		for step := range strings.FieldsSeq(row[0]) {
			h.clock.wait(time.Second)
			verb, one, _ := strings.Cut(step, ":")
			switch verb {
			case "show":
				h.show()
			case "listen":
				var err error
				hears[one], ends[one], err = w.Listen("h1", silentOnlooker{})
				must(t, err)
			case "begins":
				hears[one](&ipam.EngineNews{At: h.clock.Now(), Begins: true})
			case "gone":
				hears[one](&ipam.EngineNews{At: h.clock.Now(),
					Event: &ipam.EngineEvent{Action: eventDestroy, Container: ipam.EngineContainer{ID: "id-web"}}})
			case "ends":
				ends[one]()
			}
		}
		live := row[1] == "true"
		if got := w.cfg.Roster.guess(q); got.Live != live || w.State().Live != live || (got.Name == "web") != live {
			t.Errorf("%s: %+v, live: %t", row[0], got, w.State().Live)
		}
	}
}

// TestListenRefused: news from another host are refused. If the daemon has an engine, all news are.
func TestListenRefused(t *testing.T) {
	_, _, err := newPushed(t).w.Listen("h2", silentOnlooker{})
	if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), `host "h2"`) {
		t.Errorf("of another host: %v", err)
	}
	tn := newScenario(t)
	if _, _, err := tn.w.Listen("h1", silentOnlooker{}); !errors.Is(err, ipam.ErrInvalid) ||
		!strings.Contains(err.Error(), "its engine itself") {
		t.Errorf("beside an engine: %v", err)
	}
}
