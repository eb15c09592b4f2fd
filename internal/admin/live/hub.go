// Package live notifies browsers that their view is out of date, as server-sent events (WHATWG HTML, 9.2). The cost of
// each browser is bounded, however slow it is. All browsers together redraw at a limited rate. Nothing runs while
// nobody watches, and everything ends with the server.
//
// A browser becomes a watcher of one network or of all (watch.go). Each second the Hub (hub.go) reads at most one page
// of new events and marks the watchers whose view is stale. It notifies them one by one. The browser then requests its
// view again, because notifications carry no content.
package live

import (
	"context"
	"strings"
	"sync"
	"time"

	"berth/internal/ipam"
)

// Limits for the cost of watching.
const (
	maxWatchers = 64
	page        = 256 // maximum number of events in one read; if there are more, everything counts as changed

	// each new view is work that competes with the driver
	defaultPace = 250 * time.Millisecond
	defaultLook = time.Second
	// Drawing takes at most one part in share of the time, so slow views are drawn less often. The pause is at most
	// mostWait.
	share    = 100
	mostWait = 10 * time.Second

	// the interval of messages on an idle connection, which detect a browser that is gone
	keepAlive    = 15 * time.Second
	stallTimeout = 30 * time.Second
)

// Records is the history that a Hub reads.
type Records interface {
	LastEvent(context.Context) (ipam.EventMark, error)
	EventsBehind(ctx context.Context, after ipam.EventMark, n int, wanted func(*ipam.Event) bool) (ipam.EventPage,
		error)
}

// Hub finds changes for all watchers.
type Hub struct {
	records Records
	look    time.Duration // interval of reads
	pace    time.Duration // pause between two notifications
	ticker  func(time.Duration) (ticks <-chan time.Time, stop func())

	mu       sync.Mutex
	cost     time.Duration // recent average time to draw a view
	last     time.Time     // time of the last notification
	watchers map[*watcher]bool
	mark     ipam.EventMark // events after it have not been read
	end      func()         // ends the loop and waits for it; nil: no loop runs
}

// New returns a Hub over records.
func New(records Records) *Hub {
	return &Hub{records: records, look: defaultLook, pace: defaultPace, ticker: ticking,
		watchers: map[*watcher]bool{}}
}

func ticking(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// Drew records how long it took to draw a view. Slow views make notifications less frequent.
func (h *Hub) Drew(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cost += (d - h.cost) / 8
}

// join adds a watcher, and starts the loop with the first one. It reports whether there was a free place.
func (h *Hub) join(ctx context.Context, w *watcher) (bool, error) {
	mark, err := h.records.LastEvent(ctx)
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) >= maxWatchers {
		return false, nil
	}
	h.watchers[w] = true
	if len(h.watchers) == 1 {
		h.mark = mark
		h.start()
	}
	return true, nil
}

// start starts the loop, independent of any request.
func (h *Hub) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.run(ctx)
	}()
	h.end = func() { cancel(); <-done }
}

// leave removes a watcher. The last one stops the loop and waits for it.
func (h *Hub) leave(w *watcher) {
	h.mu.Lock()
	delete(h.watchers, w)
	var end func()
	if len(h.watchers) == 0 {
		end, h.end = h.end, nil
	}
	h.mu.Unlock()
	if end != nil {
		end()
	}
}

// run reads and notifies until ctx ends.
func (h *Hub) run(ctx context.Context) {
	ticks, stop := h.ticker(h.pace)
	defer stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks:
			if now.Sub(looked) >= h.look {
				looked = now
				h.notice(ctx)
			}
			h.tellOne(now)
		}
	}
}

// notice reads what has happened, and marks watchers with a stale view. If the store does not answer, it tries again
// next time; the views themselves show the problem.
func (h *Hub) notice(ctx context.Context) {
	h.mu.Lock()
	from := h.mark
	h.mu.Unlock()
	found, err := h.behind(ctx, from)
	if err != nil || ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mark = found.mark
	for w := range h.watchers {
		if found.touches(w.network) {
			w.stale = true
		}
	}
}

// tellOne notifies one watcher with a stale view: the one that was notified longest ago.
func (h *Hub) tellOne(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.last) < min(share*h.cost, mostWait) {
		return
	}
	var next *watcher
	for w := range h.watchers {
		if w.stale && now.Sub(w.told) >= h.look && (next == nil || w.told.Before(next.told)) {
			next = w
		}
	}
	if next == nil {
		return
	}
	next.stale, next.told, h.last = false, now, now
	select {
	case next.tell <- h.mark:
	default: // an earlier notification is still waiting
	}
}

// happened is what happened after a mark.
type happened struct {
	mark     ipam.EventMark // after all of it
	all      bool           // any network may have changed
	networks map[string]bool
}

// touches reports whether a view of a network may be stale. An empty name means a view of all networks.
func (f *happened) touches(network string) bool {
	if network == "" {
		return f.all || len(f.networks) > 0
	}
	return f.all || f.networks[network]
}

// behind reads what happened after a mark.
func (h *Hub) behind(ctx context.Context, from ipam.EventMark) (*happened, error) {
	found, err := h.records.EventsBehind(ctx, from, page, func(*ipam.Event) bool { return true })
	if err != nil {
		return nil, err
	}
	f := &happened{mark: found.Next, networks: map[string]bool{}}
	if found.More {
		f.all = true
		f.mark, err = h.records.LastEvent(ctx)
		return f, err
	}
	for i := range found.Events {
		e := &found.Events[i]
		f.networks[e.Network] = true
		// other events may concern several networks
		if !strings.HasPrefix(e.Verb.String(), "lease.") || e.Network == "" {
			f.all = true
		}
	}
	return f, nil
}
