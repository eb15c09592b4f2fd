package owner

import (
	"context"
	"fmt"

	"berth/internal/admin/client"
	"berth/internal/cli"

	"github.com/spf13/cobra"
)

const envHelp = `Prints the variables that describe the addresses of an owner in a network, KEY=VALUE, one a
line, as hooks get them (berth serve --hook). NETWORK can be left out where the owner has addresses on one
network only.

For address i of interface n these are INSTANCE_NICn_IP:i and, of its subnet,
INSTANCE_NICn_NETWORK_SUBNET:i, _GATEWAY:i and _DHCP:i. Each also comes with _i instead of :i
(INSTANCE_NIC0_IP_0), for shells that drop names with a colon, and the one of the first address also
without either.`

// EnvCommand is `berth env`.
func EnvCommand(p *cli.Program) *cobra.Command {
	cmd := cli.Verb{Use: "env [NETWORK] OWNER", Short: "Print the variables that describe an owner's addresses",
		Long:    envHelp,
		Refs:    []cli.Refs{cli.NetworkRefs, cli.AnyOwners},
		Example: "  berth env rtr\n  berth env net1 rtr\n  berth env net1 shop/web/1"}.Command(p)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			network, owner := args[0], args[len(args)-1]
			if len(args) == 1 {
				n, err := onlyNetwork(ctx, c, owner)
				if err != nil {
					return err
				}
				network = n.ID.String()
			}
			variables, err := c.Environment(ctx, network, owner)
			for _, v := range variables {
				if _, err := fmt.Fprintln(p.Out, v); err != nil {
					return err
				}
			}
			return err
		})
	}
	return cmd
}
