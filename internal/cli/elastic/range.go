package elastic

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const rangeAddHelp = `Adds a range of elastic addresses, and prints it: A-B, A+N (N addresses from A on), a CIDR
of which every address counts, or one address. With --host the range belongs to that host only, and its addresses
are allocated with --host, too. Ranges must not overlap.

--announce sets the network device at which the host answers for the addresses (ARP, NDP). With none, the default, a
router sends their packets to the host. --ttl and --on-cut are for hosts that share a store: what a host does with
the range when it is cut off from the store, and how soon.`

func rangeAddCommand(p *cli.Program) *cobra.Command {
	var add ipam.AddElasticRange
	ttl := time.Duration(ipam.DefaultElasticTTL)
	cmd := cli.Change{
		Verb: cli.Verb{Use: "add RANGE", Short: "Add a range", Long: rangeAddHelp,
			Example: "  berth elastic range add 203.0.113.10+20\n" +
				"  berth elastic range add 203.0.113.64/28 --announce eth0\n" +
				"  berth elastic range add 203.0.113.7 --host a --dry-run"},
		Edits: func(cmd *cobra.Command, args []string) (_ []ipam.Edit, err error) {
			if err := cli.NotEmpty(cmd, "host", "announce", "on-cut"); err != nil {
				return nil, err
			}
			lives := ipam.Duration(ttl)
			add.TTL = &lives
			add.Range, err = parseRange(args[0])
			return cli.One(&add, err)
		},
		Said: func(ipam.Outcome) []string { return []string{add.Range.String()} },
	}.Command(p)
	f := cmd.Flags()
	f.StringVar(&add.Host, "host", "", "only for the `HOST` (default: for the cluster)")
	f.StringVar(&add.Announce, "announce", "none", "the network `DEVICE` at which it is announced, or none")
	f.DurationVar(&ttl, "ttl", ttl, "how long it answers after its host was cut off, a `duration` of 3s to 1m")
	f.StringVar(&add.OnCut, "on-cut", string(ipam.CutWithdraw), "what a host that is cut off does: `withdraw|keep`")
	cli.Completes(cmd, "on-cut", cli.Words(string(ipam.CutWithdraw), string(ipam.CutKeep)))
	return cmd
}

func rangeRemoveCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "rm RANGE...", Short: "Remove ranges", Args: cli.Some("RANGE"),
			Long: "Removes a range, which is written as it was added. It refuses while an address of it is allocated.",
			Refs: []cli.Refs{rangeRefs}, Example: "  berth elastic range rm 203.0.113.10+20"},
		PerArg: func(arg string) (ipam.Edit, error) {
			r, err := parseRange(arg)
			return &ipam.RemoveElasticRange{Range: r}, err
		},
	}.Command(p)
}

func rangeListCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[ipam.ElasticRangeInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List ranges",
			Long:    "Lists the ranges of elastic addresses, with how many addresses of each are not free (ALLOCATED).",
			Example: "  berth elastic range ls\n  berth elastic range ls -q"},
		Keys: []cli.Key[ipam.ElasticRangeInfo]{
			cli.By(cli.KeyHost, func(r *ipam.ElasticRangeInfo) string { return r.Host }),
		},
		Columns: func(cli.Output) []cli.Column[ipam.ElasticRangeInfo] {
			return []cli.Column[ipam.ElasticRangeInfo]{
				cli.Col("RANGE", func(r *ipam.ElasticRangeInfo) string { return r.Range.String() }),
				cli.Col("HOST", func(r *ipam.ElasticRangeInfo) string { return r.Host }),
				cli.Col("ANNOUNCE", func(r *ipam.ElasticRangeInfo) string { return cmp.Or(r.Announce, "none") }),
				cli.Col("ALLOCATED", func(r *ipam.ElasticRangeInfo) string { return strconv.Itoa(r.Allocated) }),
				cli.WideCol("ON CUT", func(r *ipam.ElasticRangeInfo) string { return string(r.OnCut) }),
			}
		},
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.ElasticRangeInfo, error) {
			return c.ElasticRanges(ctx)
		},
	}.Command(p)
}
