package routes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	"github.com/vishvananda/netlink"
)

// Config is what a Watch needs. By default List and Changes ask the kernel.
type Config struct {
	Host        string
	Attachments func(context.Context) ([]ipam.AttachmentInfo, error)
	Leases      func(context.Context, ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error]
	List        func() ([]Route, error)
	Note        func(context.Context, ipam.Event) error // writes the event of a bridge on a LAN
	// Changes returns a channel of one place that gets a token for each change of a route, until ctx ends
	Changes func(ctx context.Context) (<-chan struct{}, error)
	Log     *logrus.Entry
}

// The times of a Watch.
const (
	burst = time.Second      // changes come in bursts
	every = 30 * time.Second // Docker networks change, too
	share = 20               // at most one part in this many is spent on listing, because a router's table is long
	quick = 100 * time.Millisecond
)

// Watch knows which routes shadow a subnet, and which Docker networks are on a LAN of the host.
type Watch struct {
	cfg Config

	took atomic.Int64 // nanoseconds of the last look

	mu      sync.Mutex
	found   []ipam.Finding
	noted   []ipam.Finding // those whose events are written or being written
	trouble string         // the last error that was logged
}

// New returns a Watch that has not looked yet.
func New(cfg Config) *Watch {
	if cfg.List == nil {
		cfg.List = List
	}
	if cfg.Changes == nil {
		cfg.Changes = changes
	}
	return &Watch{cfg: cfg}
}

// Findings returns the findings of the last look, each with the time when it was found first.
func (w *Watch) Findings() []ipam.Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.found)
}

// Check looks now, unless that takes long, and returns the findings. After an error the earlier ones stay.
func (w *Watch) Check(ctx context.Context) []ipam.Finding {
	if w.took.Load() < int64(quick) {
		w.tell(w.look(ctx))
	}
	return w.Findings()
}

// Run looks at the routes whenever they change, until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	changed, err := w.cfg.Changes(ctx)
	if err != nil {
		w.cfg.Log.WithError(err).Warnf("the kernel does not report changes of the host's routes: Berth reads the "+
			"routes every %s", every)
	}
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		w.tell(w.look(ctx))
		rest := time.NewTimer(max(burst, share*time.Duration(w.took.Load())))
		select {
		case <-ctx.Done():
			rest.Stop()
			return nil
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again.C:
		}
	}
}

// tell logs an error once, until it changes or ends.
func (w *Watch) tell(err error) {
	text := ""
	if err != nil && !errors.Is(err, context.Canceled) {
		text = err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if text != "" && text != w.trouble {
		w.cfg.Log.WithError(err).Warn("cannot check whether a route overlaps a subnet, or whether a Docker network " +
			"overlaps a LAN")
	}
	w.trouble = text
}

// look finds what is wrong now, and logs what is new and what has ended.
func (w *Watch) look(ctx context.Context) error {
	begun := time.Now()
	defer func() { w.took.Store(int64(time.Since(begun))) }()
	attachments, err := w.cfg.Attachments(ctx)
	if err != nil {
		return err
	}
	all, err := w.cfg.List()
	if err != nil {
		return err
	}
	gateway := func(space string, addr netip.Addr) bool {
		for l, err := range w.cfg.Leases(ctx, ipam.LeaseFilter{Space: space, Address: addr}) {
			return err != nil || l.Kind == ipam.Gateway // without knowledge there is no finding
		}
		return false
	}
	now := time.Now().UTC()
	found := append(Shadowed(w.cfg.Host, attachments, all, gateway, now),
		OnLAN(w.cfg.Host, attachments, all, gateway, now)...)
	return w.note(ctx, w.take(found))
}

// take stores the findings, logs those that are new or have ended, and returns those whose events must be written.
func (w *Watch) take(found []ipam.Finding) (fresh []ipam.Finding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range found {
		if k := slices.IndexFunc(w.found, same(&found[i])); k >= 0 {
			found[i].Seen = w.found[k].Seen
		} else {
			w.cfg.Log.Warn(found[i].Detail)
		}
		if !slices.ContainsFunc(w.noted, same(&found[i])) {
			fresh = append(fresh, found[i])
		}
	}
	for i := range w.found {
		if f := &w.found[i]; !slices.ContainsFunc(found, same(f)) {
			w.cfg.Log.Infof("this finding has ended: %s", f.Detail)
		}
	}
	w.found, w.noted = found, slices.Clone(found)
	return fresh
}

// note writes the events of bridges on a LAN. If it fails, the next look tries again.
func (w *Watch) note(ctx context.Context, fresh []ipam.Finding) error {
	for i, f := range fresh {
		if f.Kind != ipam.BridgeOnLAN || w.cfg.Note == nil {
			continue
		}
		err := w.cfg.Note(ctx, ipam.Event{Verb: ipam.BridgeFound, Space: f.Space, Subnet: f.Subnet, Name: f.Network,
			Detail: f.Detail})
		if err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.noted = slices.DeleteFunc(w.noted,
				func(f ipam.Finding) bool { return slices.ContainsFunc(fresh[i:], same(&f)) })
			return fmt.Errorf("cannot write the event about %s: %w", f.Subnet, err)
		}
	}
	return nil
}

func same(f *ipam.Finding) func(ipam.Finding) bool {
	return func(g ipam.Finding) bool {
		return g.Kind == f.Kind && g.Space == f.Space && g.Subnet == f.Subnet && g.Detail == f.Detail
	}
}

// changes passes on changes in the kernel. A burst that overflows its socket ends the subscription, and counts as a
// change.
func changes(ctx context.Context) (<-chan struct{}, error) {
	updates, end, err := subscribe(ctx)
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			for range updates {
				wake(changed)
			}
			end()
			wake(changed)
			pause := time.NewTimer(burst)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
			if updates, end, err = subscribe(ctx); err != nil {
				return // the next look sees what changed meanwhile
			}
		}
	}()
	return changed, nil
}

// subscribe receives changes of routes until ctx ends, or until end is called, which closes the socket.
func subscribe(ctx context.Context) (updates chan netlink.RouteUpdate, end context.CancelFunc, err error) {
	ctx, end = context.WithCancel(ctx)
	updates = make(chan netlink.RouteUpdate, 64)
	if err = netlink.RouteSubscribe(updates, ctx.Done()); err != nil {
		end()
	}
	return updates, end, err
}

func wake(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // there is a token already
	}
}
