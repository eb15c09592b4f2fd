package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// KnownSince is the time of the oldest event that is kept; zero where there is none.
func (c *Client) KnownSince(ctx context.Context) (time.Time, error) {
	list, err := c.Events(ctx, ipam.EventFilter{})
	return list.KnownSince, err
}

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
	q := eventParams(f)
	q["follow"] = "true"
	return followed[ipam.Event](ctx, c, request{method: http.MethodGet, path: "/v1/events", query: q},
		"stopped sending events")
}

// followed yields what comes of a request that is answered for as long as the daemon runs, until ctx ends or an error
// is yielded, which is the last: it says that the daemon has ended that.
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

func eventParams(f ipam.EventFilter) params {
	q := params{"last": strconv.Itoa(f.Last)}
	if !f.Since.IsZero() {
		q["since"] = f.Since.UTC().Format(time.RFC3339Nano)
	}
	if !f.Before.IsZero() {
		q["until"] = f.Before.UTC().Format(time.RFC3339Nano)
	}
	verbs := make([]string, len(f.Verbs))
	for i, v := range f.Verbs {
		verbs[i] = v.String()
	}
	q["network"], q["verb"] = strings.Join(f.Networks, ","), strings.Join(verbs, ",")
	return q
}
