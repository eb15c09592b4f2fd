package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// This file has the shell complete what names a thing of the plan.

// Refs lists what can stand for one argument; network is the first one, where it is there already.
type Refs func(ctx context.Context, c *client.Client, network string) ([]string, error)

// CompleteRefs completes arguments, each with what lists it; further ones with nothing.
func (p *Program) CompleteRefs(of ...Refs) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.Complete(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
			return of[len(args)](ctx, c, First(args))
		})
	}
}

// CompleteFlag completes a flag of a verb whose first argument is the network.
func (p *Program) CompleteFlag(of Refs) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return p.Complete(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
			return of(ctx, c, First(args))
		})
	}
}

// CompleteNetworks completes any number of networks.
func (p *Program) CompleteNetworks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.Complete(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		return NetworkRefs(ctx, c, "")
	})
}

// NetworksOf returns one network, or with the empty name all.
func NetworksOf(ctx context.Context, c *client.Client, network string) ([]ipam.NetworkInfo, error) {
	if network == "" {
		return c.Networks(ctx, "")
	}
	n, err := c.Network(ctx, network)
	if err != nil {
		return nil, err
	}
	return []ipam.NetworkInfo{n}, nil
}

func NetworkRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Networks(ctx, "")
	for _, n := range all {
		names = append(names, n.Name+"\t"+SomeSubnets(n.Subnets, false))
	}
	return names, err
}

// shownSubnets is how many subnets a row names.
const shownSubnets = 2

func SomeSubnets(subnets []ipam.SubnetPlan, all bool) string {
	var texts []string
	for i, s := range subnets {
		if i == shownSubnets && !all {
			texts = append(texts, fmt.Sprintf("+%d", len(subnets)-i))
			break
		}
		texts = append(texts, s.CIDR.String())
	}
	return strings.Join(texts, ",")
}

func SubnetRefs(ctx context.Context, c *client.Client, network string) (names []string, err error) {
	all, err := NetworksOf(ctx, c, network)
	for _, n := range all {
		for _, s := range n.Subnets {
			names = append(names, s.CIDR.String()+"\t"+s.Name)
			if s.Name != "" {
				names = append(names, s.Name+"\t"+s.CIDR.String())
			}
		}
	}
	return names, err
}

func ReservationOwners(ctx context.Context, c *client.Client, network string) ([]string, error) {
	all, err := c.Reservations(ctx, network, "")
	return owners(all, func(r ipam.ReservationInfo) string { return r.Owner }), err
}

func AddressOwners(ctx context.Context, c *client.Client, network string) ([]string, error) {
	all, err := c.Addresses(ctx, network, "")
	return owners(all, func(a ipam.TakenAddress) string { return a.Owner }), err
}

func AnyOwners(ctx context.Context, c *client.Client, network string) ([]string, error) {
	reserving, err := ReservationOwners(ctx, c, network)
	if err != nil {
		return nil, err
	}
	taking, err := AddressOwners(ctx, c, network)
	return owners(append(reserving, taking...), func(name string) string { return name }), err
}

// CompleteContainers completes any number of containers that have an address.
func (p *Program) CompleteContainers(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.completeSeen(cmd, func(l ipam.LeaseInfo) string { return l.SeenBy.Container })
}

// CompleteProjects completes Compose projects whose containers have an address.
func (p *Program) CompleteProjects(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.completeSeen(cmd, func(l ipam.LeaseInfo) string { return l.SeenBy.Project })
}

// completeSeen completes with what the witness tells of those who have an address.
func (p *Program) completeSeen(cmd *cobra.Command, of func(ipam.LeaseInfo) string) ([]string,
	cobra.ShellCompDirective) {
	return p.Complete(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		all, err := c.Leases(ctx, ipam.LeaseFilter{})
		all = slices.DeleteFunc(all, func(l ipam.LeaseInfo) bool { return l.SeenBy == nil || of(l) == "" })
		return owners(all, of), err
	})
}

// owners names each once.
func owners[T any](all []T, of func(T) string) []string {
	var names []string
	seen := map[string]bool{}
	for _, item := range all {
		if name := of(item); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
