package main

import (
	"context"
	"strconv"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) spaceCommand() *cobra.Command {
	return group("space", "Address spaces: sets of subnets that do not overlap", p.spaceListCommand())
}

const spaceListHelp = `Lists the address spaces. Subnets of one space never overlap; those of different spaces may. The space
"local" is the one that networks of this host use, "global" the one of swarm managers; others are made
when a network first names them (docker network create --ipam-driver berth --ipam-opt space=NAME).

With --store etcd, STORE says where a space is: with this host alone, or with the cluster.`

func (p *program) spaceListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List spaces", Long: spaceListHelp, Args: noArgs,
		Example: "  berth space ls\n  berth space ls -q\n  berth space ls --format json"}
	out.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		store := column[ipam.SpaceInfo]{"STORE", func(s *ipam.SpaceInfo) string { return s.Store }}
		return listWith(p, cmd, out, spaceColumns(), store, func(s *ipam.SpaceInfo) string { return s.Name },
			func(ctx context.Context, c *admin.Client) ([]ipam.SpaceInfo, error) { return c.Spaces(ctx) })
	}
	return cmd
}

func spaceColumns() []column[ipam.SpaceInfo] {
	return []column[ipam.SpaceInfo]{
		{"SPACE", func(s *ipam.SpaceInfo) string { return s.Name }},
		{"SUBNETS", func(s *ipam.SpaceInfo) string { return strconv.Itoa(s.Subnets) }},
		{"LEASES", func(s *ipam.SpaceInfo) string { return strconv.FormatUint(s.Leases, 10) }},
		{"CREATED", func(s *ipam.SpaceInfo) string { return localTime(s.Created) }},
	}
}
