package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const ipHelp = `Prints the address that is reserved for an owner in a network, and nothing else, so that a command can take it:

  docker run --network front --ip "$(berth ip web --network front)" IMAGE

Of several it is the first of IPv4, and one of IPv6 only where there is no other; -6 asks for the first of IPv6, --all for all of
them, one a line. OWNER is a path, a MAC, or the name of a container, which can mean what a rule of the network or Compose
makes of it. For an owner that has nothing reserved it is the address that it holds under its name. Where there is none it ends
with exit code 1.`

// ipRequest is what the command line of ip says.
type ipRequest struct {
	owner, network string
	six, all       bool
}

func (p *program) ipCommand() *cobra.Command {
	var req ipRequest
	cmd := &cobra.Command{Use: "ip OWNER --network NETWORK", Short: "Print the address of an owner", Long: ipHelp, Args: takes("OWNER"),
		Example: `  berth ip shop/web/1 --network front
  berth ip web --network front -6
  berth ip web --network front --all`}
	f := cmd.Flags()
	f.StringVar(&req.network, "network", "", "the `NETWORK`, by name or id")
	f.BoolVarP(&req.six, "ipv6", "6", false, "its IPv6 address")
	f.BoolVar(&req.all, "all", false, "all that it has, one a line; with -6 those of IPv6")
	completes(cmd, "network", p.completeNetworks)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.complete(cmd, func(ctx context.Context, c *admin.Client) ([]string, error) { return anyOwners(ctx, c, req.network) })
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if req.network == "" {
			return usage(cmd, errors.New("--network is missing: it says on which network"))
		}
		req.owner = args[0]
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			addresses, err := req.find(ctx, c)
			if err != nil {
				return err
			}
			if !req.all {
				addresses = addresses[:1]
			}
			for _, a := range addresses {
				if _, err := fmt.Fprintln(p.out, a); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// find returns the addresses that were asked for, at least one, in their order.
func (req *ipRequest) find(ctx context.Context, c *admin.Client) ([]netip.Addr, error) {
	n, err := c.Network(ctx, req.network)
	if err != nil {
		return nil, err
	}
	rules := &ipam.Network{Name: n.Name, Rules: n.OwnerRules}
	var found []netip.Addr
	for owner := range rules.Owners(req.owner) {
		reserved, err := c.Reservations(ctx, n.Name, owner)
		if err != nil {
			return nil, err
		}
		if found = req.choose(slotted(reserved)); len(found) > 0 {
			return found, nil
		}
	}
	held, err := heldBy(ctx, c, &n, req.owner)
	if err != nil {
		return nil, err
	}
	if found = req.choose(held); len(found) > 0 {
		return found, nil
	}
	return nil, req.none(&n)
}

// choose puts addresses of IPv4 before those of IPv6, or leaves them out.
func (req *ipRequest) choose(addresses []netip.Addr) (chosen []netip.Addr) {
	for _, six := range []bool{false, true} {
		for _, a := range addresses {
			if a.Is6() == six && (six || !req.six) {
				chosen = append(chosen, a)
			}
		}
	}
	return chosen
}

func (req *ipRequest) none(n *ipam.NetworkInfo) error {
	what, how := "address", ""
	if req.six {
		what, how = "IPv6 address", " --ip ADDRESS"
	}
	return fmt.Errorf("%s has no %s in network %s; reserve one with `berth reservation add %s --owner %s%s`", req.owner, what, n.Name, n.Name, req.owner, how)
}

// slotted lists reserved addresses by interface and slot, without those that are kept only until their owner has the
// new one, and owners whose address somebody else is still to choose.
func slotted(all []ipam.ReservationInfo) (addresses []netip.Addr) {
	all = slices.DeleteFunc(all, func(r ipam.ReservationInfo) bool { return r.Replaced || !r.Address.IsValid() })
	slices.SortFunc(all, func(a, b ipam.ReservationInfo) int {
		return cmp.Or(a.Interface-b.Interface, a.Slot-b.Slot, a.Address.Compare(b.Address))
	})
	for _, r := range all {
		addresses = append(addresses, r.Address)
	}
	return addresses
}

// heldBy lists the addresses of a network that somebody holds under a name, which can mean an owner, or under a MAC.
func heldBy(ctx context.Context, c *admin.Client, n *ipam.NetworkInfo, owner string) (addresses []netip.Addr, err error) {
	rules := &ipam.Network{Rules: n.OwnerRules}
	mac, _ := ipam.ParseMAC(owner)
	for _, sub := range n.Subnets {
		leases, err := c.Leases(ctx, ipam.LeaseFilter{Space: n.Space, Subnet: sub.CIDR})
		if err != nil {
			return nil, err
		}
		for _, l := range leases {
			if l.MAC == mac && mac != (ipam.MAC{}) || rules.Means(l.Name, owner) || l.SeenBy != nil && rules.Means(l.SeenBy.Container, owner) {
				addresses = append(addresses, l.Address)
			}
		}
	}
	return addresses, nil
}
