package elastic

import (
	"io"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const listHelp = `Lists the elastic addresses that are allocated, or being released, with their accounts and
what they are mapped to. MAPPED shows whether an edge has mapped an address: yes, no, or failed; berth elastic
show gives the reason. --format wide also shows the guest's address, its network and its host, and when Berth releases
the address automatically. berth elastic range ls counts the free addresses.`

func listCommand() cli.Row {
	var account string
	return cli.Listing[ipam.ElasticInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List addresses", Long: listHelp,
			Example: "  berth elastic ls\n  berth elastic ls --account shop\n  berth elastic ls --format json",
			Flags: cli.Flags{
				cli.Flag(&account, "account", "list only the addresses of this `ACCOUNT`").Of(cli.AccountRefs)}},
		Keys: cli.Fields{"network", "host=Host,HostRange", "owner=Instance", "tag",
			cli.Choice("kind", ipam.KindElastic, ipam.KindHost, ipam.KindSystem),
			cli.Choice("state", string(ipam.ElasticAllocated), string(ipam.ElasticReleasing)), "id"},
		Columns: cli.Fields{"Address", "State,marked", "Account", "Instance", cli.Col("MAPPED", mappedText).Marked(),
			"Guest,wide", "Network,wide", "Host,wide", "Kind,wide", "ReleaseOn,wide", "Allocated,wide"},
		Fetch: func(r *cli.Run) ([]ipam.ElasticInfo, error) {
			return r.Elastics(r, account)
		},
	}
}

func showCommand() cli.Row {
	return cli.Showing[ipam.ElasticInfo]{
		Verb: cli.Verb{Use: "show ADDRESS", Short: "Show an address",
			Long: "Shows an elastic address, also a free one: its account, what it is mapped to, and what the " +
				"edge of the\nhost reports about it.",
			Refs: []cli.Refs{addressRefs},
			Example: `  berth elastic show 203.0.113.12
  berth elastic show 203.0.113.12 --format json
  berth elastic show 203.0.113.12 --format '{{.State}}'`},
		JSON: "one object",
		Fetch: func(r *cli.Run) (ipam.ElasticInfo, error) {
			addr, err := parseAddress(r.Args[0])
			if err != nil {
				return ipam.ElasticInfo{}, err
			}
			return r.Elastic(r, addr)
		},
		Text: write,
	}
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

// targetText returns the target of an address, or its state, for completion.
func targetText(e *ipam.ElasticInfo) string {
	if e.Associated {
		return e.Instance
	}
	return string(e.State)
}
