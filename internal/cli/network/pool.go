package network

import (
	"errors"
	"net/netip"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"go4.org/netipx"
)

// PoolCommand is `berth pool`.
func PoolCommand(p *cli.Program) *cobra.Command {
	return cli.Group("pool", "Pools: the ranges that automatic addresses come from", poolAddCommand(p),
		poolListCommand(p),
		poolModifyCommand(p), poolRemoveCommand(p))
}

const poolAddHelp = `Adds a pool to the subnet that holds its range, and prints the range: A-B, A+N (N
addresses from A on), a CIDR or one address. With --subnet instead of a range the pool is the whole subnet.
Pools do not overlap. Pools with the same name are used one after the other.`

func poolAddCommand(p *cli.Program) *cobra.Command {
	var add ipam.AddPool
	cmd := cli.Change{
		Verb: cli.Verb{Use: "add NETWORK RANGE|--subnet SUBNET", Short: "Add a pool to a network", Long: poolAddHelp,
			Refs: []cli.Refs{cli.NetworkRefs},
			Example: `  berth pool add net1 192.0.2.10-192.0.2.100 --name pool1
  berth pool add net1 192.0.2.10+91
  berth pool add net1 192.0.2.128/26
  berth pool add net1 --subnet lan`},
		Edits: func(_ *cobra.Command, args []string) (_ []ipam.Edit, err error) {
			add.Network = args[0]
			if add.Name != "" {
				err = ipam.CheckName("pool", add.Name)
			}
			if err == nil && len(args) == 2 {
				add.Range, err = parseRange(args[1])
			}
			return cli.One(&add, err)
		},
		Said: func(out ipam.Outcome) []string {
			if !add.Range.IsZero() {
				return []string{add.Range.String()}
			}
			return []string{out.Results[0].CIDR.String()}
		},
	}.Command(p)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case add.Subnet == "":
			return cli.Takes("NETWORK", "RANGE")(cmd, args)
		case len(args) == 2:
			return cli.Usage(cmd, errors.New("a range and --subnet are two ways to say which addresses: give one "+
				"of them"))
		}
		return cli.Takes("NETWORK")(cmd, args)
	}
	cmd.Flags().StringVar(&add.Subnet, "subnet", "",
		"instead of a range: the whole `SUBNET`, a CIDR, a name or an id")
	cmd.Flags().StringVar(&add.Name, "name", "", "its `NAME`")
	cli.Completes(cmd, "subnet", p.CompleteFlag(cli.SubnetRefs))
	return cmd
}

const poolModifyHelp = `Renames a pool: all ranges of a NAME, or exactly one RANGE. Docker networks that use
the pool by name follow the new one. --name '' removes the name.`

func poolModifyCommand(p *cli.Program) *cobra.Command {
	var name string
	cmd := cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK NAME|RANGE", Short: "Rename a pool", Long: poolModifyHelp,
			Refs: []cli.Refs{cli.NetworkRefs, poolRefs},
			Example: "  berth pool modify net1 pool1 --name front\n" +
				"  berth pool modify net1 192.0.2.51-192.0.2.100 --name back"},
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			if err := cli.Changed(cmd, "name"); err != nil {
				return nil, err
			}
			pool, err := parsePool(args[1])
			if err == nil && name != "" {
				err = ipam.CheckName("pool", name)
			}
			return cli.One(&ipam.ModifyPool{Network: args[0], Pool: pool, Name: name}, err)
		},
	}.Command(p)
	cmd.Flags().StringVar(&name, "name", "", "the new `NAME`")
	return cmd
}

const poolRemoveHelp = `Removes a range from the pools. A pool that reaches beyond the range is split; the
rest keeps its name. A NAME removes all ranges of that name. Held addresses stay with their holders. You can
pass several ranges as berth pool ls -q prints them: RANGE of the space local, or NETWORK/RANGE.`

func poolRemoveCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "rm [NETWORK] NAME|RANGE...", Short: "Remove pools, or a range from them",
			Long: poolRemoveHelp, Args: cli.SomePlaces("NAME|RANGE"),
			Refs: []cli.Refs{cli.NetworkRefs, poolRefs},
			Example: "  berth pool rm net1 192.0.2.20-192.0.2.50\n  berth pool rm net1 front --dry-run\n" +
				"  berth pool rm $(berth pool ls net1 -q)"},
		Each: func(at cli.Place) (ipam.Edit, error) {
			pool, err := parsePool(at.Thing)
			return &ipam.RemovePool{Network: at.Network, Pool: pool}, err
		},
	}.Command(p)
}

// parsePool reads a name or a range. What cannot be a name was meant as a range.
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

// poolRow is a pool as a list shows it.
type poolRow struct {
	Network   string       `json:"network"`
	NetworkID ipam.ID      `json:"network_id"`
	Space     string       `json:"space"`
	Subnet    netip.Prefix `json:"subnet"`
	Name      string       `json:"name"`
	Range     string       `json:"range"`
	Start     netip.Addr   `json:"start"`
	End       netip.Addr   `json:"end"`
	Size      ipam.Count   `json:"size"`
	Free      ipam.Count   `json:"free"`

	tags map[string]string
}

const poolListHelp = `Lists the pools, of one network or of all: how many addresses each has, and how many of
these are free. --format wide also shows which subnet and space each is in.`

func poolListCommand(p *cli.Program) *cobra.Command {
	return listParts(p, cli.Verb{Short: "List pools", Long: poolListHelp,
		Example: "  berth pool ls\n  berth pool ls net1\n  berth pool ls --format '{{.Name}} {{.Range}} {{.Free}}'"},
		poolRows, poolKeys(), poolColumns())
}

func poolRows(n *ipam.NetworkInfo, s *ipam.SubnetPlan) (rows []poolRow) {
	for _, pool := range s.Pools {
		r := netipx.IPRangeFrom(pool.Start, pool.End)
		rows = append(rows, poolRow{Network: n.Name, NetworkID: n.ID, Space: n.Space, tags: n.Tags,
			Subnet: s.CIDR, Name: pool.Name, Range: alloc.FormatRange(r),
			Start: pool.Start, End: pool.End, Size: ipam.Count{Int: alloc.Size(r)}, Free: pool.Free})
	}
	return rows
}

func poolKeys() []cli.Key[poolRow] {
	return []cli.Key[poolRow]{
		cli.ByNetwork(func(r *poolRow) string { return r.Network }, func(r *poolRow) ipam.ID { return r.NetworkID }),
		cli.By(cli.KeySpace, func(r *poolRow) string { return r.Space }),
		cli.ByTag(func(r *poolRow) map[string]string { return r.tags }),
	}
}

func poolColumns() []cli.Column[poolRow] {
	return []cli.Column[poolRow]{
		cli.RefCol(func(r *poolRow) string { return cli.Ref(r.Space, r.Network, r.Range) }),
		cli.Col("POOL", func(r *poolRow) string { return r.Range }),
		cli.Col("NAME", func(r *poolRow) string { return r.Name }),
		cli.Col("NETWORK", func(r *poolRow) string { return r.Network }),
		cli.Col("SIZE", func(r *poolRow) string { return r.Size.Text() }),
		cli.Col("FREE", func(r *poolRow) string { return r.Free.Text() }).Stands(func(r *poolRow) cli.Alarm {
			if r.Free.Sign() > 0 {
				return ""
			}
			return cli.Wrong
		}),
		cli.WideCol("SUBNET", func(r *poolRow) string { return r.Subnet.String() }),
		cli.WideCol("SPACE", func(r *poolRow) string { return r.Space }),
	}
}
