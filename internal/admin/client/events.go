package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// KnownSince returns the time of the oldest stored event, or zero.
func (c *Client) KnownSince(ctx context.Context) (time.Time, error) {
	list, err := c.Events(ctx, ipam.EventFilter{})
	return list.KnownSince, err
}

// Events lists the last events that f selects, the oldest first. f.Last 0 selects none.
func (c *Client) Events(ctx context.Context, f ipam.EventFilter) (api.EventList, error) {
	return call(ctx, c, api.GetEvents, eventsRequest(f))
}

// Follow yields the events that Events lists, and then each new one. It ends with ctx or after it has yielded an error.
// A server that ends is an error.
func (c *Client) Follow(ctx context.Context, f ipam.EventFilter) iter.Seq2[ipam.Event, error] {
	req := eventsRequest(f)
	req.Follow = true
	return followed[ipam.Event](ctx, c, requestOf(api.GetEvents, req), "stopped sending events")
}

// followed yields the items of an answer that lasts as long as the daemon runs. It ends with ctx or after it has
// yielded an error. ended is the text of the error when the daemon ends the answer.
func followed[T any](ctx context.Context, c *Client, r request, ended string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		res, err := c.do(ctx, r)
		if err != nil {
			yield(none, err)
			return
		}
		defer res.Body.Close()
		d := json.NewDecoder(bufio.NewReader(res.Body))
		for {
			var one T
			if err := d.Decode(&one); err != nil {
				if ctx.Err() == nil {
					yield(none, fmt.Errorf("the daemon on %s %s: %w", c.socket, ended, sentence(err)))
				}
				return
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

func eventsRequest(f ipam.EventFilter) api.EventsRequest {
	req := api.EventsRequest{Since: f.Since, Until: f.Before, Last: f.Last, Networks: f.Networks}
	for _, v := range f.Verbs {
		req.Verbs = append(req.Verbs, v.String())
	}
	return req
}
