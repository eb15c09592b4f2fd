package names

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/dns"

	"github.com/spf13/cobra"
)

const listHelp = `Lists all names with their addresses, by KIND:

  long      OWNER.NETWORK.ZONE, the only name that a reverse query (PTR) for the address returns
  service   SERVICE.PROJECT.NETWORK.ZONE, with the addresses of all running containers of the service
  alias     the name of a container
  short     a name without its network, while it is unique

If two owners on a network have the same name in DNS, one of them gets a mark at the end of the first label.
--format wide shows the owner of the name without the mark (INSTEAD).`

func listCommand(p *cli.Program) *cobra.Command {
	var zone zoneFlag
	cmd := cli.Listing[dns.Name]{
		Verb: cli.Verb{Use: "ls", Short: "List names", Long: listHelp,
			Example: "  berth dns ls\n  berth dns ls --filter kind=long\n  berth dns ls --filter network=home --format json"},
		Check: func([]string) error { return zone.check() },
		Keys: []cli.Key[dns.Name]{
			cli.By(cli.KeyNetwork, func(n *dns.Name) string { return n.Network }),
			cli.By(cli.KeyOwner, func(n *dns.Name) string { return n.Owner }),
			cli.By(cli.KeyKind, func(n *dns.Name) string { return n.Kind }, dns.Kinds()...),
		},
		Columns: func(cli.Output) []cli.Column[dns.Name] {
			return []cli.Column[dns.Name]{
				cli.Col("NAME", func(n *dns.Name) string { return n.Name }),
				cli.Col("ADDRESS", func(n *dns.Name) string { return n.Address.String() }),
				cli.Col("KIND", func(n *dns.Name) string { return n.Kind }),
				cli.WideCol("OWNER", func(n *dns.Name) string { return n.Owner }),
				cli.WideCol("NETWORK", func(n *dns.Name) string { return n.Network }),
				cli.WideCol("IN USE", func(n *dns.Name) string {
					if n.Held {
						return "yes"
					}
					return "no"
				}),
				cli.WideCol("INSTEAD", func(n *dns.Name) string { return n.Instead }),
			}
		},
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]dns.Name, error) {
			x, err := zone.index(ctx, c, p.Now)
			if err != nil {
				return nil, err
			}
			return x.Names(), nil
		},
	}.Command(p)
	zone.flags(cmd)
	return cmd
}
