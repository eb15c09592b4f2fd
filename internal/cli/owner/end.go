package owner

import (
	"fmt"
	"net/netip"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// endCommand is a verb that gives back what an owner has in a network, all or the one of --ip; end makes the edit, and
// owners completes --owner.
func endCommand(p *cli.Program, verb cli.Verb, owners cli.Refs, whose string,
	end func(network, owner string, addr netip.Addr) ipam.Edit) *cobra.Command {
	var owner, ip string
	verb.Refs = []cli.Refs{cli.NetworkRefs}
	cmd := cli.Change{
		Verb: verb,
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			addr, err := ownersAddress(cmd, owner, ip)
			return cli.One(end(args[0], owner, addr), err)
		},
		Said: func(ipam.Outcome) []string { return []string{owner} },
	}.Command(p)
	cli.OwnerFlag(cmd, &owner, whose)
	cli.Completes(cmd, "owner", p.CompleteFlag(owners))
	cmd.Flags().StringVar(&ip, "ip", "", "only this `ADDRESS`")
	return cmd
}

// ownersAddress reads --owner and, where it is given, --ip of what gives back.
func ownersAddress(cmd *cobra.Command, owner, ip string) (netip.Addr, error) {
	if err := cli.NeedsOwner(cmd, owner); err != nil {
		return netip.Addr{}, err
	}
	if !cmd.Flags().Changed("ip") {
		return netip.Addr{}, nil
	}
	addr, err := alloc.ParseAddr(ip)
	if err != nil {
		return netip.Addr{}, cli.Usage(cmd, fmt.Errorf("--ip: %w", err))
	}
	return addr, nil
}
