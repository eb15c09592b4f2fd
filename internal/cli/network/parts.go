package network

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// listParts is the verb that lists what lies in the subnets of one network or of all; of tells what is in one of them.
func listParts[T any](p *cli.Program, verb cli.Verb, of func(*ipam.NetworkInfo, *ipam.SubnetPlan) []T,
	keys []cli.Key[T], columns []cli.Column[T]) *cobra.Command {
	verb.Use, verb.Refs = "ls [NETWORK]", []cli.Refs{cli.NetworkRefs}
	return cli.Listing[T]{
		Verb:    verb,
		Keys:    keys,
		Columns: func(cli.Output) []cli.Column[T] { return columns },
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]T, error) {
			networks, err := cli.NetworksOf(ctx, c, cli.First(args))
			return parts(networks, of), err
		},
	}.Command(p)
}

// parts collects what lies in the subnets of networks.
func parts[T any](networks []ipam.NetworkInfo, of func(*ipam.NetworkInfo, *ipam.SubnetPlan) []T) (all []T) {
	for i := range networks {
		n := &networks[i]
		for j := range n.Subnets {
			all = append(all, of(n, &n.Subnets[j])...)
		}
	}
	return all
}
