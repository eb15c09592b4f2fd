package network

import (
	"net/netip"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"go4.org/netipx"
)

// ExclusionCommand is `berth exclusion`.
func ExclusionCommand(p *cli.Program) *cobra.Command {
	return cli.Group("exclusion", "Exclusions: ranges from which Berth assigns nothing", exclusionAddCommand(p),
		exclusionListCommand(p), exclusionRemoveCommand(p))
}

const exclusionAddHelp = `Excludes a range, and prints it: A-B, A+N (N addresses from A on), a CIDR or one
address. Berth assigns no address from it; a request for one needs --force. Held and reserved addresses stay
with their holders, whom the command names on standard error. Exclusions lie inside their subnet and do not
overlap.`

func exclusionAddCommand(p *cli.Program) *cobra.Command {
	var add ipam.AddExclusion
	cmd := cli.Change{
		Verb: cli.Verb{Use: "add NETWORK RANGE", Short: "Exclude a range", Long: exclusionAddHelp,
			Refs: []cli.Refs{cli.NetworkRefs},
			Example: "  berth exclusion add net1 192.0.2.60+5 --note printers\n" +
				"  berth exclusion add net1 192.0.2.1-192.0.2.9 --dry-run"},
		Edits: func(_ *cobra.Command, args []string) (_ []ipam.Edit, err error) {
			add.Network = args[0]
			add.Range, err = parseRange(args[1])
			return cli.One(&add, err)
		},
		Said: func(ipam.Outcome) []string { return []string{add.Range.String()} },
	}.Command(p)
	cmd.Flags().StringVar(&add.Note, "note", "", "a note, `TEXT`")
	return cmd
}

const exclusionRemoveHelp = `Ends the exclusion of a range. An exclusion that reaches beyond the range is
split; the rest keeps its note. You can pass several ranges as berth exclusion ls -q prints them: RANGE of the
space local, or NETWORK/RANGE.`

func exclusionRemoveCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "rm [NETWORK] RANGE...", Short: "Remove exclusions",
			Long: exclusionRemoveHelp, Args: cli.SomePlaces("RANGE"),
			Refs: []cli.Refs{cli.NetworkRefs, exclusionRefs},
			Example: "  berth exclusion rm net1 192.0.2.60+5\n  berth exclusion rm net1 192.0.2.62 --dry-run\n" +
				"  berth exclusion rm $(berth exclusion ls net1 -q)"},
		Each: func(at cli.Place) (ipam.Edit, error) {
			r, err := parseRange(at.Thing)
			return &ipam.RemoveExclusion{Network: at.Network, Range: r}, err
		},
	}.Command(p)
}

// exclusionRow is an exclusion as a list shows it.
type exclusionRow struct {
	Network   string       `json:"network"`
	NetworkID ipam.ID      `json:"network_id"`
	Space     string       `json:"space"`
	Subnet    netip.Prefix `json:"subnet"`
	Range     string       `json:"range"`
	Start     netip.Addr   `json:"start"`
	End       netip.Addr   `json:"end"`
	Note      string       `json:"note"`

	tags map[string]string
}

func exclusionListCommand(p *cli.Program) *cobra.Command {
	return listParts(p, cli.Verb{Short: "List exclusions",
		Long:    "Lists the exclusions, of one network or of all, with their notes.",
		Example: "  berth exclusion ls\n  berth exclusion ls net1 --format json"},
		exclusionRows, exclusionKeys(), exclusionColumns())
}

func exclusionRows(n *ipam.NetworkInfo, s *ipam.SubnetPlan) (rows []exclusionRow) {
	for _, e := range s.Exclusions {
		rows = append(rows, exclusionRow{Network: n.Name, NetworkID: n.ID, Space: n.Space, tags: n.Tags,
			Subnet: s.CIDR, Start: e.Start, End: e.End, Note: e.Note,
			Range: alloc.FormatRange(netipx.IPRangeFrom(e.Start, e.End))})
	}
	return rows
}

func exclusionKeys() []cli.Key[exclusionRow] {
	return []cli.Key[exclusionRow]{
		cli.ByNetwork(func(r *exclusionRow) string { return r.Network },
			func(r *exclusionRow) ipam.ID { return r.NetworkID }),
		cli.By(cli.KeySpace, func(r *exclusionRow) string { return r.Space }),
		cli.ByTag(func(r *exclusionRow) map[string]string { return r.tags }),
	}
}

func exclusionColumns() []cli.Column[exclusionRow] {
	const shown = 30 // of a note, beside a range and a network
	return []cli.Column[exclusionRow]{
		cli.RefCol(func(r *exclusionRow) string { return cli.Ref(r.Space, r.Network, r.Range) }),
		cli.Col("EXCLUDED", func(r *exclusionRow) string { return r.Range }),
		cli.Col("NETWORK", func(r *exclusionRow) string { return r.Network }),
		cli.Col("NOTE", func(r *exclusionRow) string { return r.Note }).AtMost(shown),
		cli.WideCol("SUBNET", func(r *exclusionRow) string { return r.Subnet.String() }),
		cli.WideCol("SPACE", func(r *exclusionRow) string { return r.Space }),
	}
}
