package network

import (
	"net/netip"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"go4.org/netipx"
)

// ExclusionCommand is `berth exclusion`.
func ExclusionCommand() cli.Row {
	return cli.Group("exclusion", "Exclusions: ranges from which Berth assigns nothing", exclusionAddCommand(),
		exclusionListCommand(), exclusionRemoveCommand())
}

const exclusionAddHelp = `Excludes a range, and prints it. A range is A-B, A+N (N addresses from A on), a CIDR or
one address. Berth assigns no address from it; a request for one needs --force. Held and reserved addresses stay
with their holders; the command lists those holders on standard error. Exclusions lie inside their subnet and do
not overlap.`

func exclusionAddCommand() cli.Row {
	var add ipam.AddExclusion
	return cli.Change{
		Verb: cli.Verb{Use: "add NETWORK RANGE", Short: "Exclude a range", Long: exclusionAddHelp,
			Example: `  berth exclusion add net1 192.0.2.60+5 --note printers
  berth exclusion add net1 192.0.2.1-192.0.2.9 --dry-run`,
			Flags: cli.Flags{cli.Flag(&add.Note, "note", "a note, `TEXT`")}},
		Edit: func(args []string) (_ ipam.Edit, err error) {
			add.Network = args[0]
			add.Range, err = parseRange(args[1])
			return &add, err
		},
		Said: func(ipam.Outcome) []string { return []string{add.Range.String()} },
	}
}

const exclusionRemoveHelp = `Ends the exclusion of a range. An exclusion that reaches beyond the range is
split; the rest keeps its note. You can pass several ranges as berth exclusion ls -q prints them: RANGE of the
space local, or NETWORK/RANGE.`

func exclusionRemoveCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "rm [NETWORK] RANGE...", Short: "Remove exclusions",
			Long: exclusionRemoveHelp,
			Refs: []cli.Refs{cli.NetworkRefs, exclusionRefs},
			Example: `  berth exclusion rm net1 192.0.2.60+5
  berth exclusion rm net1 192.0.2.62 --dry-run
  berth exclusion rm $(berth exclusion ls net1 -q)`},
		Each: func(at cli.Place) (ipam.Edit, error) {
			r, err := parseRange(at.Thing)
			return &ipam.RemoveExclusion{Network: at.Network, Range: r}, err
		},
	}
}

// exclusionRow is a row of exclusion ls.
type exclusionRow struct {
	place
	Range string     `json:"range"`
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
	Note  string     `json:"note"`
}

func exclusionListCommand() cli.Row {
	return listParts(cli.Verb{Short: "List exclusions",
		Long:    "Lists the exclusions, of one network or of all, with their notes.",
		Example: "  berth exclusion ls\n  berth exclusion ls net1 --format json"},
		exclusionRows,
		cli.Fields{"Range,ref", "EXCLUDED=Range", "Network", "Note,most=30", "Subnet,wide", "Space,wide"})
}

func exclusionRows(n *ipam.NetworkInfo, s *ipam.SubnetPlan) (rows []exclusionRow) {
	for _, e := range s.Exclusions {
		rows = append(rows, exclusionRow{place: placeOf(n, s), Start: e.Start, End: e.End, Note: e.Note,
			Range: alloc.FormatRange(netipx.IPRangeFrom(e.Start, e.End))})
	}
	return rows
}
