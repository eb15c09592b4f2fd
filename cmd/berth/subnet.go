package main

import (
	"context"
	"strconv"
	"strings"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) subnetCommand() *cobra.Command {
	return group("subnet", "Subnets, their gateways and pools", p.subnetListCommand())
}

const subnetListHelp = `Lists the subnets by space and address: the network that each belongs to, its gateway, the pools that
automatic addresses come from, and how many addresses are held, remembered for their last holder, and
free in the pools.`

func (p *program) subnetListCommand() *cobra.Command {
	var out output
	var space string
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List subnets", Long: subnetListHelp, Args: noArgs,
		Example: `  berth subnet ls
  berth subnet ls --space global
  berth subnet ls -q --no-trunc
  berth subnet ls --format 'table {{.CIDR}}\t{{.Free}}'`}
	out.flags(cmd)
	p.spaceFlag(cmd, &space)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return list(p, cmd, out, subnetColumns(out.noTrunc), func(s *ipam.SubnetInfo) string { return shortID(s.ID, out.noTrunc) },
			func(ctx context.Context, c *admin.Client) ([]ipam.SubnetInfo, error) { return c.Subnets(ctx, space) })
	}
	return cmd
}

func subnetColumns(noTrunc bool) []column[ipam.SubnetInfo] {
	return []column[ipam.SubnetInfo]{
		{"SUBNET", func(s *ipam.SubnetInfo) string { return s.CIDR.String() }},
		{"SPACE", func(s *ipam.SubnetInfo) string { return s.Space }},
		{"NETWORK", func(s *ipam.SubnetInfo) string { return s.NetworkName }},
		{"ID", func(s *ipam.SubnetInfo) string { return shortID(s.ID, noTrunc) }},
		{"GATEWAY", func(s *ipam.SubnetInfo) string {
			if !s.Gateway.IsValid() {
				return ""
			}
			return s.Gateway.String()
		}},
		{"POOLS", func(s *ipam.SubnetInfo) string {
			var all []string
			for _, pool := range s.Pools {
				all = append(all, pool.Range.String())
			}
			return strings.Join(all, ",")
		}},
		{"HELD", func(s *ipam.SubnetInfo) string { return strconv.FormatUint(s.Held, 10) }},
		{"REMEMBERED", func(s *ipam.SubnetInfo) string { return strconv.Itoa(s.Remembered) }},
		{"FREE", func(s *ipam.SubnetInfo) string { return s.Free.String() }},
		{"CREATED", func(s *ipam.SubnetInfo) string { return localTime(s.Created) }},
	}
}
