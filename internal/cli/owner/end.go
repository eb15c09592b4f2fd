package owner

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// endCommand is a verb that gives back what an owner has in a network, all or the one of --ip, or without --owner the
// addresses that its list prints with -q, whose owners whose tells; end makes the edit, and owners completes --owner.
func endCommand(p *cli.Program, verb cli.Verb, owners cli.Refs, help string, whose ownersOf,
	end func(network, owner string, addr netip.Addr) ipam.Edit) *cobra.Command {
	var owner, ip string
	verb.Refs, verb.Args = []cli.Refs{cli.NetworkRefs}, networkOrAddresses
	cmd := cli.Change{
		Verb: verb,
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			if err := cli.Takes("NETWORK")(cmd, args); err != nil {
				return nil, err
			}
			addr, err := ownersAddress(cmd, owner, ip)
			return cli.One(end(args[0], owner, addr), err)
		},
		Said: func(ipam.Outcome) []string { return []string{owner} },
	}.Command(p)
	cli.OwnerFlag(cmd, &owner, help)
	cli.Completes(cmd, "owner", p.CompleteFlag(owners))
	cmd.Flags().StringVar(&ip, "ip", "", "only this `ADDRESS`")
	ofOwner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if owner != "" || ip != "" || len(args) == 1 && !strings.Contains(args[0], "/") && !isAddress(args[0]) {
			return ofOwner(cmd, args)
		}
		return endPlaces(p, cmd, args, whose, end)
	}
	return cmd
}

// networkOrAddresses demands a network, or addresses as lists print them.
func networkOrAddresses(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(cmd, fmt.Errorf("NETWORK is missing: %s NETWORK --owner OWNER, or %[1]s ADDRESS",
			cmd.CommandPath()))
	}
	return cli.Some("ADDRESS")(cmd, args)
}

// editFlags reads those that a Change has added.
func editFlags(cmd *cobra.Command) (flags cli.EditFlags) {
	flags.DryRun, _ = cmd.Flags().GetBool("dry-run")
	flags.Format, _ = cmd.Flags().GetString("format")
	return flags
}

// ownersOf lists what a network has: owners with their addresses, which are zero where there is none.
type ownersOf func(ctx context.Context, c *client.Client, network string) ([]owned, error)

type owned struct {
	owner string
	addr  netip.Addr
}

// endPlaces gives back what the arguments name: addresses, or owners without one.
func endPlaces(p *cli.Program, cmd *cobra.Command, args []string, whose ownersOf,
	end func(network, owner string, addr netip.Addr) ipam.Edit) error {
	e, err := p.Editor(cmd, editFlags(cmd))
	if err != nil {
		return err
	}
	defer e.Close()
	places, err := cli.Places(cmd.Context(), e.Client, args)
	if err != nil {
		return err
	}
	var failed []error
	for _, at := range places {
		all, err := whose(cmd.Context(), e.Client, at.Network)
		if err != nil {
			return err
		}
		addr, _ := netip.ParseAddr(at.Thing)
		i := slices.IndexFunc(all, func(o owned) bool {
			return o.addr == addr && (addr.IsValid() || o.owner == at.Thing)
		})
		if i < 0 {
			owns := slices.ContainsFunc(all, func(o owned) bool { return o.owner == at.Thing })
			failed = append(failed, notThere(cmd, at, owns))
			continue
		}
		failed = append(failed, e.Make(cli.Echo(at.Thing), end(at.Network, all[i].owner, addr)))
	}
	return errors.Join(failed...)
}

// notThere is that a network has nothing of the noun that is called so. With owns that is an owner of addresses there,
// who is not named so.
func notThere(cmd *cobra.Command, at cli.Place, owns bool) error {
	if owns {
		return fmt.Errorf("%s is no address but an owner; write %s %s --owner %s", at.Thing, cmd.CommandPath(), at.Network,
			at.Thing)
	}
	return fmt.Errorf("there is none of %s in that network; `%s ls` shows those that there are", at.Thing,
		cmd.Parent().CommandPath())
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
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
