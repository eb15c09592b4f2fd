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

// watcher is a browser that shows something.
type watcher struct {
	network string              // the name of the one network that it shows; empty: any
	tell    chan ipam.EventMark // of one place: it is told that there is something, and not how often

	stale bool      // the Hub's: it shows something old and has not been told
	told  time.Time // the Hub's: when it was told last
}

// Watch answers with a stream that says each time that a view is to be asked for again, until ctx ends or ended is
// closed. after is where the view that is shown is up to date, nil where that is not known; network is the name of the
// one that it is about, empty for all. An error is one of before the answer has begun.
func (h *Hub) Watch(ctx context.Context, ended <-chan struct{}, w http.ResponseWriter, after *ipam.EventMark,
	network string) error {
	me := &watcher{network: network, tell: make(chan ipam.EventMark, 1)}
	joined, err := h.join(ctx, me)
	switch {
	case err != nil:
		return err
	case !joined:
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable,
			Detail: fmt.Sprintf("%d browsers watch already, and no more may: reload the page to see what is new",
				maxWatchers)}
	}
	defer h.leave(me)
	if after != nil { // what happened since it was drawn, and before it has joined
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
	silence := time.NewTicker(beat)
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
			return nil // it is gone, or does not read
		}
	}
}

// stream is an answer that goes on.
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
	return s.say("retry: 5000\n\n") // in ms, after which a browser that was cut off comes back
}

// changed says that a view is to be asked for again, and from where that is up to date.
func (s stream) changed(mark ipam.EventMark) error {
	id, err := mark.MarshalText()
	if err != nil {
		return err
	}
	return s.say(fmt.Sprintf("id: %s\nevent: changed\ndata: again\n\n", id))
}

// say sends a piece at once; the other end has its time to take it.
func (s stream) say(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}
