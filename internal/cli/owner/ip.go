package owner

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const ipHelp = `Prints the address that is reserved for an owner in a network, and nothing else, so that another
command can use it:

  docker run --name web --network front --ip "$(berth ip web --network front)" IMAGE

You can leave out --network if the owner has addresses on one network only. Of several addresses the command
prints the first IPv4 one, or the first IPv6 one if there is no IPv4 one. -6 asks for the first IPv6 one,
--all for all addresses, one per line.

--env prints the variables that describe all addresses of the owner there, KEY=VALUE, one per line, as hooks get
them (berth serve --hook). For address i of interface n these are INSTANCE_NICn_IP:i and, of its subnet,
INSTANCE_NICn_NETWORK_SUBNET:i, _GATEWAY:i and _DHCP:i. Each also comes with _i instead of :i
(INSTANCE_NIC0_IP_0), for shells that drop names with a colon. The variables of the first address
also come without an index.

OWNER is a path, a MAC, or the name of a container. The network's owner rules or Compose's naming turn that
name into an owner. If the owner has no reservation, the command prints the address that it holds under its
name. If there is none, the exit code is 1.`

// ipRequest holds the argument and the flags of ip.
type ipRequest struct {
	owner, network string
	six, all, env  bool
}

// IPCommand is `berth ip`.
func IPCommand() cli.Row {
	var req ipRequest
	return cli.Verb{Use: "ip OWNER [--network NETWORK]", Short: "Print the address of an owner", Long: ipHelp,
		Example: `  berth ip web
  berth ip shop/web/1 --network front
  berth ip web --network front -6
  berth ip web --network front --all
  berth ip web --network front --env`,
		Refs: []cli.Refs{func(r *cli.Run, _ string) ([]string, error) {
			return cli.AnyOwners(r, req.network)
		}},
		Flags: cli.Flags{
			cli.Flag(&req.network, "network",
				"the `NETWORK`, by name or id (default: the only network with an address of OWNER)").
				Of(cli.NetworkRefs).Filled(),
			cli.Flag(&req.six, "ipv6", "print the IPv6 address").Short("6"),
			cli.Flag(&req.all, "all", "print all addresses, one per line; with -6 all IPv6 addresses"),
			cli.Flag(&req.env, "env", "print the variables that describe its addresses, as hooks get them")},
		Run: func(r *cli.Run) error {
			req.owner = r.Args[0]
			if err := r.Ask(); err != nil {
				return err
			}
			if req.env {
				return req.variables(r)
			}
			addresses, err := req.find(r)
			if err != nil {
				return err
			}
			if !req.all {
				addresses = addresses[:1]
			}
			for _, a := range addresses {
				if _, err := fmt.Fprintln(r.Out, a); err != nil {
					return err
				}
			}
			return nil
		},
		Apart: [][]string{{"env", "all"}, {"env", "ipv6"}}}
}

// variables prints the variables of the owner's addresses.
func (req *ipRequest) variables(r *cli.Run) error {
	network := req.network
	if network == "" {
		n, err := onlyNetwork(r, req.owner)
		if err != nil {
			return err
		}
		network = n.ID.String()
	}
	all, err := r.Environment(r, network, req.owner)
	if err != nil {
		return err
	}
	return r.Say(all...)
}

// find returns the requested addresses in their order, at least one.
func (req *ipRequest) find(r *cli.Run) ([]netip.Addr, error) {
	var n ipam.NetworkInfo
	var err error
	if req.network == "" {
		n, err = onlyNetwork(r, req.owner)
	} else {
		n, err = r.Network(r, req.network)
	}
	if err != nil {
		return nil, err
	}
	found, err := req.on(r, &n)
	if err == nil && len(found) == 0 {
		err = req.none(&n)
	}
	return found, err
}

// on returns the requested addresses on one network.
func (req *ipRequest) on(r *cli.Run, n *ipam.NetworkInfo) ([]netip.Addr, error) {
	rules := &ipam.Network{Name: n.Name, Rules: n.OwnerRules}
	for owner := range rules.Owners(req.owner) {
		reserved, err := r.Reservations(r, n.ID.String(), owner)
		if err != nil {
			return nil, err
		}
		if found := req.choose(slotted(reserved)); len(found) > 0 {
			return found, nil
		}
	}
	held, err := heldBy(r, n, req.owner)
	return req.choose(held), err
}

// onlyNetwork returns the only network on which an owner has an address. It returns an error if there are none or
// several.
func onlyNetwork(r *cli.Run, owner string) (ipam.NetworkInfo, error) {
	all, err := r.Networks(r, "")
	if err != nil {
		return ipam.NetworkInfo{}, err
	}
	req := ipRequest{owner: owner}
	var on []ipam.NetworkInfo
	var names []string
	for i := range all {
		found, err := req.on(r, &all[i])
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
	return ipam.NetworkInfo{}, fmt.Errorf("%s has addresses in %d networks (%s); name one with --network", owner,
		len(on), strings.Join(names, ", "))
}

// choose sorts IPv4 before IPv6. With -6 it returns only IPv6.
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

// slotted returns reserved addresses by interface and slot. It leaves out replaced ones, which end when their owner has
// its new address, and owners that have no address yet.
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

// heldBy lists the held addresses of a network whose name can mean the owner, or whose MAC is the owner.
func heldBy(r *cli.Run, n *ipam.NetworkInfo, owner string) (addresses []netip.Addr, err error) {
	rules := &ipam.Network{Rules: n.OwnerRules}
	mac, _ := ipam.ParseMAC(owner)
	for _, sub := range n.Subnets {
		leases, err := r.Leases(r, ipam.LeaseFilter{Space: n.Space, Subnet: sub.CIDR})
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
