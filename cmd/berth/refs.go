package main

import (
	"context"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// This file has the shell complete what names a thing of the plan.

// refs lists what can stand for one argument; network is the first one, where it is there already.
type refs func(ctx context.Context, c *admin.Client, network string) ([]string, error)

// completeRefs completes arguments, each with what lists it; further ones with nothing.
func (p *program) completeRefs(of ...refs) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.complete(cmd, func(ctx context.Context, c *admin.Client) ([]string, error) {
			return of[len(args)](ctx, c, first(args))
		})
	}
}

// completeFlag completes a flag of a verb whose first argument is the network.
func (p *program) completeFlag(of refs) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return p.complete(cmd, func(ctx context.Context, c *admin.Client) ([]string, error) { return of(ctx, c, first(args)) })
	}
}

// completeNetworks completes any number of networks.
func (p *program) completeNetworks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return p.complete(cmd, func(ctx context.Context, c *admin.Client) ([]string, error) { return networkRefs(ctx, c, "") })
}

func networkRefs(ctx context.Context, c *admin.Client, _ string) (names []string, err error) {
	all, err := c.Networks(ctx, "")
	for _, n := range all {
		names = append(names, n.Name+"\t"+someSubnets(n.Subnets, false))
	}
	return names, err
}

func subnetRefs(ctx context.Context, c *admin.Client, network string) (names []string, err error) {
	all, err := networksOf(ctx, c, network)
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

func poolRefs(ctx context.Context, c *admin.Client, network string) (names []string, err error) {
	all, err := networksOf(ctx, c, network)
	for _, pool := range poolRows(all) {
		names = append(names, pool.Range+"\t"+pool.Name)
		if pool.Name != "" {
			names = append(names, pool.Name+"\t"+pool.Range)
		}
	}
	return names, err
}

func exclusionRefs(ctx context.Context, c *admin.Client, network string) (names []string, err error) {
	all, err := networksOf(ctx, c, network)
	for _, e := range exclusionRows(all) {
		names = append(names, e.Range+"\t"+e.Note)
	}
	return names, err
}

func ruleRefs(ctx context.Context, c *admin.Client, network string) (patterns []string, err error) {
	all, err := networksOf(ctx, c, network)
	for _, n := range all {
		for _, r := range n.OwnerRules {
			patterns = append(patterns, r.Pattern+"\t"+r.String())
		}
	}
	return patterns, err
}

// wishRefs lists what --ip takes that has a name.
func wishRefs(ctx context.Context, c *admin.Client, network string) ([]string, error) {
	names := []string{"pool\tone of any pool"}
	all, err := networksOf(ctx, c, network)
	for _, pool := range poolRows(all) {
		if pool.Name != "" {
			names = append(names, pool.Name+"\t"+pool.Range)
		}
	}
	return names, err
}

func reservationOwners(ctx context.Context, c *admin.Client, network string) ([]string, error) {
	all, err := c.Reservations(ctx, network, "")
	return owners(all, func(r ipam.ReservationInfo) string { return r.Owner }), err
}

func addressOwners(ctx context.Context, c *admin.Client, network string) ([]string, error) {
	all, err := c.Addresses(ctx, network, "")
	return owners(all, func(a ipam.TakenAddress) string { return a.Owner }), err
}

func anyOwners(ctx context.Context, c *admin.Client, network string) ([]string, error) {
	reserving, err := reservationOwners(ctx, c, network)
	if err != nil {
		return nil, err
	}
	taking, err := addressOwners(ctx, c, network)
	return owners(append(reserving, taking...), func(name string) string { return name }), err
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
