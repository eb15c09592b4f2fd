package names

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/dns"

	"github.com/spf13/cobra"
)

const listHelp = `Lists all names with their addresses. KIND is long for the one name that an address is called by in
return (PTR): OWNER.NETWORK.ZONE; service for all that run of a service: SERVICE.PROJECT.NETWORK.ZONE; alias for
the name of a container, and short for a name without its network, which is there as long as it is unique.

An owner whose name another one has on the same network, because they differ by nothing that DNS knows, has a
mark at the end of the first label; --format wide shows who has the name without (INSTEAD).`

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
