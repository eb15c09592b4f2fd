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

// Bounds of what watching costs.
const (
	maxWatchers = 64
	page        = 256 // events that are looked at each time; where there are more, everything counts as changed

	// each view that is drawn anew is a piece of work beside that of the driver
	defaultPace = 250 * time.Millisecond
	defaultLook = time.Second
	// of which drawing takes this part at most, so that what takes longer is drawn less often, up to a bound
	share    = 100
	mostWait = 10 * time.Second

	beat         = 15 * time.Second // after which silence is broken, so that who is gone is noticed
	stallTimeout = 30 * time.Second
)

// Records are what a Hub asks: what was, and nothing else.
type Records interface {
	LastEvent(context.Context) (ipam.EventMark, error)
	EventsBehind(ctx context.Context, after ipam.EventMark, n int, wanted func(*ipam.Event) bool) (ipam.EventPage,
		error)
}

// Hub looks what has changed, for all who watch.
type Hub struct {
	records Records
	look    time.Duration // how often it looks
	pace    time.Duration // between two watchers that are told
	ticker  func(time.Duration) (ticks <-chan time.Time, stop func())

	mu       sync.Mutex
	cost     time.Duration // of drawing a view, of late
	last     time.Time     // when somebody was told
	watchers map[*watcher]bool
	mark     ipam.EventMark // what is behind it has not been looked at
	end      func()         // ends the loop, and waits for that; nil: there is none
}

// New returns a Hub over what happens in records.
func New(records Records) *Hub {
	return &Hub{records: records, look: defaultLook, pace: defaultPace, ticker: ticking,
		watchers: map[*watcher]bool{}}
}

func ticking(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// Drew notes how long it took to draw a view: those who watch are told the less often.
func (h *Hub) Drew(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cost += (d - h.cost) / 8
}

// join adds a watcher. The first one sets the Hub going. It tells whether there was room.
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

// start begins to look, and to tell. It belongs to no request.
func (h *Hub) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.run(ctx)
	}()
	h.end = func() { cancel(); <-done }
}

// leave takes a watcher out. The last one stops the Hub, and waits for that.
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

// run looks and tells until ctx ends.
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

// notice looks what has happened, and which watchers show something old by it. A store that does not answer is asked
// again the next time: the views themselves say what is wrong with it.
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

// tellOne tells one watcher: of those that show something old the one that was told longest ago.
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
	default: // it was told, and has not heard it yet
	}
}

// happened is what is behind a mark.
type happened struct {
	mark     ipam.EventMark // behind all of it
	all      bool           // it may be about any network
	networks map[string]bool
}

// touches tells whether a view of a network, or of all where it is empty, may be old by it.
func (f *happened) touches(network string) bool {
	if network == "" {
		return f.all || len(f.networks) > 0
	}
	return f.all || f.networks[network]
}

// behind looks at what is behind a mark.
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
		if !strings.HasPrefix(e.Verb.String(), "lease.") || e.Network == "" { // what else there is may touch several
			f.all = true
		}
	}
	return f, nil
}
