package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// live runs the scenario's witness until the end of the test, or until stop is called.
func (tn *scenario) live(change func(*Config)) (stop func()) {
	tn.t.Helper()
	tn.w = tn.witness(tn.w.cfg.Engine, change)
	tn.w.burst, tn.w.pause = 20*time.Millisecond, 5*time.Millisecond
	return tn.begin()
}

// begin runs the scenario's witness unchanged.
func (tn *scenario) begin() (stop func()) {
	tn.t.Helper()
	ctx, cancel := context.WithCancel(tn.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tn.w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			tn.t.Error(err)
		}
	})
	tn.t.Cleanup(stop)
	return stop
}

// TestRun: Run checks at the start, or when the engine starts if that is later, and at once when an engine returns.
// Events lead to named leases, even without checks. Checks repeat by the clock, and repair if that is configured. A
// check before an engine's restart does not confirm one after it. Run ends with its context.
func TestRun(t *testing.T) {
	playScenarios(t, newScenario, `
		a day:
			live 1h
			until state -> reachable 1
			run web front
			wait 1s
			happen network connect
			until at 10.8.0.2 -> held web 1 front
			seen 10.8.0.2 -> web
			stop
			until state -> unreachable 1
			start
			until state -> reachable 2
		before the engine:
			stop
			live 1h
			until state -> unreachable 0
			start
			until state -> reachable 1
		looks only:
			run web front
			wait 1s
			live
			until at 10.8.0.2 -> held web 1 front
			run db front
			wait 1s
			happen container rename
			until at 10.8.0.3 -> held db 2 front
			state -> reachable 0
		# a missing endpoint causes a second look, without any event
		two looks:
			run web front
			wait 1s
			live
			until word 10.8.0.2 -> seen web
			vanish web
			wait 1s
			stir
			until word 10.8.0.2 -> gone web
	`)
	leak := func(t *testing.T) *scenario { tn, _ := leaked(t); return tn }
	playScenarios(t, leak, `
		every few milliseconds:
			live 5ms repair
			until atleast 3 -> true
			at 10.8.0.3 -> held - 2 front
			wait 4m
			at 10.8.0.3 -> held - 2 front
			wait 2m
			until at 10.8.0.3 -> remembered - 2 front
			until leaks -> 0
		# An engine without any network of Berth's may be the wrong one: a check that nobody requested ends nothing then.
		beside the wrong engine:
			vanish web
			vanishnet front
			wait 1s
			live 2ms repair
			until atleast 3 -> true
			wait 5m
			until atleast 10 -> true
			wait 5h
			until atleast 20 -> true
			at 10.8.0.3 -> held - 2 front
			check repair -> unused_lease 10.8.0.2, unused_lease 10.8.0.3, unused_subnet 10.8.0.0/24 repaired
			check repair -> nothing
		a restart of the engine:
			live 1h repair
			until leaks -> 1
			stop
			until state -> unreachable 1
			wait 1h
			start
			until state -> reachable 2
			at 10.8.0.3 -> held - 2 front
			check -> unused_lease 10.8.0.3
			wait 5m
			check -> unused_lease 10.8.0.3 repairable
	`)
	pushed := newPushed(t)
	pushed.plays(`
		run gone front
		vanish gone
		wait 1s
		live 5ms
		until atleast 1 -> true
		show
		until leaks -> 1
		wait 3m
		until engine -> unreachable
	`)
	tn := newScenario(t)
	stop := tn.live(nil)
	eventually(t, "a stream", tn.engine.Follows)
	stop()
	eventually(t, "the end of the events", func() bool { return !tn.engine.Follows() })
}

// TestRunFollowsAgain: Berth follows a returned engine at its first request, and so hears its next end.
func TestRunFollowsAgain(t *testing.T) {
	signs := map[string]func(*scenario){
		"it asks": func(tn *scenario) { tn.w.cfg.Roster.guess(ipam.Question{}) },
		"it asks for what is held": func(tn *scenario) {
			tn.w.cfg.Roster.Endpoint(ipam.LeaseRef{}, tn.clock.Now())
		},
		"it answers": func(tn *scenario) { tn.w.cfg.Roster.look() },
	}
	for name, sign := range signs {
		t.Run(name, func(t *testing.T) {
			tn := newScenario(t)
			tn.w = tn.witness(tn.w.cfg.Engine, nil)
			tn.w.pause = time.Hour
			tn.begin()
			eventually(t, "a stream", tn.engine.Follows)
			tn.engine.Stop()
			eventually(t, "an engine that is away",
				func() bool { return tn.w.State().Engine == ipam.EngineUnreachable })
			tn.engine.Start()
			eventually(t, "a stream again", func() bool {
				sign(tn)
				return tn.engine.Follows()
			})
		})
	}
}

// TestNextPause: the pauses grow while an engine stays away, and are short again after it returned.
func TestNextPause(t *testing.T) {
	pause := time.Duration(0)
	var got []time.Duration
	for _, connected := range []bool{false, false, false, false, false, false, false, false, true, false} {
		pause = nextPause(pause, time.Second, connected)
		got = append(got, pause/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("the pauses are %d s, want %d", got, want)
	}
}

// TestRunGathers: many events cause few looks.
func TestRunGathers(t *testing.T) {
	tn := newScenario(t)
	tn.live(nil)
	eventually(t, "a look", func() bool { return slices.Contains(tn.engine.Asked(), "GET /containers/json") })
	for range 10 {
		tn.engine.Happen("container", "start")
	}
	tn.plays(`
		run web front
		wait 1s
		happen container start
		until at 10.8.0.2 -> held web 1 front
	`)
	looks := 0
	for _, request := range tn.engine.Asked() {
		if request == "GET /containers/json" {
			looks++
		}
	}
	if looks > 3 {
		t.Errorf("eleven events made %d looks", looks)
	}
}

// TestLateWord: the engine is reachable if a reading began after the events broke off. Otherwise it is unreachable.
func TestLateWord(t *testing.T) {
	for name, tt := range map[string]struct {
		broken time.Duration // after the reading began
		want   string
	}{
		"before the reading": {-time.Second, ipam.EngineReachable},
		"during the reading": {time.Nanosecond, ipam.EngineUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			tn := newScenario(t)
			began := tn.clock.Now()
			must(t, tn.w.look(t.Context()))
			tn.w.breakOff(t.Context(), word{errors.New("gone"), began.Add(tt.broken)})
			if s := tn.w.State(); s.Engine != tt.want {
				t.Errorf("%+v", s)
			}
		})
	}
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Levels() []logrus.Level { return logrus.AllLevels }

func (l *lines) Fire(e *logrus.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e.Level.String()+": "+e.Message)
	return nil
}

func (l *lines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestRunLogs: a lasting state is logged once.
func TestRunLogs(t *testing.T) {
	tn, _ := leaked(t)
	var l lines
	tn.live(func(cfg *Config) {
		cfg.Every = 2 * time.Millisecond
		cfg.Log.Logger.AddHook(&l)
	})
	more := func() {
		runs := tn.w.State().Runs
		eventually(t, "more checks", func() bool { return tn.w.State().Runs > runs+5 })
	}
	more()
	tn.engine.Stop()
	eventually(t, "a word of it", func() bool { return l.count("warning: cannot read the engine") == 1 })
	more()
	tn.engine.Start()
	eventually(t, "a word of its return", func() bool { return l.count("info: Berth can read the engine again") == 1 })
	more()
	if n := l.count("warning: cannot read the engine"); n != 1 {
		t.Errorf("its absence was told of %d times", n)
	}
	if n := l.count("warning: the records differ from the running containers: 1 unused_lease"); n != 1 {
		t.Errorf("the finding was told of %d times", n)
	}
}
