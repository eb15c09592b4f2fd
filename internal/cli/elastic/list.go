package elastic

import (
	"context"
	"io"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const listHelp = `Lists the elastic addresses that are allocated, or being released, with their accounts and
what they are mapped to. MAPPED shows whether an edge has mapped an address: yes, no, or failed; berth elastic
show gives the reason. --format wide also shows the guest's address, its network and its host, and when the address is
released by itself. berth elastic range ls counts the free addresses.`

func listCommand(p *cli.Program) *cobra.Command {
	var account string
	cmd := cli.Listing[ipam.ElasticInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List addresses", Long: listHelp,
			Example: "  berth elastic ls\n  berth elastic ls --account shop\n  berth elastic ls --format json"},
		Keys:    elasticKeys(),
		Columns: func(cli.Output) []cli.Column[ipam.ElasticInfo] { return elasticColumns() },
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.ElasticInfo, error) {
			return c.Elastics(ctx, account)
		},
	}.Command(p)
	cmd.Flags().StringVar(&account, "account", "", "those of this `ACCOUNT`")
	cli.Completes(cmd, "account", p.CompleteFlag(accountRefs))
	return cmd
}

func elasticKeys() []cli.Key[ipam.ElasticInfo] {
	return []cli.Key[ipam.ElasticInfo]{
		cli.ByNetwork(func(e *ipam.ElasticInfo) string { return e.Network },
			func(e *ipam.ElasticInfo) ipam.ID { return e.NetworkID }),
		cli.ByAny(cli.KeyHost, func(e *ipam.ElasticInfo) []string { return []string{e.Host, e.HostRange} }),
		cli.By(cli.KeyOwner, func(e *ipam.ElasticInfo) string { return e.Instance }),
		cli.ByTagOf(func(e *ipam.ElasticInfo) ipam.ID { return e.NetworkID }),
		cli.By(cli.KeyKind, func(e *ipam.ElasticInfo) string { return e.Kind }, ipam.KindElastic, ipam.KindHost,
			ipam.KindSystem),
		cli.By(cli.KeyState, func(e *ipam.ElasticInfo) string { return string(e.State) }, string(ipam.ElasticAllocated),
			string(ipam.ElasticReleasing)),
		cli.ByAny(cli.KeyID, func(e *ipam.ElasticInfo) []string { return []string{e.ID.String(), e.ID.Short()} }),
	}
}

func elasticColumns() []cli.Column[ipam.ElasticInfo] {
	return []cli.Column[ipam.ElasticInfo]{
		cli.Col("ADDRESS", func(e *ipam.ElasticInfo) string { return e.Address.String() }),
		cli.StateCol("STATE", func(e *ipam.ElasticInfo) string { return string(e.State) }),
		cli.Col("ACCOUNT", func(e *ipam.ElasticInfo) string { return e.Account }),
		cli.Col("INSTANCE", func(e *ipam.ElasticInfo) string { return e.Instance }),
		cli.StateCol("MAPPED", mappedText),
		cli.WideCol("GUEST", guestText),
		cli.WideCol("NETWORK", func(e *ipam.ElasticInfo) string { return e.Network }),
		cli.WideCol("HOST", func(e *ipam.ElasticInfo) string { return e.Host }),
		cli.WideCol("KIND", func(e *ipam.ElasticInfo) string { return e.Kind }),
		cli.WideCol("RELEASE ON", func(e *ipam.ElasticInfo) string { return e.ReleaseOn }),
		cli.WideCol("ALLOCATED", func(e *ipam.ElasticInfo) string { return cli.ShortTime(e.Allocated) }),
	}
}

func showCommand(p *cli.Program) *cobra.Command {
	return cli.Showing[ipam.ElasticInfo]{
		Verb: cli.Verb{Use: "show ADDRESS", Short: "Show an address",
			Long: "Shows an elastic address, also a free one: its account, what it is mapped to, and what the " +
				"edge of the\nhost reports about it.",
			Refs: []cli.Refs{addressRefs},
			Example: "  berth elastic show 203.0.113.12\n  berth elastic show 203.0.113.12 --format json\n" +
				"  berth elastic show 203.0.113.12 --format '{{.State}}'"},
		Fetch: func(ctx context.Context, c *client.Client, args []string) (ipam.ElasticInfo, error) {
			addr, err := parseAddress(args[0])
			if err != nil {
				return ipam.ElasticInfo{}, err
			}
			return c.Elastic(ctx, addr)
		},
		Text: write,
	}.Command(p)
}

func write(w io.Writer, e *ipam.ElasticInfo) error {
	pg := &cli.Page{}
	pg.Line("ELASTIC %s", e.Address)
	pg.Entry("id", e.ID.String())
	pg.Entry("region", e.Region)
	pg.Entry("kind", e.Kind)
	pg.Entry("state", string(e.State))
	if e.State != ipam.ElasticFree {
		pg.Entry("account", e.Account)
		pg.Entry("domain", e.Domain)
		pg.Entry("allocated", cli.LocalTime(e.Allocated))
		pg.Entry("release on", e.ReleaseOn)
	}
	if e.Associated {
		pg.Entry("instance", e.Instance)
		pg.Entry("network", e.Network)
		pg.Entry("guest", e.Guest.String())
		pg.Entry("host", e.Host)
		pg.Entry("way", wayText(e))
		pg.Entry("mapped", appliedText(e))
	}
	return pg.Show(w)
}

func wayText(e *ipam.ElasticInfo) string {
	if e.EgressOnly {
		return "out only"
	}
	return "in and out"
}

func appliedText(e *ipam.ElasticInfo) string {
	switch a := e.Applied; {
	case a == nil:
		return "no"
	case a.Error != "":
		return "failed on " + a.Host + ": " + a.Error
	default:
		return "on " + a.Host + " since " + cli.LocalTime(a.Since)
	}
}

func mappedText(e *ipam.ElasticInfo) string {
	switch {
	case !e.Associated:
		return ""
	case e.Applied == nil:
		return "no"
	case e.Applied.Error != "":
		return "failed"
	}
	return "yes"
}

func guestText(e *ipam.ElasticInfo) string {
	if !e.Associated {
		return ""
	}
	return e.Guest.String()
}

// targetText is what an address is mapped to, for a shell.
func targetText(e *ipam.ElasticInfo) string {
	if e.Associated {
		return e.Instance
	}
	return string(e.State)
}
