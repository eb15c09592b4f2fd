package network

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
)

func poolRefs(ctx context.Context, c *client.Client, network string) (names []string, err error) {
	all, err := cli.NetworksOf(ctx, c, network)
	for _, pool := range parts(all, poolRows) {
		names = append(names, pool.Range+"\t"+pool.Name)
		if pool.Name != "" {
			names = append(names, pool.Name+"\t"+pool.Range)
		}
	}
	return names, err
}

func exclusionRefs(ctx context.Context, c *client.Client, network string) (names []string, err error) {
	all, err := cli.NetworksOf(ctx, c, network)
	for _, e := range parts(all, exclusionRows) {
		names = append(names, e.Range+"\t"+e.Note)
	}
	return names, err
}

func ruleRefs(ctx context.Context, c *client.Client, network string) (patterns []string, err error) {
	all, err := cli.NetworksOf(ctx, c, network)
	for _, n := range all {
		for _, r := range n.OwnerRules {
			patterns = append(patterns, r.Pattern+"\t"+r.String())
		}
	}
	return patterns, err
}
