package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"berth/internal/ipam"
)

// Export yields the plan network by network, by name, or one network of it, until an error is yielded, which is the
// last.
func (c *Client) Export(ctx context.Context, network string) iter.Seq2[ipam.PlannedNetwork, error] {
	return func(yield func(ipam.PlannedNetwork, error) bool) {
		res, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/export", query: params{"network": network}})
		if err != nil {
			yield(ipam.PlannedNetwork{}, err)
			return
		}
		defer res.Body.Close()
		d := json.NewDecoder(bufio.NewReaderSize(res.Body, 64<<10))
		if err := tokens(d, json.Delim('{'), "networks", json.Delim('[')); err != nil {
			yield(ipam.PlannedNetwork{}, c.brokenOff(err))
			return
		}
		for d.More() {
			var n ipam.PlannedNetwork
			if err := d.Decode(&n); err != nil {
				yield(n, c.brokenOff(err))
				return
			}
			if !yield(n, nil) {
				return
			}
		}
		if err := tokens(d, json.Delim(']'), json.Delim('}')); err != nil {
			yield(ipam.PlannedNetwork{}, c.brokenOff(err))
		}
	}
}

func (c *Client) brokenOff(err error) error {
	return fmt.Errorf("the export of Berth on %s broke off: %w", c.socket, sentence(err))
}

// tokens reads what must come next.
func tokens(d *json.Decoder, want ...json.Token) error {
	for _, token := range want {
		got, err := d.Token()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if got != token {
			return fmt.Errorf("%v came, and not %v", got, token)
		}
	}
	return nil
}
