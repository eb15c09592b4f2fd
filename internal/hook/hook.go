// Package hook runs the executables of a directory each time an address is taken or released. They get the variables of
// Ganeti's hooks. No request waits for a hook. Hooks run one at a time, in the order of the events. Each has a
// time limit, after which its process group is killed. A program that anyone but root or the daemon's user can write to
// is not run.
//
// A goroutine reads the events (Service.TailPages) and the variables of each (Service.EventEnvironment). Then it reads
// the directory (dir.go) and runs each program (run.go). A failed hook is only logged and counted.
package hook

import (
	"context"
	"iter"
	"path/filepath"
	"sync/atomic"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// defaultBound is the default time limit of a hook.
const defaultBound = 10 * time.Second

// pause is the time before the next attempt after a failed read of events.
const pause = 10 * time.Second

// Service supplies events. It is a service.Service or, if the host shares a store, a cluster.Service.
type Service interface {
	LastEvent(context.Context) (ipam.EventMark, error)
	TailPages(context.Context, ipam.EventMark) iter.Seq2[ipam.EventPage, error]
	EventEnvironment(context.Context, *ipam.Event) ([]string, error)
}

// Config is what Hooks need. Service, Dir and Log are mandatory.
type Config struct {
	Service Service
	Dir     string
	Host    string // run hooks only for this host's events, if several hosts share a store; empty: all
	Log     *logrus.Entry
	Bound   time.Duration // time limit of each hook; default: defaultBound
	// After replaces time.After for Bound; nil: time.After.
	After func(time.Duration) <-chan time.Time
}

// Hooks run the executables of a directory.
type Hooks struct {
	cfg   Config
	log   *logrus.Entry
	after ipam.EventMark // the last handled event

	told map[string]string // the logged problems by file, to log each once

	runs, failures atomic.Uint64
}

// Counts counts the runs of hooks since the daemon's start.
type Counts struct {
	Runs     uint64 `json:"runs"`
	Failures uint64 `json:"failures"` // runs that failed, were killed, or could not start
}

// Open returns Hooks for events from now on. It refuses an unsafe directory.
func Open(ctx context.Context, cfg Config) (*Hooks, error) {
	h := &Hooks{cfg: cfg, log: cfg.Log, told: map[string]string{}}
	if h.cfg.Bound == 0 {
		h.cfg.Bound = defaultBound
	}
	if h.cfg.After == nil {
		h.cfg.After = time.After
	}
	var err error
	if h.cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if err := checkDir(h.cfg.Dir); err != nil {
		return nil, err
	}
	h.after, err = cfg.Service.LastEvent(ctx)
	return h, err
}

// Counts returns the current numbers. It may be called at any time.
func (h *Hooks) Counts() Counts { return Counts{h.runs.Load(), h.failures.Load()} }

// Run runs hooks for events until ctx ends. A running hook may finish, and no further one starts.
func (h *Hooks) Run(ctx context.Context) error {
	for {
		err := h.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		h.log.WithError(err).Errorf("the events cannot be read, so no hook runs; the next try is in %s", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (h *Hooks) follow(ctx context.Context) error {
	for page, err := range h.cfg.Service.TailPages(ctx, h.after) {
		if err != nil {
			return err
		}
		for i := range page.Events {
			if e := &page.Events[i]; ctx.Err() == nil && h.concerns(e) {
				h.tell(ctx, e)
			}
		}
		h.after = page.Next
	}
	return ctx.Err()
}

// concerns reports whether hooks run for an event.
func (h *Hooks) concerns(e *ipam.Event) bool {
	return (e.Verb == ipam.LeaseTaken || e.Verb == ipam.LeaseReleased) && (h.cfg.Host == "" || e.Host == h.cfg.Host)
}

// tell runs the hooks for one event.
func (h *Hooks) tell(ctx context.Context, e *ipam.Event) {
	log := h.log.WithField("event", e.ID).WithField("address", e.Address)
	programs, err := h.programs()
	var env []string
	if err == nil && len(programs) > 0 {
		env, err = h.cfg.Service.EventEnvironment(ctx, e)
	}
	if err != nil {
		if ctx.Err() == nil {
			h.failures.Add(1)
			log.WithError(err).Error("no hook ran")
		}
		return
	}
	for _, program := range programs {
		if ctx.Err() != nil {
			return
		}
		h.runs.Add(1)
		log := log.WithField("hook", program)
		output, err := run(program, append([]string{path}, env...), h.cfg.Bound, h.cfg.After)
		if output != "" {
			log = log.WithField("output", output)
		}
		if err != nil {
			h.failures.Add(1)
			log.WithError(err).Error("a hook failed")
			continue
		}
		log.Debug("a hook ran")
	}
}

// path is the only variable from the daemon's environment in that of a hook.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
