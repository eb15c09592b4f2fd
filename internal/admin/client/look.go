package client

import (
	"context"
	"iter"
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

// Subnet shows one subnet, by id.
func (c *Client) Subnet(ctx context.Context, id ipam.ID) (sub ipam.SubnetInfo, err error) {
	return sub, c.call(ctx, http.MethodGet, "/v1/subnets/"+id.String(), nil, nil, &sub)
}

// Leases lists leases by space, subnet and address.
func (c *Client) Leases(ctx context.Context, f ipam.LeaseFilter) ([]ipam.LeaseInfo, error) {
	var list api.LeaseList
	err := c.call(ctx, http.MethodGet, "/v1/leases", leaseParams(f), nil, &list)
	return list.Leases, err
}

// BriefLeases yields what leases are called by, by space, subnet and address, until an error is yielded, which is the
// last.
func (c *Client) BriefLeases(ctx context.Context, f ipam.LeaseFilter) iter.Seq2[api.BriefLease, error] {
	q := leaseParams(f)
	q["brief"] = "true"
	return each[api.BriefLease](ctx, c, request{method: http.MethodGet, path: "/v1/leases", query: q}, "leases",
		"list of leases")
}

func leaseParams(f ipam.LeaseFilter) params {
	q := params{"space": f.Space}
	if f.Subnet.IsValid() {
		q["subnet"] = f.Subnet.String()
	}
	if f.Address.IsValid() {
		q["address"] = f.Address.String()
	}
	if f.Remembered {
		q["remembered"] = "true"
	}
	return q
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

// Find lists what a word is found at, all of it.
func (c *Client) Find(ctx context.Context, f ipam.FindFilter) ([]ipam.Found, error) {
	q := params{"q": f.Word, "space": f.Space, "kind": strings.Join(f.Kinds, ",")}
	if f.Exact {
		q["exact"] = "true"
	}
	return pages(ctx, c, api.FindPath, q, func(l *api.FoundList) ([]ipam.Found, string) { return l.Found, l.Next })
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
