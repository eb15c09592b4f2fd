package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"berth/internal/ipam"
)

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "since", "after", "last", "follow", "network", "verb")
	if err != nil {
		return err
	}
	wanted := choice{network: q.Get("network")}
	if text := q.Get("verb"); text != "" {
		if err := wanted.verb.UnmarshalText([]byte(text)); err != nil {
			return invalid("the parameter \"verb\" is %q; it is one such as lease.take or pool.add", text)
		}
	}
	f := ipam.EventFilter{}
	if f.Since, err = timeOf(q, "since"); err != nil {
		return err
	}
	if f.After, _, err = numberOf(q, "after", 1<<63-1); err != nil {
		return err
	}
	last, given, err := numberOf(q, "last", MaxEvents)
	if err != nil {
		return err
	}
	follow, err := boolOf(q, "follow")
	if err != nil {
		return err
	}
	if !given {
		last = DefaultEvents
	}
	var from ipam.EventMark
	if follow { // from here on: what comes meanwhile is among the past, too
		from, err = s.cfg.Service.LastEvent(r.Context())
	}
	if err != nil {
		return err
	}
	past, more, err := s.lastEvents(r.Context(), f, wanted, int(last))
	if err != nil {
		return err
	}
	if follow {
		return s.follow(w, r, wanted, past, from)
	}
	return reply(w, EventList{Events: past, More: more})
}

// choice says which events are wanted besides their time; its zero fields choose all.
type choice struct {
	network string // the name of it, as it was then
	verb    ipam.Verb
}

// of leaves the events that are wanted, in the slice of all.
func (c choice) of(events []ipam.Event) []ipam.Event {
	return slices.DeleteFunc(events, func(e ipam.Event) bool {
		return c.network != "" && e.Network != c.network || c.verb != 0 && e.Verb != c.verb
	})
}

// lastEvents returns the last n of the events that f and wanted choose, at least the empty list, and whether there are
// more. It looks further back until it has found them, four times as far each time.
func (s *Server) lastEvents(ctx context.Context, f ipam.EventFilter, wanted choice, n int) (events []ipam.Event, more bool, err error) {
	for f.Last = n + 1; ; f.Last *= 4 {
		if events, err = s.cfg.Service.Events(ctx, f); err != nil {
			return nil, false, err
		}
		whole := len(events) < f.Last
		if events = wanted.of(events); whole || len(events) > n {
			break
		}
	}
	if more = len(events) > n; more {
		events = events[len(events)-n:]
	}
	return append([]ipam.Event{}, events...), more, nil
}

// follow sends the past events and then each behind a mark that is none of them, a line of JSON for each, until the client goes or
// the server ends.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, wanted choice, past []ipam.Event, from ipam.EventMark) error {
	ctx, cancel := context.WithCancel(r.Context())
	stopped := s.endWith(ctx, cancel)
	defer func() { cancel(); <-stopped }()
	control, err := untimed(w)
	if err != nil {
		return err
	}
	begin(w, "application/x-ndjson")
	if err := sendEvents(w, control, past); err != nil {
		return nil // the client is gone, or does not read
	}
	told := map[sentEvent]bool{}
	for _, e := range past {
		told[sentEvent{e.Space, e.ID}] = true
	}
	for page, err := range s.cfg.Service.TailPages(ctx, from) {
		if err != nil {
			return err
		}
		events := slices.DeleteFunc(wanted.of(page.Events), func(e ipam.Event) bool { return told[sentEvent{e.Space, e.ID}] })
		if err := sendEvents(w, control, events); err != nil {
			return nil
		}
	}
	return nil
}

// endWith cancels ctx when the server ends. What it returns is closed when it waits no more.
func (s *Server) endWith(ctx context.Context, cancel context.CancelFunc) <-chan struct{} {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return stopped
}

// sentEvent knows an event again. Ids are one store's.
type sentEvent struct {
	space string
	id    uint64
}

func sendEvents(w http.ResponseWriter, control *http.ResponseController, events []ipam.Event) error {
	if err := control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	for i := range events {
		if err := e.Encode(&events[i]); err != nil {
			return err
		}
	}
	return control.Flush()
}
