// Package lease has the commands for leases, holders and events. They show the daemon's records; the only change they
// make is to release a lease.
//
// lease.go lists leases, release.go releases an address that no endpoint has, who.go finds tenures by address, MAC or
// name, and events.go lists or follows events. Each builds a filter from its flags, asks the daemon once, and prints
// rows.
package lease

import (
	"iter"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

func subnetRefs(r *cli.Run, _ string) (names []string, err error) {
	all, err := r.Subnets(r, "")
	for _, sub := range all {
		names = append(names, sub.CIDR.String()+"\t"+sub.Network+" in "+sub.Space)
	}
	return names, err
}

// Command is `berth lease`.
func Command(p *cli.Program) cli.Row {
	return cli.Group("lease", "Addresses in use", leaseListCommand(), leaseReleaseCommand())
}

const leaseListHelp = `Lists held addresses, all or those of NETWORK, sorted by space, subnet and address.
--all adds released addresses that Berth remembers for their last holder.

NAME is the container that uses the address, if the daemon can read the engine. Otherwise it is the name that
the engine sent with its request. --format wide adds the Compose project and service, owner, container state,
subnet, space, MAC, pool and time. In --format json the container is seen_by. For an address from a DHCP
server (docs/dhcp.md), --format wide adds its state, the server and the expiry. The state is bound,
unconfirmed, lost or conflict.`

func leaseListCommand() cli.Row {
	var filter ipam.LeaseFilter
	var subnet string
	return cli.Listing[ipam.LeaseInfo]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List leases", Long: leaseListHelp,
			Instead: map[string]string{"network": "berth lease ls NETWORK shows the leases of one network"},
			Example: `  berth lease ls
  berth lease ls net1
  berth lease ls --subnet 10.1.0.0/24 --all
  berth lease ls --format wide
  berth lease ls -q
  berth lease ls --format '{{.Address}} {{.Name}} {{.MAC}}'
  berth lease ls --format json`,
			Flags: cli.Flags{
				cli.SpaceFlag(&filter.Space),
				cli.Flag(&subnet, "subnet", "only leases of the subnet `CIDR`").Of(subnetRefs),
				cli.Flag(&filter.Remembered, "all",
					"also released addresses that Berth remembers for their last holder").Short("a")},
			Check: func(*cli.Run) (err error) {
				filter.Subnet, err = cli.ParseSubnet(subnet)
				return err
			}},
		Keys: cli.Fields{"network", "space", "host", "owner=Owner,Name,SeenBy.Container",
			cli.ByProject(leaseOwners, leaseProject), "tag",
			cli.Choice("kind", ipam.Kinds()...), cli.Choice("state", held, remembered)},
		ColumnsOf: func(out cli.Output) cli.Fields { return leaseColumns(filter.Remembered, out.NoTrunc) },
		Fetch: func(r *cli.Run) ([]ipam.LeaseInfo, error) {
			return leasesOf(r, r.First(), filter)
		},
		Names: func(r *cli.Run) iter.Seq2[string, error] {
			if r.First() != "" {
				return nil
			}
			return leaseRefs(r.BriefLeases(r, filter))
		},
	}
}

// leaseRefs yields the arguments that name leases.
func leaseRefs(all iter.Seq2[api.BriefLease, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for l, err := range all {
			if !yield(cli.Ref(l.Space, l.Network, l.Address.String()), err) {
				return
			}
		}
	}
}

// leasesOf returns the leases of a network, by name, id or Docker name. Without a network it returns all. A dual-stack
// Docker network is two networks of Berth, one per family.
func leasesOf(r *cli.Run, network string, filter ipam.LeaseFilter) ([]ipam.LeaseInfo,
	error) {
	all, err := r.Leases(r, filter)
	if network == "" || err != nil {
		return all, err
	}
	named := slices.DeleteFunc(slices.Clone(all), func(l ipam.LeaseInfo) bool { return l.Network != network })
	if len(named) > 0 {
		return named, nil
	}
	of, err := r.Network(r, network)
	return slices.DeleteFunc(all, func(l ipam.LeaseInfo) bool { return l.NetworkID != of.ID }), err
}

// States of leases in JSON.
const (
	held       = "held"
	remembered = "remembered"
)

func leaseColumns(all, noTrunc bool) cli.Fields {
	columns := cli.Fields{"Address,ref", "Address", "Network", cli.Col("NAME", leaseName), "Kind"}
	if all {
		columns = append(columns, "Released", "State,wide", "QUARANTINED UNTIL=QuarantineUntil,wide", "Host,wide")
	} else {
		columns = append(columns, "Host")
	}
	return append(columns, "Subnet,wide", "Space,wide", "MAC,wide",
		cli.Col("POOL", func(l *ipam.LeaseInfo) string { return cli.ShortID(l.Pool, noTrunc) }).Wide(),
		"Since,wide", "DHCP=DHCP.State,marked,wide", "DHCP.Server,wide", "DHCP.Expires,wide", "Owner,wide",
		"SeenBy.Project,wide", "SeenBy.Service,wide", "CONTAINER STATE=SeenBy.State,wide")
}

// leaseName returns the current container name of a lease's holder, if the engine shows it, or else its name in the
// lease.
func leaseName(l *ipam.LeaseInfo) string {
	if l.SeenBy != nil && l.SeenBy.Container != "" {
		return l.SeenBy.Container
	}
	return l.Name
}

// leaseOwners are the owners that a lease is of: by its reservation, and by its name.
func leaseOwners(l *ipam.LeaseInfo) []string { return []string{l.Owner, l.Name} }

// leaseProject is the Compose project of the container that has a lease, if the engine shows it.
func leaseProject(l *ipam.LeaseInfo) string {
	if l.SeenBy == nil {
		return ""
	}
	return l.SeenBy.Project
}
