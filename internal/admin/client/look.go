package client

import (
	"context"
	"iter"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Spaces lists the spaces by name.
func (c *Client) Spaces(ctx context.Context) ([]ipam.SpaceInfo, error) {
	list, err := ask(ctx, c, api.GetSpaces)
	return list.Spaces, err
}

// Subnets lists the subnets of a space by space and address. An empty space means all.
func (c *Client) Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error) {
	list, err := call(ctx, c, api.GetSubnets, api.SubnetsRequest{InSpace: api.InSpace{Space: space}})
	return list.Subnets, err
}

// Subnet shows one subnet, by id.
func (c *Client) Subnet(ctx context.Context, id ipam.ID) (ipam.SubnetInfo, error) {
	return call(ctx, c, api.GetSubnet, api.OfSubnet{ID: id})
}

// Leases lists leases by space, subnet and address.
func (c *Client) Leases(ctx context.Context, f ipam.LeaseFilter) ([]ipam.LeaseInfo, error) {
	list, err := call(ctx, c, api.GetLeases, api.LeasesRequest{LeaseFilter: f})
	return list.Leases, err
}

// BriefLeases yields the identifying fields of leases, by space, subnet and address. It ends after it has yielded an
// error.
func (c *Client) BriefLeases(ctx context.Context, f ipam.LeaseFilter) iter.Seq2[api.BriefLease, error] {
	r := requestOf(api.GetLeases, api.LeasesRequest{LeaseFilter: f, Brief: true})
	return each[api.BriefLease](ctx, c, r, "leases", "list of leases")
}

// Who returns who has or had an address, or the addresses of a MAC or a name, the earliest first.
func (c *Client) Who(ctx context.Context, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	list, err := call(ctx, c, api.GetWho, f)
	return list.Tenures, err
}

// Find lists all matches of a word.
func (c *Client) Find(ctx context.Context, f ipam.FindFilter) ([]ipam.Found, error) {
	return all(ctx, c, api.GetFind, api.FindRequest{FindFilter: f},
		func(l api.FoundList) []ipam.Found { return l.Found })
}

// Hosts lists the hosts that share the server's store.
func (c *Client) Hosts(ctx context.Context) ([]ipam.HostInfo, error) {
	list, err := ask(ctx, c, api.GetHosts)
	return list.Hosts, err
}

// Host shows one host.
func (c *Client) Host(ctx context.Context, name string) (ipam.HostInfo, error) {
	return call(ctx, c, api.GetHost, api.HostRequest{Name: name})
}

// Names returns the owners of addresses, from which names in DNS are made.
func (c *Client) Names(ctx context.Context) (api.Names, error) { return ask(ctx, c, api.GetNames) }
