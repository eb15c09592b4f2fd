package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// eventFilter returns the filter of a request.
func eventFilter(req *api.EventsRequest) (ipam.EventFilter, error) {
	f := ipam.EventFilter{Since: req.Since, Before: req.Until, Networks: req.Networks}
	for _, pattern := range req.Verbs {
		verbs := ipam.VerbsLike(pattern)
		if len(verbs) == 0 {
			return f, invalid("the parameter \"verb\" has %q; write a verb such as lease.take, or lease.* for all "+
				"verbs of lease; the verbs are %s", pattern, strings.Join(ipam.Verbs(), ", "))
		}
		f.Verbs = append(f.Verbs, verbs...)
	}
	return f, nil
}

func (s *Server) events(w http.ResponseWriter, r *http.Request, req api.EventsRequest) error {
	wanted, err := eventFilter(&req)
	if err != nil {
		return err
	}
	if req.After == nil {
		return s.lastEvents(w, r, &req, wanted)
	}
	most := req.Last
	if req.Follow {
		most = 0
	}
	page, err := s.cfg.Service.EventsBehind(r.Context(), *req.After, most, wanted.Has)
	if err != nil {
		return err
	}
	if req.Follow {
		return s.follow(w, r, wanted, nil, *req.After)
	}
	return s.replyEvents(w, r, api.EventList{Events: append([]ipam.Event{}, page.Events...), More: page.More,
		Mark: page.Next})
}

// replyEvents answers with a list of events, and the time since which events are kept.
func (s *Server) replyEvents(w http.ResponseWriter, r *http.Request, list api.EventList) error {
	oldest, err := s.cfg.Service.Events(r.Context(), ipam.EventFilter{First: 1})
	if err != nil {
		return err
	}
	if len(oldest) > 0 {
		list.KnownSince = oldest[0].Time
	}
	return reply(w, list)
}

// lastEvents answers with the last events, and follows from there if requested. Events that are committed during the
// read come after the mark.
func (s *Server) lastEvents(w http.ResponseWriter, r *http.Request, req *api.EventsRequest,
	wanted ipam.EventFilter) error {
	mark, err := s.cfg.Service.LastEvent(r.Context())
	if err != nil {
		return err
	}
	past, more, err := s.eventsUntil(r.Context(), mark, wanted, req.Last)
	if err != nil {
		return err
	}
	if req.Follow {
		return s.follow(w, r, wanted, past, mark)
	}
	return s.replyEvents(w, r, api.EventList{Events: past, More: more, Mark: mark})
}

// chosen removes the events that the filter does not select, in place.
func chosen(events []ipam.Event, wanted *ipam.EventFilter) []ipam.Event {
	return slices.DeleteFunc(events, func(e ipam.Event) bool { return !wanted.Has(&e) })
}

// eventsUntil returns the last n selected events before a mark, never nil, and whether there are more.
func (s *Server) eventsUntil(ctx context.Context, mark ipam.EventMark, f ipam.EventFilter, n int) (
	events []ipam.Event, more bool, err error,
) {
	f.Until, f.Last = &mark, n+1
	if events, err = s.cfg.Service.Events(ctx, f); err != nil {
		return nil, false, err
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

// follow sends the past events and then each new one after the mark, a line of JSON for each. It ends with the client
// or the server.
func (s *Server) follow(
	w http.ResponseWriter, r *http.Request, wanted ipam.EventFilter, past []ipam.Event, from ipam.EventMark,
) error {
	ctx, end := s.whileServing(r.Context())
	defer end()
	if err := untimed(w); err != nil {
		return err
	}
	control := http.NewResponseController(w)
	begin(w, api.LinesType)
	if err := sendEvents(w, control, past, from); err != nil {
		return nil // the client is gone or does not read
	}
	for page, err := range s.cfg.Service.TailPages(ctx, from) {
		if err != nil {
			return err
		}
		if err := sendEvents(w, control, chosen(page.Events, &wanted), page.Next); err != nil {
			return nil
		}
	}
	return nil
}

// whileServing returns a context that also ends with the server. Call end when it is no longer needed.
func (s *Server) whileServing(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	stopped := s.endWith(ctx, cancel)
	return ctx, func() { cancel(); <-stopped }
}

// endWith cancels ctx when the server ends. The returned channel is closed when it has stopped waiting.
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

// sendEvents sends events, the last of them with the mark after all of them.
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
