package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Export yields the plan network by network, by name, or only one network. It ends after it has yielded an error.
func (c *Client) Export(ctx context.Context, network string) iter.Seq2[ipam.PlannedNetwork, error] {
	r := requestOf(api.GetExport, api.ExportRequest{Network: network})
	return each[ipam.PlannedNetwork](ctx, c, r, "networks", "export")
}

// each yields the items of an answer that is one list with this name, while they arrive. It ends after it has yielded
// an error, which names what broke off.
func each[T any](ctx context.Context, c *Client, r request, list, what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		res, err := c.do(ctx, r)
		if err != nil {
			yield(none, err)
			return
		}
		defer res.Body.Close()
		brokenOff := func(err error) {
			yield(none, fmt.Errorf("the %s of Berth on %s broke off: %w", what, c.socket, sentence(err)))
		}
		d := json.NewDecoder(bufio.NewReaderSize(res.Body, 64<<10))
		if err := tokens(d, json.Delim('{'), list, json.Delim('[')); err != nil {
			brokenOff(err)
			return
		}
		for d.More() {
			var item T
			if err := d.Decode(&item); err != nil {
				brokenOff(err)
				return
			}
			if !yield(item, nil) {
				return
			}
		}
		if err := tokens(d, json.Delim(']'), json.Delim('}')); err != nil {
			brokenOff(err)
		}
	}
}

// tokens reads the tokens that must come next.
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
			return fmt.Errorf("got %v instead of %v", got, token)
		}
	}
	return nil
}
