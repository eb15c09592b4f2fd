package live

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// watcher is a browser that shows a view.
type watcher struct {
	network string              // the name of the only network in the view; empty: any
	tell    chan ipam.EventMark // has one place, because only the fact matters and not how often

	stale bool      // used by the Hub: the view is stale and no notification was sent
	told  time.Time // used by the Hub: time of the last notification
}

// Watch answers with a stream of notifications that a view must be requested again. It ends with ctx or when ended is
// closed. after is the mark up to which the view is current; nil: unknown. network is the name of the view's network;
// empty: all. It returns an error only before the answer has begun.
func (h *Hub) Watch(ctx context.Context, ended <-chan struct{}, w http.ResponseWriter, after *ipam.EventMark,
	network string) error {
	me := &watcher{network: network, tell: make(chan ipam.EventMark, 1)}
	joined, err := h.join(ctx, me)
	switch {
	case err != nil:
		return err
	case !joined:
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable,
			Detail: fmt.Sprintf("%d browsers already follow changes, the maximum: reload the page to see changes",
				maxWatchers)}
	}
	defer h.leave(me)
	if after != nil { // what happened between the drawing and the join
		missed, err := h.behind(ctx, *after)
		if err != nil {
			return err
		}
		if missed.touches(network) {
			h.mu.Lock()
			me.stale = true
			h.mu.Unlock()
		}
	}
	s := stream{w, http.NewResponseController(w)}
	if err := s.begin(); err != nil {
		return nil // the browser is gone
	}
	silence := time.NewTicker(keepAlive)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case mark := <-me.tell:
			err = s.changed(mark)
		case <-silence.C:
			err = s.say(": still there\n\n")
		}
		if err != nil {
			return nil // the browser is gone or does not read
		}
	}
}

// stream is the answer of Watch.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) begin() error {
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	return s.say("retry: 5000\n\n") // in ms: a disconnected browser connects again after that
}

// changed sends a notification with the mark of the new view.
func (s stream) changed(mark ipam.EventMark) error {
	id, err := mark.MarshalText()
	if err != nil {
		return err
	}
	return s.say(fmt.Sprintf("id: %s\nevent: changed\ndata: again\n\n", id))
}

// say sends a piece at once. The other end has stallTimeout to read it.
func (s stream) say(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}
