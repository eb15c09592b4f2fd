package network

import (
	"fmt"
	"slices"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const freeHelp = `Lists the free addresses of a network's pools, as ranges. It leaves out addresses that are
held, reserved, excluded, in quarantine or configured in a container. NETWORK may be Docker's name. For IPv6,
only --format wide shows pools and subnets.

--next prints only the address that a new container would get from docker run. A dual-stack network has one of
each family. If this host has a Docker network, its subnet and range apply. The command takes nothing, so a
second call prints the same. It fails if no address is free. To take one, use docker run, berth reservation
add or berth address take.`

// freeCommand is `berth network free`.
func freeCommand() cli.Row {
	var filter ipam.FreeFilter
	var subnet string
	var next bool
	return cli.Listing[ipam.FreeRange]{
		Verb: cli.Verb{Use: "free NETWORK", Short: "List free addresses", Long: freeHelp,
			Example: `  berth network free net1
  berth network free net1 --subnet 10.8.0.0/24 --pool web
  berth network free net1 --next
  berth network free net1 -q`,
			Flags: cli.Flags{
				cli.Flag(&subnet, "subnet", "only addresses of the subnet `CIDR`").Of(cli.SubnetRefs).Filled(),
				cli.Flag(&filter.Pool, "pool", "only addresses of the pools named `NAME`").Filled(),
				cli.Flag(&next, "next", "only the next address")},
			Check: func(*cli.Run) (err error) {
				filter.Subnet, err = cli.ParseSubnet(subnet)
				return err
			}},
		Bare:    func() bool { return next }, // only the address
		Columns: freeColumns(),
		Fetch: func(r *cli.Run) ([]ipam.FreeRange, error) {
			all, err := freeOf(r, next, r.Args[0], filter)
			if err == nil && next && len(all) == 0 {
				err = fmt.Errorf("no address of network %s is free; `berth network show %s` shows its pools, `berth "+
					"lease ls` its holders", r.Args[0], r.Args[0])
			}
			return all, err
		},
	}
}

// freeOf returns the free ranges of a network. If several networks have that name in Docker, it asks about each that
// has the filter's subnet and pool.
func freeOf(r *cli.Run, next bool, network string, f ipam.FreeFilter) (all []ipam.FreeRange, err error) {
	ask := r.Free
	if next {
		ask = r.NextFree
	}
	all, err = ask(r, network, f)
	if err == nil {
		return all, nil
	}
	several, listed := r.NetworksOf(network)
	if listed != nil || len(several) < 2 {
		return nil, err
	}
	asked := false
	for i := range several {
		if !has(&several[i], f) {
			continue
		}
		free, err := ask(r, several[i].ID.String(), f)
		if err != nil {
			return nil, err
		}
		all, asked = append(all, free...), true
	}
	if !asked {
		return nil, err
	}
	return all, nil
}

// has reports whether a network has the subnet and the pool of a filter.
func has(n *ipam.NetworkInfo, f ipam.FreeFilter) bool {
	return slices.ContainsFunc(n.Subnets, func(sub ipam.SubnetPlan) bool {
		named := func(p ipam.PoolPlan) bool { return p.Name == f.Pool }
		return (!f.Subnet.IsValid() || sub.CIDR == f.Subnet.Masked()) &&
			(f.Pool == "" || slices.ContainsFunc(sub.Pools, named))
	})
}

// freeColumns fit into 80 characters. IPv6 ranges leave no space for pool and subnet.
func freeColumns() cli.Fields {
	short := func(all []ipam.FreeRange) bool {
		return !slices.ContainsFunc(all, func(r ipam.FreeRange) bool { return r.Start.Is6() })
	}
	return cli.Fields{
		cli.Col("FREE", func(r *ipam.FreeRange) string { return r.String() }), "Addresses",
		cli.Field[ipam.FreeRange]("Pool").OrWide(func(all []ipam.FreeRange) bool {
			return short(all) && slices.ContainsFunc(all, func(r ipam.FreeRange) bool { return r.Pool != "" })
		}),
		cli.Field[ipam.FreeRange]("Subnet").OrWide(short),
	}
}
