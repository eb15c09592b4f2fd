package main

import (
	"context"
	"net/netip"

	"berth/internal/admin"
	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"go4.org/netipx"
)

func (p *program) exclusionCommand() *cobra.Command {
	return group("exclusion", "Exclusions: ranges that are never given automatically", p.exclusionAddCommand(), p.exclusionListCommand(),
		p.exclusionRemoveCommand())
}

const exclusionAddHelp = `Excludes a range, and prints it: A-B, A+N (N addresses from A on), a CIDR or one address. None of it is given automatically, and by
address only where that is forced. What is in use stays with its holder, and goes to nobody after. Exclusions lie
inside their subnet and do not overlap one another.`

func (p *program) exclusionAddCommand() *cobra.Command {
	var edit editing
	var note string
	cmd := &cobra.Command{Use: "add NETWORK RANGE", Short: "Exclude a range", Long: exclusionAddHelp,
		Args: takes("NETWORK", "RANGE"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: "  berth exclusion add net1 192.0.2.60+5 --note printers\n  berth exclusion add net1 192.0.2.1-192.0.2.9 --dry-run"}
	cmd.Flags().StringVar(&note, "note", "", "what it is for, a `TEXT`")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := parseRange(args[1])
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, echo(r.String()), &ipam.AddExclusion{Network: args[0], Range: r, Note: note})
	}
	return cmd
}

const exclusionRemoveHelp = `Takes a range out of the exclusions: one that it lies in is split, and both parts keep the note.`

func (p *program) exclusionRemoveCommand() *cobra.Command {
	var edit editing
	cmd := &cobra.Command{Use: "rm NETWORK RANGE", Aliases: []string{"remove"}, Short: "Take a range out of the exclusions", Long: exclusionRemoveHelp,
		Args: takes("NETWORK", "RANGE"), ValidArgsFunction: p.completeRefs(networkRefs, exclusionRefs),
		Example: "  berth exclusion rm net1 192.0.2.60+5\n  berth exclusion rm net1 192.0.2.62 --dry-run"}
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := parseRange(args[1])
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, echo(args[1]), &ipam.RemoveExclusion{Network: args[0], Range: r})
	}
	return cmd
}

// exclusionRow is an exclusion as a list shows it.
type exclusionRow struct {
	Network string       `json:"network"`
	Subnet  netip.Prefix `json:"subnet"`
	Range   string       `json:"range"`
	Start   netip.Addr   `json:"start"`
	End     netip.Addr   `json:"end"`
	Note    string       `json:"note"`
}

func (p *program) exclusionListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{Use: "ls [NETWORK]", Aliases: []string{"list"}, Short: "List exclusions",
		Long: "Lists the exclusions, of one network or of all, with their notes.", Args: mayTake("NETWORK"),
		ValidArgsFunction: p.completeRefs(networkRefs),
		Example:           "  berth exclusion ls\n  berth exclusion ls net1 --format json"}
	out.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return list(p, cmd, out, exclusionColumns(), func(r *exclusionRow) string { return r.Range }, func(ctx context.Context, c *admin.Client) ([]exclusionRow, error) {
			networks, err := networksOf(ctx, c, first(args))
			return exclusionRows(networks), err
		})
	}
	return cmd
}

func exclusionRows(networks []ipam.NetworkInfo) []exclusionRow {
	var rows []exclusionRow
	for _, n := range networks {
		for _, s := range n.Subnets {
			for _, e := range s.Exclusions {
				rows = append(rows, exclusionRow{Network: n.Name, Subnet: s.CIDR, Range: alloc.FormatRange(netipx.IPRangeFrom(e.Start, e.End)),
					Start: e.Start, End: e.End, Note: e.Note})
			}
		}
	}
	return rows
}

func exclusionColumns() []column[exclusionRow] {
	return []column[exclusionRow]{
		{"EXCLUDED", func(r *exclusionRow) string { return r.Range }},
		{"NETWORK", func(r *exclusionRow) string { return r.Network }},
		{"SUBNET", func(r *exclusionRow) string { return r.Subnet.String() }},
		{"NOTE", func(r *exclusionRow) string { return r.Note }},
	}
}
