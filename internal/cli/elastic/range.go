package elastic

import (
	"cmp"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const rangeAddHelp = `Adds a range of elastic addresses, and prints it. A range is A-B, A+N (N addresses from A
on), a CIDR of which every address counts, or one address. With --host the range belongs to that host only, and its
addresses are allocated with --host, too. Ranges must not overlap.

--announce sets the network device at which the host answers for the addresses (ARP, NDP). With none, the default, a
router sends their packets to the host. --ttl and --on-cut are for hosts that share a store: they set what a host
does with the range when the host is cut off from the store, and how soon.`

func rangeAddCommand() cli.Row {
	add := ipam.AddElasticRange{Announce: "none", OnCut: string(ipam.CutWithdraw)}
	ttl := time.Duration(ipam.DefaultElasticTTL)
	return cli.Change{
		Verb: cli.Verb{Use: "add RANGE", Short: "Add a range", Long: rangeAddHelp,
			Example: `  berth elastic range add 203.0.113.10+20
  berth elastic range add 203.0.113.64/28 --announce eth0
  berth elastic range add 203.0.113.7 --host a --dry-run`,
			Flags: cli.Flags{
				cli.Flag(&add.Host, "host", "only for the `HOST` (default: for the cluster)").Filled(),
				cli.Flag(&add.Announce, "announce",
					"the network `DEVICE` on which a host answers for the range, or none").Filled(),
				cli.Flag(&ttl, "ttl",
					"how long a host that is cut off still answers, a `duration` of 3s to 1m"),
				cli.Flag(&add.OnCut, "on-cut", "what a host that is cut off does with the range: `withdraw|keep`").
					Words(string(ipam.CutWithdraw), string(ipam.CutKeep)).Filled()}},
		Edit: func(args []string) (_ ipam.Edit, err error) {
			lives := ipam.Duration(ttl)
			add.TTL = &lives
			add.Range, err = parseRange(args[0])
			return &add, err
		},
		Said: func(ipam.Outcome) []string { return []string{add.Range.String()} },
	}
}

func rangeRemoveCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "rm RANGE...", Short: "Remove ranges",
			Long: "Removes a range. Write RANGE as in berth elastic range ls. The command refuses while an address " +
				"of\nthe range is allocated.",
			Refs: []cli.Refs{rangeRefs}, Example: "  berth elastic range rm 203.0.113.10+20"},
		PerArg: func(arg string) (ipam.Edit, error) {
			r, err := parseRange(arg)
			return &ipam.RemoveElasticRange{Range: r}, err
		},
	}
}

func rangeListCommand() cli.Row {
	return cli.Listing[ipam.ElasticRangeInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List ranges",
			Long: "Lists the ranges of elastic addresses. ALLOCATED is the number of addresses in a range that\n" +
				"are not free.",
			Example: "  berth elastic range ls\n  berth elastic range ls -q"},
		Keys: cli.Fields{"host"},
		Columns: cli.Fields{"Range", "Host",
			cli.Col("ANNOUNCE", func(r *ipam.ElasticRangeInfo) string { return cmp.Or(r.Announce, "none") }),
			"Allocated", "OnCut,wide"},
		Fetch: cli.All((*client.Client).ElasticRanges),
	}
}
