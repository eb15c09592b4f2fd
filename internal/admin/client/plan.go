package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// EditOptions say how Client.Edit makes its edits.
type EditOptions struct {
	DryRun  bool    // tell what would change, and change nothing
	Refused bool    // with DryRun: tell of all edits that would be refused (ipam.Outcome.Refused)
	IfMatch uint64  // refuse (412, changed) unless this is the revision of the first edit's network; 0: any
	Deploy  ipam.ID // for which the edits are made (BD-1); zero: none
	Key     string  // Idempotency-Key: given again within ipam.KeyAge it gets the first answer; empty: none
}

// bulk is the body of POST /v1/edits as a Client writes it.
type bulk struct {
	Edits  []named `json:"edits"`
	DryRun bool    `json:"dry_run,omitempty"`

	Refused bool `json:"all_refused,omitempty"`
}

// named is an edit with its operation, an object of one level.
type named struct{ ipam.Edit }

// MarshalJSON writes {"op":"pool.add", and the fields of the edit.
func (n named) MarshalJSON() ([]byte, error) {
	fields, err := json.Marshal(n.Edit)
	if err != nil {
		return nil, err
	}
	text := append([]byte(`{"op":`), strconv.Quote(n.Op())...)
	if len(fields) > len("{}") {
		text = append(text, ',')
	}
	return append(text, fields[1:]...), nil
}

// Edit makes the edits, all of them or none, in one transaction; at most ipam.MaxEdits, in a dry run
// ipam.MaxTried. Where there are several, the
// *api.Problem of a refusal says which one (Index).
func (c *Client) Edit(ctx context.Context, opt EditOptions, edits ...ipam.Edit) (out ipam.Outcome, err error) {
	body := bulk{Edits: make([]named, len(edits)), DryRun: opt.DryRun, Refused: opt.Refused}
	for i, e := range edits {
		body.Edits[i] = named{e}
	}
	r := request{method: http.MethodPost, path: api.EditsPath, body: body,
		header: map[string]string{api.KeyHeader: opt.Key}}
	if opt.Deploy != (ipam.ID{}) {
		r.header[api.DeployHeader] = opt.Deploy.String()
	}
	if opt.IfMatch > 0 {
		r.header["If-Match"] = api.ETag(opt.IfMatch)
	}
	return out, c.fetch(ctx, r, &out)
}

// Networks lists the networks of a space, or of all where it is empty, by name, without the maps of their pools.
func (c *Client) Networks(ctx context.Context, space string) ([]ipam.NetworkInfo, error) {
	return pages(ctx, c, "/v1/networks", params{"space": space}, func(l *api.NetworkList) ([]ipam.NetworkInfo, string) {
		return l.Networks, l.Next
	})
}

// Network shows one network, by name or id, with its maps.
func (c *Client) Network(ctx context.Context, ref string) (n ipam.NetworkInfo, err error) {
	return n, c.call(ctx, http.MethodGet, networkPath(ref), nil, nil, &n)
}

// Reservations lists reserved addresses by space, subnet and address: those of a network and of an owner, or of all
// where they are empty.
func (c *Client) Reservations(ctx context.Context, network, owner string) ([]ipam.ReservationInfo, error) {
	return pages(ctx, c, networkPath(network, "reservations"), params{"owner": owner},
		func(l *api.ReservationList) ([]ipam.ReservationInfo, string) { return l.Reservations, l.Next })
}

// Addresses lists what was taken for what is no container, as Reservations does.
func (c *Client) Addresses(ctx context.Context, network, owner string) ([]ipam.TakenAddress, error) {
	return pages(ctx, c, networkPath(network, "addresses"), params{"owner": owner},
		func(l *api.AddressList) ([]ipam.TakenAddress, string) { return l.Addresses, l.Next })
}

// Free lists the addresses of a network that could be given to anybody, as ranges by address; the network may be one
// that Docker calls so.
func (c *Client) Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	return pages(ctx, c, networkPath(network, "free"), freeParams(&f),
		func(l *api.FreeList) ([]ipam.FreeRange, string) { return l.Free, l.Next })
}

// NextFree tells which address of each family an endpoint that nobody knows would be given now.
func (c *Client) NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	var list api.FreeList
	err := c.call(ctx, http.MethodGet, networkPath(network, "free", "next"), freeParams(&f), nil, &list)
	return list.Free, err
}

// Scan has the edge of the daemon's host ask on a network's LAN who has its addresses; parent: empty for the interface
// that the network is probed by.
func (c *Client) Scan(ctx context.Context, network, parent string) (scan api.LANScan, err error) {
	p := params{}
	if parent != "" {
		p["parent"] = parent
	}
	return scan, c.call(ctx, http.MethodPost, networkPath(network, "scan"), p, nil, &scan)
}

func freeParams(f *ipam.FreeFilter) params {
	q := params{"pool": f.Pool}
	if f.Subnet.IsValid() {
		q["subnet"] = f.Subnet.String()
	}
	return q
}

// Environment lists the variables that describe an owner's addresses in a network, KEY=VALUE (GA-25).
func (c *Client) Environment(ctx context.Context, network, owner string) ([]string, error) {
	var list api.VariableList
	err := c.call(ctx, http.MethodGet, networkPath(network, "env", owner), nil, nil, &list)
	return list.Variables, err
}

// networkPath is the path of a network or of what is below it; with the empty network that of the same thing in all.
func networkPath(network string, below ...string) string {
	path := "/v1"
	if network != "" {
		path += "/networks/" + url.PathEscape(network)
	}
	for _, segment := range below {
		path += "/" + url.PathEscape(segment)
	}
	return path
}

// pages collects a list page by page; of tells what is on a page, and where the next one begins.
func pages[L, T any](ctx context.Context, c *Client, path string, q params, of func(*L) ([]T, string)) ([]T, error) {
	var all []T
	for {
		var list L
		if err := c.call(ctx, http.MethodGet, path, q, nil, &list); err != nil {
			return nil, err
		}
		items, next := of(&list)
		all = append(all, items...)
		if next == "" {
			return all, nil
		}
		q["after"] = next
	}
}
