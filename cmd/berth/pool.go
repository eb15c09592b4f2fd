package main

import (
	"context"
	"errors"
	"net/netip"

	"berth/internal/admin"
	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"go4.org/netipx"
)

func (p *program) poolCommand() *cobra.Command {
	return group("pool", "Pools: the ranges that automatic addresses come from", p.poolAddCommand(), p.poolListCommand(),
		p.poolModifyCommand(), p.poolRemoveCommand())
}

const poolAddHelp = `Adds a pool to the subnet that holds its range, and prints the range: A-B, A+N (N addresses from A on), a CIDR or one
address. With --subnet instead of a range it is the whole of that subnet. Pools do not overlap; several may have one name, and
are then taken from one after the other.`

func (p *program) poolAddCommand() *cobra.Command {
	var edit editing
	var subnet, name string
	cmd := &cobra.Command{Use: "add NETWORK RANGE|--subnet SUBNET", Short: "Add a pool to a network", Long: poolAddHelp,
		ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth pool add net1 192.0.2.10-192.0.2.100 --name pool1
  berth pool add net1 192.0.2.10+91
  berth pool add net1 192.0.2.128/26
  berth pool add net1 --subnet lan`}
	cmd.Flags().StringVar(&subnet, "subnet", "", "instead of a range: the whole of this `SUBNET`, a CIDR, a name or an id")
	cmd.Flags().StringVar(&name, "name", "", "its `NAME`")
	completes(cmd, "subnet", p.completeFlag(subnetRefs))
	edit.flags(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case subnet == "":
			return takes("NETWORK", "RANGE")(cmd, args)
		case len(args) == 2:
			return usage(cmd, errors.New("a range and --subnet are two ways to say which addresses: give one of them"))
		}
		return takes("NETWORK")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		add := &ipam.AddPool{Network: args[0], Subnet: subnet, Name: name}
		said := func(out ipam.Outcome) []string { return []string{out.Results[0].CIDR.String()} }
		if name != "" {
			if err := ipam.CheckName("pool", name); err != nil {
				return usage(cmd, err)
			}
		}
		if len(args) == 2 {
			var err error
			if add.Range, err = parseRange(args[1]); err != nil {
				return usage(cmd, err)
			}
			said = echo(add.Range.String())
		}
		return p.edit(cmd, edit, said, add)
	}
	return cmd
}

const poolModifyHelp = `Gives a pool another name: all ranges of a NAME, or the one of exactly a RANGE. Docker networks that take from
it by name go on to do so. --name '' takes the name away.`

func (p *program) poolModifyCommand() *cobra.Command {
	var edit editing
	var name string
	cmd := &cobra.Command{Use: "modify NETWORK NAME|RANGE", Short: "Rename a pool", Long: poolModifyHelp,
		Args: takes("NETWORK", "NAME|RANGE"), ValidArgsFunction: p.completeRefs(networkRefs, poolRefs),
		Example: "  berth pool modify net1 pool1 --name front\n  berth pool modify net1 192.0.2.51-192.0.2.100 --name back"}
	cmd.Flags().StringVar(&name, "name", "", "the new `NAME`")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := changed(cmd, "name"); err != nil {
			return err
		}
		pool, err := parsePool(args[1])
		if err == nil && name != "" {
			err = ipam.CheckName("pool", name)
		}
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, echo(args[1]), &ipam.ModifyPool{Network: args[0], Pool: pool, Name: name})
	}
	return cmd
}

const poolRemoveHelp = `Takes a range out of the pools: one that it lies in is split, and both parts keep the name. A NAME takes all its ranges. What
is in use stays with its holder.`

func (p *program) poolRemoveCommand() *cobra.Command {
	var edit editing
	cmd := &cobra.Command{Use: "rm NETWORK NAME|RANGE", Aliases: []string{"remove"}, Short: "Remove pools, or a range out of them", Long: poolRemoveHelp,
		Args: takes("NETWORK", "NAME|RANGE"), ValidArgsFunction: p.completeRefs(networkRefs, poolRefs),
		Example: "  berth pool rm net1 192.0.2.20-192.0.2.50\n  berth pool rm net1 front --dry-run"}
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pool, err := parsePool(args[1])
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, echo(args[1]), &ipam.RemovePool{Network: args[0], Pool: pool})
	}
	return cmd
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
	Network string       `json:"network"`
	Subnet  netip.Prefix `json:"subnet"`
	Name    string       `json:"name"`
	Range   string       `json:"range"`
	Start   netip.Addr   `json:"start"`
	End     netip.Addr   `json:"end"`
	Size    ipam.Count   `json:"size"`
	Free    ipam.Count   `json:"free"`
}

const poolListHelp = `Lists the pools, of one network or of all: which subnet each is in, and how many of its addresses are free.`

func (p *program) poolListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{Use: "ls [NETWORK]", Aliases: []string{"list"}, Short: "List pools", Long: poolListHelp, Args: mayTake("NETWORK"),
		ValidArgsFunction: p.completeRefs(networkRefs),
		Example:           "  berth pool ls\n  berth pool ls net1\n  berth pool ls --format '{{.Name}} {{.Range}} {{.Free}}'"}
	out.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return list(p, cmd, out, poolColumns(), func(r *poolRow) string { return r.Range }, func(ctx context.Context, c *admin.Client) ([]poolRow, error) {
			networks, err := networksOf(ctx, c, first(args))
			return poolRows(networks), err
		})
	}
	return cmd
}

// networksOf returns one network, or with the empty name all.
func networksOf(ctx context.Context, c *admin.Client, network string) ([]ipam.NetworkInfo, error) {
	if network == "" {
		return c.Networks(ctx, "")
	}
	n, err := c.Network(ctx, network)
	if err != nil {
		return nil, err
	}
	return []ipam.NetworkInfo{n}, nil
}

func poolRows(networks []ipam.NetworkInfo) []poolRow {
	var rows []poolRow
	for _, n := range networks {
		for _, s := range n.Subnets {
			for _, pool := range s.Pools {
				r := netipx.IPRangeFrom(pool.Start, pool.End)
				rows = append(rows, poolRow{Network: n.Name, Subnet: s.CIDR, Name: pool.Name, Range: alloc.FormatRange(r),
					Start: pool.Start, End: pool.End, Size: ipam.Count{Int: alloc.Size(r)}, Free: pool.Free})
			}
		}
	}
	return rows
}

func poolColumns() []column[poolRow] {
	return []column[poolRow]{
		{"POOL", func(r *poolRow) string { return r.Range }},
		{"NAME", func(r *poolRow) string { return r.Name }},
		{"NETWORK", func(r *poolRow) string { return r.Network }},
		{"SUBNET", func(r *poolRow) string { return r.Subnet.String() }},
		{"SIZE", func(r *poolRow) string { return r.Size.String() }},
		{"FREE", func(r *poolRow) string { return r.Free.String() }},
	}
}
