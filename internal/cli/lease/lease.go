// Package lease has the commands for leases, holders and events. They show the daemon's records; the only change they
// make is to release a lease.
//
// lease.go lists leases, release.go releases an address that no endpoint has, who.go finds tenures by address, MAC or
// name, and events.go lists or follows events. Each builds a filter from its flags, asks the daemon once, and prints
// rows.
package lease

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func subnetRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Subnets(ctx, "")
	for _, sub := range all {
		names = append(names, sub.CIDR.String()+"\t"+sub.Network+" in "+sub.Space)
	}
	return names, err
}

// Command is `berth lease`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("lease", "Addresses in use", leaseListCommand(p), leaseReleaseCommand(p))
}

const leaseListHelp = `Lists held addresses, all or those of NETWORK, sorted by space, subnet and address.
--all adds released addresses that Berth remembers for their last holder.

NAME is the container that uses the address, if the daemon can read the engine. Otherwise it is the name that
the engine sent with its request. --format wide adds the Compose project and service, owner, container state,
subnet, space, MAC, pool and time. In --format json the container is seen_by. For an address from a DHCP
server (docs/dhcp.md), --format wide adds its state, the server and the expiry. The state is bound,
unconfirmed, lost or conflict.`

func leaseListCommand(p *cli.Program) *cobra.Command {
	var filter ipam.LeaseFilter
	var subnet string
	cmd := cli.Listing[ipam.LeaseInfo]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List leases", Long: leaseListHelp,
			Refs:    []cli.Refs{cli.NetworkRefs},
			Instead: map[string]string{"network": "berth lease ls NETWORK shows those of one network"},
			Example: `  berth lease ls
  berth lease ls net1
  berth lease ls --subnet 10.1.0.0/24 --all
  berth lease ls --format wide
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
		Keys: leaseKeys(),
		Columns: func(out cli.Output) []cli.Column[ipam.LeaseInfo] {
			return append(leaseColumns(filter.Remembered, out.NoTrunc), containerColumns()...)
		},
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]ipam.LeaseInfo, error) {
			return leasesOf(ctx, c, cli.First(args), filter)
		},
		Names: func(ctx context.Context, c *client.Client, args []string) iter.Seq2[string, error] {
			if cli.First(args) != "" {
				return nil
			}
			return leaseRefs(c.BriefLeases(ctx, filter))
		},
	}.Command(p)
	p.SpaceFlag(cmd, &filter.Space)
	cmd.Flags().StringVar(&subnet, "subnet", "", "only those of the subnet `CIDR`")
	cmd.Flags().BoolVarP(&filter.Remembered, "all", "a", false,
		"also addresses that are remembered for their last holder")
	cli.Completes(cmd, "subnet", p.CompleteFlag(subnetRefs))
	return cmd
}

// leaseRefs yields how leases are called.
func leaseRefs(all iter.Seq2[api.BriefLease, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for l, err := range all {
			if !yield(cli.Ref(l.Space, l.Network, l.Address.String()), err) {
				return
			}
		}
	}
}

// leasesOf are those of a network, by its name, its id or Docker's name of it, or with the empty name all. What Docker
// calls one network may be one of Berth's for each family.
func leasesOf(ctx context.Context, c *client.Client, network string, filter ipam.LeaseFilter) ([]ipam.LeaseInfo,
	error) {
	all, err := c.Leases(ctx, filter)
	if network == "" || err != nil {
		return all, err
	}
	named := slices.DeleteFunc(slices.Clone(all), func(l ipam.LeaseInfo) bool { return l.Network != network })
	if len(named) > 0 {
		return named, nil
	}
	of, err := c.Network(ctx, network)
	return slices.DeleteFunc(all, func(l ipam.LeaseInfo) bool { return l.NetworkID != of.ID }), err
}

// The states of leases, as JSON has them.
const (
	held       = "held"
	remembered = "remembered"
)

func leaseKeys() []cli.Key[ipam.LeaseInfo] {
	return []cli.Key[ipam.LeaseInfo]{
		cli.ByNetwork(func(l *ipam.LeaseInfo) string { return l.Network },
			func(l *ipam.LeaseInfo) ipam.ID { return l.NetworkID }),
		cli.By(cli.KeySpace, func(l *ipam.LeaseInfo) string { return l.Space }),
		cli.By(cli.KeyHost, func(l *ipam.LeaseInfo) string { return l.Host }),
		cli.ByAny(cli.KeyOwner, func(l *ipam.LeaseInfo) []string { return []string{l.Owner, l.Name, leaseName(l)} }),
		cli.ByTagOf(func(l *ipam.LeaseInfo) ipam.ID { return l.NetworkID }),
		cli.By(cli.KeyKind, func(l *ipam.LeaseInfo) string { return l.Kind.String() }, ipam.Kinds()...),
		cli.By(cli.KeyState, func(l *ipam.LeaseInfo) string { return l.State }, held, remembered),
	}
}

// dhcpColumn is a cell of what a DHCP server gave; empty where none did.
func dhcpColumn(of func(*ipam.DHCPInfo) string) func(*ipam.LeaseInfo) string {
	return func(l *ipam.LeaseInfo) string {
		if l.DHCP == nil {
			return ""
		}
		return of(l.DHCP)
	}
}

func leaseColumns(all, noTrunc bool) []cli.Column[ipam.LeaseInfo] {
	columns := []cli.Column[ipam.LeaseInfo]{
		cli.RefCol(func(l *ipam.LeaseInfo) string { return cli.Ref(l.Space, l.Network, l.Address.String()) }),
		cli.Col("ADDRESS", func(l *ipam.LeaseInfo) string { return l.Address.String() }),
		cli.Col("NETWORK", func(l *ipam.LeaseInfo) string { return l.Network }),
		cli.Col("NAME", leaseName),
		cli.Col("KIND", func(l *ipam.LeaseInfo) string { return l.Kind.String() }),
	}
	if all {
		columns = append(columns, cli.Col("RELEASED", func(l *ipam.LeaseInfo) string { return cli.ShortTime(l.Released) }),
			cli.WideCol("STATE", func(l *ipam.LeaseInfo) string { return l.State }),
			cli.WideCol("QUARANTINED UNTIL", func(l *ipam.LeaseInfo) string { return cli.ShortTime(l.QuarantineUntil) }),
			cli.WideCol("HOST", func(l *ipam.LeaseInfo) string { return l.Host }))
	} else {
		columns = append(columns, cli.Col("HOST", func(l *ipam.LeaseInfo) string { return l.Host }))
	}
	return append(columns,
		cli.WideCol("SUBNET", func(l *ipam.LeaseInfo) string { return l.Subnet.String() }),
		cli.WideCol("SPACE", func(l *ipam.LeaseInfo) string { return l.Space }),
		cli.WideCol("MAC", func(l *ipam.LeaseInfo) string { return l.MAC.String() }),
		cli.WideCol("POOL", func(l *ipam.LeaseInfo) string { return cli.ShortID(l.Pool, noTrunc) }),
		cli.WideCol("SINCE", func(l *ipam.LeaseInfo) string { return cli.ShortTime(l.Since) }),
		cli.StateCol("DHCP", dhcpColumn(func(d *ipam.DHCPInfo) string { return d.State.String() })).Wide(),
		cli.WideCol("SERVER", dhcpColumn(func(d *ipam.DHCPInfo) string {
			if !d.Server.IsValid() {
				return ""
			}
			return d.Server.String()
		})),
		cli.WideCol("EXPIRES", dhcpColumn(func(d *ipam.DHCPInfo) string { return cli.ShortTime(d.Expires) })))
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
		cli.WideCol("OWNER", func(l *ipam.LeaseInfo) string { return l.Owner }),
		cli.WideCol("PROJECT", seen(func(s *ipam.SeenBy) string { return s.Project })),
		cli.WideCol("SERVICE", seen(func(s *ipam.SeenBy) string { return s.Service })),
		cli.WideCol("CONTAINER STATE", seen(func(s *ipam.SeenBy) string { return s.State })),
	}
}
