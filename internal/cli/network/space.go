package network

import (
	"context"
	"strconv"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// SpaceCommand is `berth space`.
func SpaceCommand(p *cli.Program) *cobra.Command {
	return cli.Group("space", "Address spaces: sets of subnets that do not overlap", spaceListCommand(p))
}

const spaceListHelp = `Lists the address spaces. Subnets of one space never overlap; those of different spaces
may. The space "local" is the one that networks of this host use, "global" the one of swarm managers; others
are made when a network first names them (docker network create --ipam-driver berth --ipam-opt space=NAME).

With --store etcd, STORE says where a space is: with this host alone, or with the cluster.`

func spaceListCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[ipam.SpaceInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List spaces", Long: spaceListHelp,
			Example: "  berth space ls\n  berth space ls -q\n  berth space ls --format json"},
		Keys:    []cli.Key[ipam.SpaceInfo]{cli.By(cli.KeySpace, func(s *ipam.SpaceInfo) string { return s.Name })},
		Columns: spaceColumns,
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.SpaceInfo, error) {
			return c.Spaces(ctx)
		},
	}.Command(p)
}

func spaceColumns(cli.Output) []cli.Column[ipam.SpaceInfo] {
	return []cli.Column[ipam.SpaceInfo]{
		cli.Col("SPACE", func(s *ipam.SpaceInfo) string { return s.Name }),
		cli.Col("SUBNETS", func(s *ipam.SpaceInfo) string { return strconv.Itoa(s.Subnets) }),
		cli.Col("LEASES", func(s *ipam.SpaceInfo) string { return strconv.FormatUint(s.Leases, 10) }),
		cli.Col("CREATED", func(s *ipam.SpaceInfo) string { return cli.ShortTime(s.Created) }),
		cli.Col("STORE", func(s *ipam.SpaceInfo) string { return s.Store }).IfAny(),
	}
}
