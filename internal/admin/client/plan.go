package client

import (
	"context"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// EditOptions are the options of Client.Edit.
type EditOptions struct {
	DryRun  bool    // report what would change, and change nothing
	Refused bool    // with DryRun: report all edits that would be refused (ipam.Outcome.Refused)
	IfMatch uint64  // refuse (412, changed) unless the first edit's network has this revision; 0: any
	Deploy  ipam.ID // the deploy of the edits; zero: none
	Key     string  // Idempotency-Key: repeated within ipam.KeyAge, it returns the first answer; empty: none
}

// Edit makes all edits or none in one transaction. It takes at most ipam.MaxEdits, in a dry run ipam.MaxTried. If there
// are several, the *api.Problem of a refusal has the Index of the refused one.
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

// Networks lists the networks of a space by name, without the maps of their pools. An empty space means all.
func (c *Client) Networks(ctx context.Context, space string) ([]ipam.NetworkInfo, error) {
	return all(ctx, c, api.GetNetworks, api.NetworksRequest{InSpace: api.InSpace{Space: space}},
		func(l api.NetworkList) []ipam.NetworkInfo { return l.Networks })
}

// Network shows one network, by name or id, with its maps.
func (c *Client) Network(ctx context.Context, ref string) (ipam.NetworkInfo, error) {
	return call(ctx, c, api.GetNetwork, api.OfNetwork{Network: ref})
}

// Reservations lists reserved addresses by space, subnet and address, of a network and an owner. Empty means all.
func (c *Client) Reservations(ctx context.Context, network, owner string) ([]ipam.ReservationInfo, error) {
	row := api.GetReservations
	if network != "" {
		row = api.GetNetworkReservations
	}
	return all(ctx, c, row, owned(network, owner),
		func(l api.ReservationList) []ipam.ReservationInfo { return l.Reservations })
}

// Addresses lists external addresses in the same way as Reservations.
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

// Free lists the addresses of a network that anybody could get, as ranges by address. The network may be named by its
// Docker network.
func (c *Client) Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	return all(ctx, c, api.GetFree, api.FreeRequest{NextFreeRequest: nextFree(network, f)},
		func(l api.FreeList) []ipam.FreeRange { return l.Free })
}

// NextFree returns the address of each family that an unknown endpoint would get now.
func (c *Client) NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	list, err := call(ctx, c, api.GetNextFree, nextFree(network, f))
	return list.Free, err
}

func nextFree(network string, f ipam.FreeFilter) api.NextFreeRequest {
	return api.NextFreeRequest{OfNetwork: api.OfNetwork{Network: network}, FreeFilter: f}
}

// Scan makes the edge of the daemon's host ask on a network's LAN who has its addresses. An empty parent means the
// interface for the network's probes.
func (c *Client) Scan(ctx context.Context, network, parent string) (api.LANScan, error) {
	return call(ctx, c, api.PostScan, api.ScanRequest{OfNetwork: api.OfNetwork{Network: network}, Parent: parent})
}

// Environment lists the variables that describe an owner's addresses in a network, as KEY=VALUE.
func (c *Client) Environment(ctx context.Context, network, owner string) ([]string, error) {
	list, err := call(ctx, c, api.GetEnvironment,
		api.EnvironmentRequest{OfNetwork: api.OfNetwork{Network: network}, Owner: owner})
	return list.Variables, err
}
