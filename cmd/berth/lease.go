package main

import (
	"context"
	"fmt"
	"net/netip"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) leaseCommand() *cobra.Command {
	return group("lease", "Addresses that somebody has", p.leaseListCommand())
}

const leaseListHelp = `Lists the addresses that are held, by space, subnet and address. With --all it also lists those that were
given back and are remembered for their last holder.

NAME is that of the container that has the address, where the daemon knows from the engine which one it is, else the one that
the engine sent when it asked for the address. --wide also shows the Compose project and service, whose the address is by a
reservation, and how the container is; --format json has the container as seen_by.`

func (p *program) leaseListCommand() *cobra.Command {
	var out output
	var filter ipam.LeaseFilter
	var subnet string
	var wide bool
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List leases", Long: leaseListHelp, Args: noArgs,
		Example: `  berth lease ls
  berth lease ls --subnet 10.1.0.0/24 --all
  berth lease ls --wide
  berth lease ls -q
  berth lease ls --format '{{.Address}} {{.Name}} {{.MAC}}'
  berth lease ls --format json`}
	out.flags(cmd)
	p.spaceFlag(cmd, &filter.Space)
	cmd.Flags().StringVar(&subnet, "subnet", "", "only those of the subnet `CIDR`")
	cmd.Flags().BoolVarP(&filter.Remembered, "all", "a", false, "also the addresses that are remembered for their last holder")
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "also the project, service, owner and state of the container")
	completes(cmd, "subnet", p.completeSubnets)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if subnet != "" {
			if filter.Subnet, err = netip.ParsePrefix(subnet); err != nil {
				return usage(cmd, fmt.Errorf("--subnet is %q and must be a prefix such as 10.1.0.0/24", subnet))
			}
		}
		columns := leaseColumns(filter.Remembered, out.noTrunc)
		if wide {
			columns = append(columns, containerColumns()...)
		}
		return list(p, cmd, out, columns, func(l *ipam.LeaseInfo) string { return l.Address.String() },
			func(ctx context.Context, c *admin.Client) ([]ipam.LeaseInfo, error) { return c.Leases(ctx, filter) })
	}
	return cmd
}

func leaseColumns(remembered, noTrunc bool) []column[ipam.LeaseInfo] {
	all := []column[ipam.LeaseInfo]{
		{"ADDRESS", func(l *ipam.LeaseInfo) string { return l.Address.String() }},
		{"SUBNET", func(l *ipam.LeaseInfo) string { return l.Subnet.String() }},
		{"SPACE", func(l *ipam.LeaseInfo) string { return l.Space }},
		{"NETWORK", func(l *ipam.LeaseInfo) string { return l.Network }},
		{"KIND", func(l *ipam.LeaseInfo) string { return l.Kind.String() }},
		{"NAME", leaseName},
		{"MAC", func(l *ipam.LeaseInfo) string { return l.MAC.String() }},
		{"HOST", func(l *ipam.LeaseInfo) string { return l.Host }},
		{"POOL", func(l *ipam.LeaseInfo) string { return shortID(l.Pool, noTrunc) }},
		{"SINCE", func(l *ipam.LeaseInfo) string { return localTime(l.Since) }},
	}
	if remembered {
		all = append(all,
			column[ipam.LeaseInfo]{"STATE", func(l *ipam.LeaseInfo) string { return l.State }},
			column[ipam.LeaseInfo]{"RELEASED", func(l *ipam.LeaseInfo) string { return localTime(l.Released) }},
			column[ipam.LeaseInfo]{"QUARANTINED UNTIL", func(l *ipam.LeaseInfo) string { return localTime(l.Until) }})
	}
	return all
}

// leaseName is who has an address, as the engine calls it now.
func leaseName(l *ipam.LeaseInfo) string {
	if l.SeenBy != nil && l.SeenBy.Container != "" {
		return l.SeenBy.Container
	}
	return l.Name
}

// containerColumns tell what a witness knows of who has an address.
func containerColumns() []column[ipam.LeaseInfo] {
	seen := func(value func(*ipam.SeenBy) string) func(*ipam.LeaseInfo) string {
		return func(l *ipam.LeaseInfo) string {
			if l.SeenBy == nil {
				return ""
			}
			return value(l.SeenBy)
		}
	}
	return []column[ipam.LeaseInfo]{
		{"OWNER", func(l *ipam.LeaseInfo) string { return l.Owner }},
		{"PROJECT", seen(func(s *ipam.SeenBy) string { return s.Project })},
		{"SERVICE", seen(func(s *ipam.SeenBy) string { return s.Service })},
		{"CONTAINER STATE", seen(func(s *ipam.SeenBy) string { return s.State })},
	}
}
