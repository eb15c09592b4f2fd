// Package lease has the verbs of what is and was in use: leases, who has or had an address, and the events. It promises
// to show what the daemon has recorded, and changes nothing but a lease that a person gives free.
//
// lease.go lists, release.go gives one address free that no endpoint has, who.go asks for tenures of an address, a MAC
// or a name, and events.go lists or follows what happened. Each makes a filter out of its flags, asks the daemon once,
// and shows rows.
package lease

import (
	"context"
	"fmt"
	"net/netip"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func subnetRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Subnets(ctx, "")
	for _, sub := range all {
		names = append(names, sub.CIDR.String()+"\t"+sub.NetworkName+" in "+sub.Space)
	}
	return names, err
}

// Command is `berth lease`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("lease", "Addresses that somebody has", leaseListCommand(p), leaseReleaseCommand(p))
}

const leaseListHelp = `Lists the addresses that are held, by space, subnet and address. With --all it also
lists those that were given back and are remembered for their last holder.

NAME is that of the container that has the address, where the daemon knows from the engine which one it is,
else the one that the engine sent when it asked for the address. --wide also shows the Compose project and
service, the owner that the address is reserved for, and the state of the container; --format json has the
container as seen_by.`

func leaseListCommand(p *cli.Program) *cobra.Command {
	var filter ipam.LeaseFilter
	var subnet string
	var wide bool
	cmd := cli.Listing[ipam.LeaseInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List leases", Long: leaseListHelp,
			Example: `  berth lease ls
  berth lease ls --subnet 10.1.0.0/24 --all
  berth lease ls --wide
  berth lease ls -q
  berth lease ls --format '{{.Address}} {{.Name}} {{.MAC}}'
  berth lease ls --format json`},
		Check: func([]string) (err error) {
			if subnet == "" {
				return nil
			}
			if filter.Subnet, err = netip.ParsePrefix(subnet); err != nil {
				return fmt.Errorf("--subnet is %q and must be a prefix such as 10.1.0.0/24", subnet)
			}
			return nil
		},
		Columns: func(out cli.Output) []cli.Column[ipam.LeaseInfo] {
			columns := leaseColumns(filter.Remembered, out.NoTrunc)
			if wide {
				columns = append(columns, containerColumns()...)
			}
			return columns
		},
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.LeaseInfo, error) {
			return c.Leases(ctx, filter)
		},
	}.Command(p)
	p.SpaceFlag(cmd, &filter.Space)
	cmd.Flags().StringVar(&subnet, "subnet", "", "only those of the subnet `CIDR`")
	cmd.Flags().BoolVarP(&filter.Remembered, "all", "a", false,
		"also the addresses that are remembered for their last holder")
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "also the project, service, owner and state of the container")
	cli.Completes(cmd, "subnet", p.CompleteFlag(subnetRefs))
	return cmd
}

func leaseColumns(remembered, noTrunc bool) []cli.Column[ipam.LeaseInfo] {
	all := []cli.Column[ipam.LeaseInfo]{
		cli.Col("ADDRESS", func(l *ipam.LeaseInfo) string { return l.Address.String() }),
		cli.Col("SUBNET", func(l *ipam.LeaseInfo) string { return l.Subnet.String() }),
		cli.Col("SPACE", func(l *ipam.LeaseInfo) string { return l.Space }),
		cli.Col("NETWORK", func(l *ipam.LeaseInfo) string { return l.Network }),
		cli.Col("KIND", func(l *ipam.LeaseInfo) string { return l.Kind.String() }),
		cli.Col("NAME", leaseName),
		cli.Col("MAC", func(l *ipam.LeaseInfo) string { return l.MAC.String() }),
		cli.Col("HOST", func(l *ipam.LeaseInfo) string { return l.Host }),
		cli.Col("POOL", func(l *ipam.LeaseInfo) string { return cli.ShortID(l.Pool, noTrunc) }),
		cli.Col("SINCE", func(l *ipam.LeaseInfo) string { return cli.LocalTime(l.Since) }),
	}
	if remembered {
		all = append(all,
			cli.Col("STATE", func(l *ipam.LeaseInfo) string { return l.State }),
			cli.Col("RELEASED", func(l *ipam.LeaseInfo) string { return cli.LocalTime(l.Released) }),
			cli.Col("QUARANTINED UNTIL", func(l *ipam.LeaseInfo) string { return cli.LocalTime(l.Until) }))
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
func containerColumns() []cli.Column[ipam.LeaseInfo] {
	seen := func(value func(*ipam.SeenBy) string) func(*ipam.LeaseInfo) string {
		return func(l *ipam.LeaseInfo) string {
			if l.SeenBy == nil {
				return ""
			}
			return value(l.SeenBy)
		}
	}
	return []cli.Column[ipam.LeaseInfo]{
		cli.Col("OWNER", func(l *ipam.LeaseInfo) string { return l.Owner }),
		cli.Col("PROJECT", seen(func(s *ipam.SeenBy) string { return s.Project })),
		cli.Col("SERVICE", seen(func(s *ipam.SeenBy) string { return s.Service })),
		cli.Col("CONTAINER STATE", seen(func(s *ipam.SeenBy) string { return s.State })),
	}
}
