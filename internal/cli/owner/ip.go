package owner

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const ipHelp = `Prints the address that is reserved for an owner in a network, and nothing else, so that a
command can take it:

  docker run --network front --ip "$(berth ip web --network front)" IMAGE

--network can be left out where the owner has addresses on one network only. Of several addresses it
prints the first IPv4 one, or the first IPv6 one if there is no IPv4 one. -6 asks for the first IPv6 one,
--all for all of them, one a line.

--env prints the variables that describe all addresses of the owner there, KEY=VALUE, one a line, as hooks get
them (berth serve --hook). For address i of interface n these are INSTANCE_NICn_IP:i and, of its subnet,
INSTANCE_NICn_NETWORK_SUBNET:i, _GATEWAY:i and _DHCP:i. Each also comes with _i instead of :i
(INSTANCE_NIC0_IP_0), for shells that drop names with a colon. The one of the first address also comes
without either.

OWNER is a path, a MAC, or the name of a container, which means the owner that a rule of the network, or
Compose's naming, makes of it. For an owner with nothing reserved it is the address that it holds under
its name. If there is none, the exit code is 1.`

// ipRequest is what the command line of ip says.
type ipRequest struct {
	owner, network string
	six, all, env  bool
}

// IPCommand is `berth ip`.
func IPCommand(p *cli.Program) cli.Row {
	var req ipRequest
	return cli.Verb{Use: "ip OWNER [--network NETWORK]", Short: "Print the address of an owner", Long: ipHelp,
		Example: `  berth ip web
  berth ip shop/web/1 --network front
  berth ip web --network front -6
  berth ip web --network front --all
  berth ip web --network front --env`,
		Refs: []cli.Refs{func(ctx context.Context, c *client.Client, _ string) ([]string, error) {
			return cli.AnyOwners(ctx, c, req.network)
		}},
		Flags: cli.Flags{
			cli.Flag(&req.network, "network",
				"the `NETWORK`, by name or id (default: the only one on which OWNER is)").
				Of(cli.NetworkRefs).Filled(),
			cli.Flag(&req.six, "ipv6", "its IPv6 address").Short("6"),
			cli.Flag(&req.all, "all", "all that it has, one a line; with -6 those of IPv6"),
			cli.Flag(&req.env, "env", "the variables that describe its addresses, as hooks get them")},
		Run: func(cmd *cobra.Command, args []string) error {
			req.owner = args[0]
			return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
				if req.env {
					return req.variables(ctx, c, p)
				}
				addresses, err := req.find(ctx, c)
				if err != nil {
					return err
				}
				if !req.all {
					addresses = addresses[:1]
				}
				for _, a := range addresses {
					if _, err := fmt.Fprintln(p.Out, a); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Apart: [][]string{{"env", "all"}, {"env", "ipv6"}}}
}

// variables prints those of the owner's addresses.
func (req *ipRequest) variables(ctx context.Context, c *client.Client, p *cli.Program) error {
	network := req.network
	if network == "" {
		n, err := onlyNetwork(ctx, c, req.owner)
		if err != nil {
			return err
		}
		network = n.ID.String()
	}
	all, err := c.Environment(ctx, network, req.owner)
	if err != nil {
		return err
	}
	return p.Say(all...)
}

// find returns the addresses that were asked for, at least one, in their order.
func (req *ipRequest) find(ctx context.Context, c *client.Client) ([]netip.Addr, error) {
	var n ipam.NetworkInfo
	var err error
	if req.network == "" {
		n, err = onlyNetwork(ctx, c, req.owner)
	} else {
		n, err = c.Network(ctx, req.network)
	}
	if err != nil {
		return nil, err
	}
	found, err := req.on(ctx, c, &n)
	if err == nil && len(found) == 0 {
		err = req.none(&n)
	}
	return found, err
}

// on returns what was asked for of one network.
func (req *ipRequest) on(ctx context.Context, c *client.Client, n *ipam.NetworkInfo) ([]netip.Addr, error) {
	rules := &ipam.Network{Name: n.Name, Rules: n.OwnerRules}
	for owner := range rules.Owners(req.owner) {
		reserved, err := c.Reservations(ctx, n.ID.String(), owner)
		if err != nil {
			return nil, err
		}
		if found := req.choose(slotted(reserved)); len(found) > 0 {
			return found, nil
		}
	}
	held, err := heldBy(ctx, c, n, req.owner)
	return req.choose(held), err
}

// onlyNetwork is the one network on which an owner has an address.
func onlyNetwork(ctx context.Context, c *client.Client, owner string) (ipam.NetworkInfo, error) {
	all, err := c.Networks(ctx, "")
	if err != nil {
		return ipam.NetworkInfo{}, err
	}
	req := ipRequest{owner: owner}
	var on []ipam.NetworkInfo
	var names []string
	for i := range all {
		found, err := req.on(ctx, c, &all[i])
		if err != nil {
			return ipam.NetworkInfo{}, err
		}
		if len(found) > 0 {
			on, names = append(on, all[i]), append(names, all[i].Name)
		}
	}
	switch len(on) {
	case 0:
		return ipam.NetworkInfo{}, fmt.Errorf("%s has no address in any network; reserve one with `berth reservation "+
			"add NETWORK --owner %s`", owner, owner)
	case 1:
		return on[0], nil
	}
	return ipam.NetworkInfo{}, fmt.Errorf("%s has addresses in %d networks (%s); name the one that is meant", owner,
		len(on), strings.Join(names, ", "))
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
	return fmt.Errorf("%s has no %s in network %s; reserve one with `berth reservation add %s --owner %s%s`", req.owner,
		what, n.Name, n.Name, req.owner, how)
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
func heldBy(ctx context.Context, c *client.Client, n *ipam.NetworkInfo,
	owner string) (addresses []netip.Addr, err error) {
	rules := &ipam.Network{Rules: n.OwnerRules}
	mac, _ := ipam.ParseMAC(owner)
	for _, sub := range n.Subnets {
		leases, err := c.Leases(ctx, ipam.LeaseFilter{Space: n.Space, Subnet: sub.CIDR})
		if err != nil {
			return nil, err
		}
		for _, l := range leases {
			byMAC := mac != ipam.MAC{} && l.MAC == mac
			seen := l.SeenBy != nil && rules.Means(l.SeenBy.Container, owner)
			if byMAC || seen || rules.Means(l.Name, owner) {
				addresses = append(addresses, l.Address)
			}
		}
	}
	return addresses, nil
}
