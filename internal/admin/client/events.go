package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Events lists the last events that f chooses, the oldest first. f.Last is taken as it is: 0 chooses none.
func (c *Client) Events(ctx context.Context, f ipam.EventFilter) (api.EventList, error) {
	var list api.EventList
	err := c.call(ctx, http.MethodGet, "/v1/events", eventParams(f), nil, &list)
	return list, err
}

// EventsAfter lists the events behind a mark that f chooses, the oldest first, f.Last of them at most. The mark of its
// answer is where to go on.
func (c *Client) EventsAfter(ctx context.Context, mark ipam.EventMark, f ipam.EventFilter) (api.EventList, error) {
	var list api.EventList
	text, err := mark.MarshalText()
	if err != nil {
		return list, err
	}
	q := eventParams(f)
	q["after"] = string(text)
	err = c.call(ctx, http.MethodGet, "/v1/events", q, nil, &list)
	return list, err
}

// Follow yields the events that Events lists and then each that comes, until ctx ends or an error is yielded, which is
// the last. A server that ends is an error.
func (c *Client) Follow(ctx context.Context, f ipam.EventFilter) iter.Seq2[ipam.Event, error] {
	return func(yield func(ipam.Event, error) bool) {
		q := eventParams(f)
		q["follow"] = "true"
		res, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/events", query: q})
		if err != nil {
			yield(ipam.Event{}, err)
			return
		}
		defer res.Body.Close()
		d := json.NewDecoder(bufio.NewReader(res.Body))
		for {
			var e ipam.Event
			if err := d.Decode(&e); err != nil {
				if ctx.Err() == nil {
					yield(ipam.Event{}, fmt.Errorf("the daemon on %s stopped sending events: %w", c.socket,
						sentence(err)))
				}
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func eventParams(f ipam.EventFilter) params {
	q := params{"last": strconv.Itoa(f.Last)}
	if !f.Since.IsZero() {
		q["since"] = f.Since.UTC().Format(time.RFC3339Nano)
	}
	return q
}
