package network

import (
	"net/netip"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// place is the place of a pool or an exclusion, as lists show it.
type place struct {
	Network   string       `json:"network"`
	NetworkID ipam.ID      `json:"network_id"`
	Space     string       `json:"space"`
	Subnet    netip.Prefix `json:"subnet"`

	tags map[string]string
}

func placeOf(n *ipam.NetworkInfo, s *ipam.SubnetPlan) place {
	return place{Network: n.Name, NetworkID: n.ID, Space: n.Space, Subnet: s.CIDR, tags: n.Tags}
}

func (at place) tagsOf() map[string]string { return at.tags }

// listParts lists parts of the subnets of one network or of all. of returns the parts of one subnet.
func listParts[T interface{ tagsOf() map[string]string }](verb cli.Verb,
	of func(*ipam.NetworkInfo, *ipam.SubnetPlan) []T, columns cli.Fields) cli.Row {
	verb.Use = "ls [NETWORK]"
	return cli.Listing[T]{
		Verb:    verb,
		Keys:    cli.Fields{"network", "space", cli.ByTag(func(row *T) map[string]string { return (*row).tagsOf() })},
		Columns: columns,
		Fetch: func(r *cli.Run) ([]T, error) {
			networks, err := r.NetworksOf(r.First())
			return parts(networks, of), err
		},
	}
}

// sayCIDR returns the subnet of an edit's result.
func sayCIDR(out ipam.Outcome) []string { return []string{out.Results[0].CIDR.String()} }

// parts collects the parts of all subnets of networks.
func parts[T any](networks []ipam.NetworkInfo, of func(*ipam.NetworkInfo, *ipam.SubnetPlan) []T) (all []T) {
	for i := range networks {
		n := &networks[i]
		for j := range n.Subnets {
			all = append(all, of(n, &n.Subnets[j])...)
		}
	}
	return all
}
