package main

import (
	"context"
	"fmt"

	"berth/internal/admin"

	"github.com/spf13/cobra"
)

const envHelp = `Prints the variables that describe the addresses of an owner in a network, KEY=VALUE, one a line, the way hooks get them
(berth serve --hook): of the interface n its addresses, INSTANCE_NICn_IP:i, and of the subnets of these
INSTANCE_NICn_NETWORK_SUBNET:i, _GATEWAY:i and _DHCP:i; with one address also without the :i.`

func (p *program) envCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "env NETWORK OWNER", Short: "Print the variables that describe an owner's addresses", Long: envHelp,
		Args: takes("NETWORK", "OWNER"), ValidArgsFunction: p.completeRefs(networkRefs, anyOwners),
		Example: "  berth env net1 rtr\n  berth env net1 shop/web/1"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			variables, err := c.Environment(ctx, args[0], args[1])
			for _, v := range variables {
				if _, err := fmt.Fprintln(p.out, v); err != nil {
					return err
				}
			}
			return err
		})
	}
	return cmd
}
