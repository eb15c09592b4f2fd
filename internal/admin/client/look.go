package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Spaces lists the spaces by name.
func (c *Client) Spaces(ctx context.Context) ([]ipam.SpaceInfo, error) {
	var list api.SpaceList
	err := c.call(ctx, http.MethodGet, "/v1/spaces", nil, nil, &list)
	return list.Spaces, err
}

// Subnets lists the subnets of a space, or of all where it is empty, by space and address.
func (c *Client) Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error) {
	var list api.SubnetList
	err := c.call(ctx, http.MethodGet, "/v1/subnets", params{"space": space}, nil, &list)
	return list.Subnets, err
}

// Leases lists leases by space, subnet and address.
func (c *Client) Leases(ctx context.Context, f ipam.LeaseFilter) ([]ipam.LeaseInfo, error) {
	q := params{"space": f.Space}
	if f.Subnet.IsValid() {
		q["subnet"] = f.Subnet.String()
	}
	if f.Remembered {
		q["remembered"] = "true"
	}
	var list api.LeaseList
	err := c.call(ctx, http.MethodGet, "/v1/leases", q, nil, &list)
	return list.Leases, err
}

// Who tells who has or had an address, or what a MAC or a name has and had, the earliest first.
func (c *Client) Who(ctx context.Context, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	q := params{"mac": f.MAC.String(), "name": f.Name, "space": f.Space}
	if f.Address.IsValid() {
		q["address"] = f.Address.String()
	}
	if !f.At.IsZero() {
		q["at"] = f.At.UTC().Format(time.RFC3339Nano)
	}
	var list api.TenureList
	err := c.call(ctx, http.MethodGet, "/v1/who", q, nil, &list)
	return list.Tenures, err
}

// Hosts lists the hosts that share the server's store.
func (c *Client) Hosts(ctx context.Context) ([]ipam.HostInfo, error) {
	var list api.HostList
	err := c.call(ctx, http.MethodGet, api.HostsPath, nil, nil, &list)
	return list.Hosts, err
}

// Host shows one of them.
func (c *Client) Host(ctx context.Context, name string) (h ipam.HostInfo, err error) {
	return h, c.call(ctx, http.MethodGet, strings.Replace(api.HostPath, "{name}", url.PathEscape(name), 1), nil, nil,
		&h)
}
