package client

import (
	"context"

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

// Edit makes the edits, all of them or none, in one transaction; at most ipam.MaxEdits, in a dry run
// ipam.MaxTried. Where there are several, the
// *api.Problem of a refusal says which one (Index).
func (c *Client) Edit(ctx context.Context, opt EditOptions, edits ...ipam.Edit) (ipam.Outcome, error) {
	body := api.Edits{Edits: make([]api.Edit, len(edits)), DryRun: opt.DryRun, Refused: opt.Refused}
	for i, e := range edits {
		body.Edits[i] = api.Edit{Edit: e}
	}
	req := api.EditsRequest{Change: api.Change{Key: opt.Key, Deploy: opt.Deploy}, Body: body}
	if opt.IfMatch > 0 {
		req.IfMatch = api.ETag(opt.IfMatch)
	}
	return call(ctx, c, api.PostEdits, req)
}

// Networks lists the networks of a space, or of all where it is empty, by name, without the maps of their pools.
func (c *Client) Networks(ctx context.Context, space string) ([]ipam.NetworkInfo, error) {
	return all(ctx, c, api.GetNetworks, api.NetworksRequest{InSpace: api.InSpace{Space: space}},
		func(l api.NetworkList) []ipam.NetworkInfo { return l.Networks })
}

// Network shows one network, by name or id, with its maps.
func (c *Client) Network(ctx context.Context, ref string) (ipam.NetworkInfo, error) {
	return call(ctx, c, api.GetNetwork, api.OfNetwork{Network: ref})
}

// Reservations lists reserved addresses by space, subnet and address: those of a network and of an owner, or of all
// where they are empty.
func (c *Client) Reservations(ctx context.Context, network, owner string) ([]ipam.ReservationInfo, error) {
	row := api.GetReservations
	if network != "" {
		row = api.GetNetworkReservations
	}
	return all(ctx, c, row, owned(network, owner),
		func(l api.ReservationList) []ipam.ReservationInfo { return l.Reservations })
}

// Addresses lists what was taken for what is no container, as Reservations does.
func (c *Client) Addresses(ctx context.Context, network, owner string) ([]ipam.TakenAddress, error) {
	row := api.GetAddresses
	if network != "" {
		row = api.GetNetworkAddresses
	}
	return all(ctx, c, row, owned(network, owner), func(l api.AddressList) []ipam.TakenAddress { return l.Addresses })
}

func owned(network, owner string) api.OwnedRequest {
	return api.OwnedRequest{OfNetwork: api.OfNetwork{Network: network}, Owner: owner}
}

// Free lists the addresses of a network that could be given to anybody, as ranges by address; the network may be one
// that Docker calls so.
func (c *Client) Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	return all(ctx, c, api.GetFree, api.FreeRequest{NextFreeRequest: nextFree(network, f)},
		func(l api.FreeList) []ipam.FreeRange { return l.Free })
}

// NextFree tells which address of each family an endpoint that nobody knows would be given now.
func (c *Client) NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	list, err := call(ctx, c, api.GetNextFree, nextFree(network, f))
	return list.Free, err
}

func nextFree(network string, f ipam.FreeFilter) api.NextFreeRequest {
	return api.NextFreeRequest{OfNetwork: api.OfNetwork{Network: network}, FreeFilter: f}
}

// Scan has the edge of the daemon's host ask on a network's LAN who has its addresses; parent: empty for the interface
// that the network is probed by.
func (c *Client) Scan(ctx context.Context, network, parent string) (api.LANScan, error) {
	return call(ctx, c, api.PostScan, api.ScanRequest{OfNetwork: api.OfNetwork{Network: network}, Parent: parent})
}

// Environment lists the variables that describe an owner's addresses in a network, KEY=VALUE (GA-25).
func (c *Client) Environment(ctx context.Context, network, owner string) ([]string, error) {
	list, err := call(ctx, c, api.GetEnvironment,
		api.EnvironmentRequest{OfNetwork: api.OfNetwork{Network: network}, Owner: owner})
	return list.Variables, err
}
