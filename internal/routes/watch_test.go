package routes

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	logs "github.com/sirupsen/logrus/hooks/test"
)

// host is a host with given routes.
type host struct {
	mu      sync.Mutex
	all     []Route
	err     error
	looks   int
	refuses error        // the store's answer to an event
	events  []ipam.Event // those that the store accepted
	changed chan struct{}
}

func (h *host) list() ([]Route, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks++
	return h.all, h.err
}

func (h *host) set(err error, all ...Route) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all, h.err = all, err
}

func (h *host) note(_ context.Context, e ipam.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses == nil {
		h.events = append(h.events, e)
	}
	return h.refuses
}

// written returns the events that were written.
func (h *host) written() []ipam.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// runs runs a Watch over the host until the test ends.
func (h *host) runs(t *testing.T, broken error) (*Watch, *logs.Hook) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	said := logs.NewLocal(log)
	h.changed = make(chan struct{}, 1)
	w := New(Config{Host: "h1", List: h.list, Note: h.note, Log: logrus.NewEntry(log),
		Attachments: func(context.Context) ([]ipam.AttachmentInfo, error) { return []ipam.AttachmentInfo{attached()}, nil },
		Leases: func(context.Context, ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error] {
			return func(func(ipam.LeaseInfo, error) bool) {}
		},
		Changes: func(context.Context) (<-chan struct{}, error) { return h.changed, broken }})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w, said
}

// TestWatch: a new route is found within two seconds of the kernel's notification, and logged once. The finding
// keeps the time of its discovery, and ends as quickly.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h host
		w, said := h.runs(t, nil)
		time.Sleep(5 * time.Second)
		if len(w.Findings()) > 0 || h.looks != 1 {
			t.Fatalf("%+v after %d looks", w.Findings(), h.looks)
		}
		h.set(nil, route("10.0.0.0/8", "tun0", "tun"))
		h.changed <- struct{}{}
		time.Sleep(2 * time.Second)
		first := w.Findings()
		if len(first) != 1 || len(said.AllEntries()) != 1 {
			t.Fatalf("%+v, said %d", first, len(said.AllEntries()))
		}
		h.changed <- struct{}{}
		time.Sleep(2 * time.Second)
		if now := w.Findings(); len(now) != 1 || !now[0].Seen.Equal(first[0].Seen) || len(said.AllEntries()) != 1 {
			t.Errorf("%+v, said %d", now, len(said.AllEntries()))
		}
		h.set(nil)
		h.changed <- struct{}{}
		time.Sleep(2 * time.Second)
		if now := w.Findings(); len(now) > 0 || len(said.AllEntries()) != 2 {
			t.Errorf("%+v, said %d", now, len(said.AllEntries()))
		}
	})
}

// TestWatchBlind: without notifications from the kernel, the routes are read all the same. If they cannot be read,
// the findings stay, and the problem is logged once.
func TestWatchBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h host
		w, said := h.runs(t, errors.New("no netlink here"))
		h.set(nil, route("10.0.0.0/8", "tun0", "tun"))
		time.Sleep(every + burst)
		h.set(errors.New("nor a list"))
		time.Sleep(3 * every)
		if found := w.Findings(); len(found) != 1 || len(said.AllEntries()) != 3 {
			t.Errorf("%+v, said %d", found, len(said.AllEntries()))
		}
	})
}

// TestWatchNotes: a bridge on a LAN has one event. If the store refuses it first, a later look writes it.
func TestWatchNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lan, bridge := route("10.30.0.0/24", "eth0", "device"), route("10.30.0.0/24", "br-1", "bridge", "10.30.0.1")
		lan.Connected = true
		h := host{all: []Route{lan, bridge}, refuses: errors.New("the store is away")}
		w, said := h.runs(t, nil)
		time.Sleep(2 * every)
		if events := h.written(); len(events) > 0 || len(said.AllEntries()) != 3 {
			t.Fatalf("%+v, events %v, said %d", w.Findings(), events, len(said.AllEntries()))
		}
		h.mu.Lock()
		h.refuses = nil
		h.mu.Unlock()
		time.Sleep(3 * every)
		events := h.written()
		if len(events) != 1 || events[0].Verb != ipam.BridgeFound || len(said.AllEntries()) != 3 {
			t.Errorf("events %v, said %d", events, len(said.AllEntries()))
		}
		h.set(nil)
		time.Sleep(2 * every)
		h.set(nil, lan, bridge)
		time.Sleep(2 * every)
		if events := h.written(); len(events) != 2 {
			t.Errorf("after it was over, and came again: events %v", events)
		}
	})
}

// The kernel lets this process watch the routes.
func TestChanges(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	changed, err := changes(ctx)
	cancel()
	if err != nil || changed == nil {
		t.Error(err)
	}
}
