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

// live runs the town's witness until the end of the test, or until stop is called.
func (tn *town) live(change func(*Config)) (stop func()) {
	tn.t.Helper()
	tn.w = tn.witness(tn.w.cfg.Engine, change)
	tn.w.calm, tn.w.pause = 20*time.Millisecond, 5*time.Millisecond
	return tn.begin()
}

// begin runs the town's witness unchanged.
func (tn *town) begin() (stop func()) {
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

func every(d time.Duration) func(*Config) { return func(cfg *Config) { cfg.Every = d } }

// TestRun: Run checks at the start, and at once when an engine returns. Events lead to named leases. Run ends with its
// context.
func TestRun(t *testing.T) {
	tn := newTown(t)
	stop := tn.live(every(time.Hour))
	eventually(t, "a check", func() bool { return tn.w.State().Runs == 1 })
	if s := tn.w.State(); s.Engine != ipam.EngineReachable {
		t.Errorf("the state is %+v", s)
	}
	a := tn.run("web", "front")
	tn.settle(time.Second)
	tn.engine.happen("network", "connect")
	eventually(t, "a name", func() bool { return tn.leaseOf(a).Name == "web" })
	if tn.w.SeenBy("local", a, tn.leaseOf(a).ID) == nil {
		t.Error("it is not seen")
	}
	tn.engine.stop()
	eventually(t, "an engine that is away", func() bool { return tn.w.State().Engine == ipam.EngineUnreachable })
	tn.engine.start()
	eventually(t, "a check of the engine that came back",
		func() bool { return tn.w.State().Engine == ipam.EngineReachable && tn.w.State().Runs == 2 })
	stop()
	if tn.engine.follows() {
		eventually(t, "the end of the events", func() bool { return !tn.engine.follows() })
	}
}

// TestRunBeforeTheEngine: a daemon that starts before the engine checks when the engine is there.
func TestRunBeforeTheEngine(t *testing.T) {
	tn := newTown(t)
	tn.engine.stop()
	tn.live(every(time.Hour))
	eventually(t, "some tries", func() bool { return strings.Contains(tn.w.State().Detail, tn.engine.path) })
	if runs := tn.w.State().Runs; runs != 0 {
		t.Errorf("there were %d checks of nothing", runs)
	}
	tn.engine.start()
	eventually(t, "a check", func() bool { return tn.w.State().Runs == 1 })
}

// TestRunFollowsAgain: an engine that has returned, and asks for an address, is followed at once, so that a second end
// is heard.
func TestRunFollowsAgain(t *testing.T) {
	signs := map[string]func(*town){
		"it asks": func(tn *town) { tn.w.cfg.Roster.guess(ipam.Question{}) },
		"it asks for what is held": func(tn *town) {
			tn.w.cfg.Roster.Endpoint(ipam.LeaseRef{}, tn.clock.Now())
		},
		"it answers": func(tn *town) { tn.w.cfg.Roster.look() },
	}
	for name, sign := range signs {
		t.Run(name, func(t *testing.T) {
			tn := newTown(t)
			tn.w = tn.witness(tn.w.cfg.Engine, nil)
			tn.w.pause = time.Hour
			tn.begin()
			eventually(t, "a stream", tn.engine.follows)
			tn.engine.stop()
			eventually(t, "an engine that is away",
				func() bool { return tn.w.State().Engine == ipam.EngineUnreachable })
			tn.engine.start()
			eventually(t, "a stream again", func() bool {
				sign(tn)
				return tn.engine.follows()
			})
		})
	}
}

// TestRunEvery: checks repeat by the clock, and repair if that is configured.
func TestRunEvery(t *testing.T) {
	tn, leak := leaked(t)
	tn.live(func(cfg *Config) { cfg.Every, cfg.Repair = 5*time.Millisecond, true })
	eventually(t, "three checks", func() bool { return tn.w.State().Runs >= 3 })
	if l := tn.leaseOf(addr(leak)); l.State != "held" {
		t.Fatalf("before its time the lease is %s", l.State)
	}
	eventually(t, "the end of the lease", func() bool {
		tn.clock.wait(time.Minute)
		return tn.leaseOf(addr(leak)).State == "remembered"
	})
	eventually(t, "a check that finds nothing", func() bool { return tn.w.State().Counts[ipam.UnusedLease] == 0 })
}

// TestRunBesideTheWrongEngine: an engine without any network of Berth's may be the wrong one. A check that nobody
// requested ends nothing then.
func TestRunBesideTheWrongEngine(t *testing.T) {
	tn, leak := leaked(t)
	tn.vanish("web")
	tn.vanishNetwork("front")
	tn.settle(time.Second)
	tn.live(func(cfg *Config) { cfg.Every, cfg.Repair = 2*time.Millisecond, true })
	eventually(t, "checks for hours", func() bool {
		tn.clock.wait(5 * time.Minute)
		return tn.w.State().Runs > 20
	})
	if l := tn.leaseOf(addr(leak)); l.State != "held" {
		t.Errorf("the lease is %s", l.State)
	}
	if n := tn.w.State().Counts[ipam.UnusedSubnet]; n != 1 {
		t.Errorf("it found %d subnets without a Docker network", n)
	}
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}), "unused_lease 10.8.0.2 repaired", "unused_lease "+leak+
		" repaired", "unused_subnet 10.8.0.0/24 repaired")
}

// TestNextPause: the pauses grow while an engine stays away, and are short again after it was there.
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

// TestRunRestart: checks before and after a restart of the engine do not count together.
func TestRunRestart(t *testing.T) {
	tn, leak := leaked(t)
	tn.live(func(cfg *Config) { cfg.Every, cfg.Repair = time.Hour, true })
	eventually(t, "a check", func() bool { return tn.w.State().Counts[ipam.UnusedLease] == 1 })
	tn.engine.stop()
	eventually(t, "an engine that is away", func() bool { return tn.w.State().Engine == ipam.EngineUnreachable })
	tn.clock.wait(time.Hour)
	tn.engine.start()
	eventually(t, "another check", func() bool { return tn.w.State().Runs == 2 })
	if l := tn.leaseOf(addr(leak)); l.State != "held" {
		t.Errorf("the lease is %s", l.State)
	}
	wantTold(t, tn.check(ipam.CheckRequest{}), "unused_lease "+leak)
	tn.clock.wait(5 * time.Minute)
	wantTold(t, tn.check(ipam.CheckRequest{}), "unused_lease "+leak+" repairable")
}

// TestRunLooksOnly: without checks there are looks.
func TestRunLooksOnly(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.settle(time.Second)
	tn.live(nil)
	eventually(t, "a name", func() bool { return tn.leaseOf(a).Name == "web" })
	b := tn.run("db", "front")
	tn.settle(time.Second)
	tn.engine.happen("container", "rename")
	eventually(t, "another name", func() bool { return tn.leaseOf(b).Name == "db" })
	if s := tn.w.State(); s.Runs != 0 || s.Engine != ipam.EngineReachable {
		t.Errorf("the state is %+v", s)
	}
}

// TestRunGathers: many events cause few looks.
func TestRunGathers(t *testing.T) {
	tn := newTown(t)
	tn.live(nil)
	eventually(t, "a look", func() bool { return slices.Contains(tn.engine.asked(), "GET /containers/json") })
	for range 10 {
		tn.engine.happen("container", "start")
	}
	a := tn.run("web", "front")
	tn.settle(time.Second)
	tn.engine.happen("container", "start")
	eventually(t, "a name", func() bool { return tn.leaseOf(a).Name == "web" })
	looks := 0
	for _, request := range tn.engine.asked() {
		if request == "GET /containers/json" {
			looks++
		}
	}
	if looks > 3 {
		t.Errorf("eleven events made %d looks", looks)
	}
}

// TestLateWord: if the engine was read since the events broke off, it is not away. Otherwise it is.
func TestLateWord(t *testing.T) {
	tn := newTown(t)
	before := time.Now()
	must(t, tn.w.look(t.Context()))
	tn.w.breakOff(t.Context(), word{errors.New("gone"), before})
	if s := tn.w.State(); s.Engine != ipam.EngineReachable {
		t.Errorf("after a word of before the look: %+v", s)
	}
	tn.w.breakOff(t.Context(), word{errors.New("gone"), time.Now()})
	if s := tn.w.State(); s.Engine != ipam.EngineUnreachable {
		t.Errorf("after a word of later: %+v", s)
	}
}

// TestRunPushed: without an engine, pushed views are checked by the clock.
func TestRunPushed(t *testing.T) {
	tn, _ := leaked(t)
	w := tn.w
	w.cfg.Engine = nil
	tn.live(every(5 * time.Millisecond))
	eventually(t, "a check of nothing", func() bool { return tn.w.State().Runs > 0 })
	if s := tn.w.State(); s.Engine != ipam.NoEngine {
		t.Errorf("the state is %+v", s)
	}
	tn.show(t, tn.w)
	eventually(t, "a check", func() bool { return tn.w.State().Counts[ipam.UnusedLease] == 1 })
	tn.clock.wait(3 * time.Minute)
	eventually(t, "an old view", func() bool { return tn.w.State().Engine == ipam.EngineUnreachable })
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
	tn.engine.stop()
	eventually(t, "a word of it", func() bool { return l.count("warning: the engine cannot be read") == 1 })
	more()
	tn.engine.start()
	eventually(t, "a word of its return", func() bool { return l.count("info: the engine can be read again") == 1 })
	more()
	if n := l.count("warning: the engine cannot be read"); n != 1 {
		t.Errorf("its absence was told of %d times", n)
	}
	if n := l.count("warning: the records and what runs differ: 1 unused_lease"); n != 1 {
		t.Errorf("the finding was told of %d times", n)
	}
}
