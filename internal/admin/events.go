package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// eventsAsked is what a request for events says.
type eventsAsked struct {
	wanted choice
	last   int
	follow bool
	after  *ipam.EventMark // nil: the last ones
}

func readEventsAsked(r *http.Request) (a eventsAsked, err error) {
	q, err := query(r, "since", "after", "last", "follow", "network", "verb")
	if err != nil {
		return a, err
	}
	a.wanted.network = q.Get("network")
	if text := q.Get("verb"); text != "" {
		if err := a.wanted.verb.UnmarshalText([]byte(text)); err != nil {
			return a, invalid("the parameter \"verb\" is %q; it is one such as lease.take or pool.add", text)
		}
	}
	if a.wanted.since, err = timeOf(q, "since"); err != nil {
		return a, err
	}
	if text := q.Get("after"); text != "" {
		a.after = new(ipam.EventMark)
		if err := a.after.UnmarshalText([]byte(text)); err != nil {
			return a, invalid("the parameter \"after\" is %q; it is the mark of an earlier answer", text)
		}
	}
	last, given, err := numberOf(q, "last", api.MaxEvents)
	if err != nil {
		return a, err
	}
	if a.last = int(last); !given {
		a.last = api.DefaultEvents
	}
	a.follow, err = boolOf(q, "follow")
	return a, err
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	asked, err := readEventsAsked(r)
	if err != nil {
		return err
	}
	if asked.after == nil {
		return s.lastEvents(w, r, asked)
	}
	most := asked.last
	if asked.follow {
		most = 0
	}
	page, err := s.cfg.Service.EventsBehind(r.Context(), *asked.after, most, asked.wanted.has)
	if err != nil {
		return err
	}
	if asked.follow {
		return s.follow(w, r, asked.wanted, nil, *asked.after)
	}
	return reply(w, api.EventList{Events: append([]ipam.Event{}, page.Events...), More: page.More, Mark: page.Next})
}

// lastEvents answers with the last events, and follows from there where that is wanted. What is committed while they
// are read is behind the mark.
func (s *Server) lastEvents(w http.ResponseWriter, r *http.Request, asked eventsAsked) error {
	mark, err := s.cfg.Service.LastEvent(r.Context())
	if err != nil {
		return err
	}
	past, more, err := s.eventsUntil(r.Context(), mark, asked.wanted, asked.last)
	if err != nil {
		return err
	}
	if asked.follow {
		return s.follow(w, r, asked.wanted, past, mark)
	}
	return reply(w, api.EventList{Events: past, More: more, Mark: mark})
}

// choice says which events are wanted; its zero fields choose all.
type choice struct {
	since   time.Time
	network string // the name of it, as it was then
	verb    ipam.Verb
}

func (c choice) has(e *ipam.Event) bool {
	return !e.Time.Before(c.since) && (c.network == "" || e.Network == c.network) && (c.verb == 0 || e.Verb == c.verb)
}

// of leaves the events that are wanted, in the slice of all.
func (c choice) of(events []ipam.Event) []ipam.Event {
	return slices.DeleteFunc(events, func(e ipam.Event) bool { return !c.has(&e) })
}

// eventsUntil returns the last n before a mark of the events that are wanted, at least the empty list, and whether
// there are more. It looks further back until it has found them, four times as far each time.
func (s *Server) eventsUntil(ctx context.Context, mark ipam.EventMark, wanted choice, n int) (
	events []ipam.Event, more bool, err error,
) {
	f := ipam.EventFilter{Since: wanted.since, Until: &mark}
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

// followedEvent is a line of a stream of events.
type followedEvent struct {
	ipam.Event
	Mark *ipam.EventMark `json:"mark,omitempty"`
}

// follow sends the past events and then each behind a mark that is none of them, a line of JSON for each, until the
// client goes or the server ends.
func (s *Server) follow(
	w http.ResponseWriter, r *http.Request, wanted choice, past []ipam.Event, from ipam.EventMark,
) error {
	ctx, cancel := context.WithCancel(r.Context())
	stopped := s.endWith(ctx, cancel)
	defer func() { cancel(); <-stopped }()
	control, err := untimed(w)
	if err != nil {
		return err
	}
	begin(w, "application/x-ndjson")
	if err := sendEvents(w, control, past, from); err != nil {
		return nil // the client is gone, or does not read
	}
	for page, err := range s.cfg.Service.TailPages(ctx, from) {
		if err != nil {
			return err
		}
		if err := sendEvents(w, control, wanted.of(page.Events), page.Next); err != nil {
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

// sendEvents sends events, the last of them with the mark behind all of them.
func sendEvents(
	w http.ResponseWriter, control *http.ResponseController, events []ipam.Event, mark ipam.EventMark,
) error {
	if err := control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	for i := range events {
		line := followedEvent{Event: events[i]}
		if i == len(events)-1 {
			line.Mark = &mark
		}
		if err := e.Encode(&line); err != nil {
			return err
		}
	}
	return control.Flush()
}
