package network

import (
	"cmp"
	"net/netip"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"go4.org/netipx"
)

// PoolCommand is `berth pool`.
func PoolCommand() cli.Row {
	return cli.Group("pool", "Pools: the ranges that automatic addresses come from", poolAddCommand(),
		poolListCommand(),
		poolModifyCommand(), poolRemoveCommand())
}

const poolAddHelp = `Adds a pool to the subnet that holds its range, and prints the range. A range is
A-B, A+N (N addresses from A on), a CIDR or one address. With --subnet instead of a range, the pool is the whole
subnet. Pools do not overlap. Berth uses pools with the same name one after the other.`

func poolAddCommand() cli.Row {
	var add ipam.AddPool
	return cli.Change{
		Verb: cli.Verb{Use: "add NETWORK RANGE|--subnet SUBNET", Short: "Add a pool to a network", Long: poolAddHelp,
			Example: `  berth pool add net1 192.0.2.10-192.0.2.100 --name pool1
  berth pool add net1 192.0.2.10+91
  berth pool add net1 192.0.2.128/26
  berth pool add net1 --subnet lan`,
			Flags: cli.Flags{
				cli.Flag(&add.Subnet, "subnet",
					"instead of a range: the whole `SUBNET`, a CIDR, a name or an id").
					Of(cli.SubnetRefs),
				cli.Flag(&add.Name, "name", "the `NAME` of the pool")},
			Args: func(r *cli.Run) error {
				switch {
				case add.Subnet == "":
					return cli.Takes("NETWORK", "RANGE")(r)
				case len(r.Args) == 2:
					return r.Usagef("give either a range or --subnet, not both")
				}
				return cli.Takes("NETWORK")(r)
			}},
		Edit: func(args []string) (_ ipam.Edit, err error) {
			add.Network = args[0]
			if add.Name != "" {
				err = ipam.CheckNewName("pool", add.Name)
			}
			if err == nil && len(args) == 2 {
				add.Range, err = parseRange(args[1])
			}
			return &add, err
		},
		Said: func(out ipam.Outcome) []string {
			if !add.Range.IsZero() {
				return []string{add.Range.String()}
			}
			return sayCIDR(out)
		},
	}
}

const poolModifyHelp = `Renames a pool: all ranges of a NAME, or exactly one RANGE. Docker networks that use
the pool by name follow the new one. --name '' removes the name.`

func poolModifyCommand() cli.Row {
	var modify ipam.ModifyPool
	return cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK NAME|RANGE", Short: "Rename a pool", Long: poolModifyHelp,
			Refs: []cli.Refs{cli.NetworkRefs, poolRefs},
			Example: `  berth pool modify net1 pool1 --name front
  berth pool modify net1 192.0.2.51-192.0.2.100 --name back`,
			Flags:  cli.Flags{cli.Flag(&modify.Name, "name", "the new `NAME`")},
			SomeOf: []string{"name"}},
		Edit: func(args []string) (_ ipam.Edit, err error) {
			modify.Network = args[0]
			modify.Pool, err = parsePool(args[1])
			if err == nil && modify.Name != "" {
				err = ipam.CheckNewName("pool", modify.Name)
			}
			return &modify, err
		},
		Said: func(ipam.Outcome) []string { return []string{cmp.Or(modify.Name, modify.Pool)} },
	}
}

const poolRemoveHelp = `Removes a range from the pools. A pool that reaches beyond the range is split; the
rest keeps its name. A NAME removes all ranges of that name. Held addresses stay with their holders. You can
pass several ranges as berth pool ls -q prints them: RANGE of the space local, or NETWORK/RANGE.`

func poolRemoveCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "rm [NETWORK] NAME|RANGE...", Short: "Remove pools, or a range from them",
			Long: poolRemoveHelp,
			Refs: []cli.Refs{cli.NetworkRefs, poolRefs},
			Example: `  berth pool rm net1 192.0.2.20-192.0.2.50
  berth pool rm net1 front --dry-run
  berth pool rm $(berth pool ls net1 -q)`},
		Each: func(at cli.Place) (ipam.Edit, error) {
			pool, err := parsePool(at.Thing)
			return &ipam.RemovePool{Network: at.Network, Pool: pool}, err
		},
	}
}

// parsePool parses a name or a range. Its error is about a range, if the text cannot be a name.
func parsePool(text string) (string, error) {
	r, err := parseRange(text)
	if err == nil {
		return r.String(), nil
	}
	if ipam.CheckName("pool", text) == nil {
		return text, nil
	}
	return "", err
}

// poolRow is a row of pool ls.
type poolRow struct {
	place
	Name  string     `json:"name"`
	Range string     `json:"range"`
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
	Size  ipam.Count `json:"size"`
	Free  ipam.Count `json:"free"`
}

const poolListHelp = `Lists the pools, of one network or of all: how many addresses each has, and how many of
these are free. --format wide also shows which subnet and space each is in.`

func poolListCommand() cli.Row {
	return listParts(cli.Verb{Short: "List pools", Long: poolListHelp,
		Example: "  berth pool ls\n  berth pool ls net1\n  berth pool ls --format '{{.Name}} {{.Range}} {{.Free}}'"},
		poolRows,
		cli.Fields{"Range,ref", "POOL=Range", "Name", "Network", "Size",
			cli.Field[poolRow]("Free").Stands(func(r *poolRow) cli.Alarm {
				if r.Free.Sign() > 0 {
					return ""
				}
				return cli.Wrong
			}), "Subnet,wide", "Space,wide"})
}

func poolRows(n *ipam.NetworkInfo, s *ipam.SubnetPlan) (rows []poolRow) {
	for _, pool := range s.Pools {
		r := netipx.IPRangeFrom(pool.Start, pool.End)
		rows = append(rows, poolRow{place: placeOf(n, s), Name: pool.Name, Range: alloc.FormatRange(r),
			Start: pool.Start, End: pool.End, Size: ipam.Count{Int: alloc.Size(r)}, Free: pool.Free})
	}
	return rows
}
