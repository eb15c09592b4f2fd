// Package network has the commands for networks, subnets, pools and exclusions. It reads the usual notations: a range,
// a CIDR, /BITS out of a larger one, KEY=VALUE. It refuses an impossible value before it asks the daemon.
//
// Each noun has a file (network.go, subnet.go, pool.go, exclusion.go) with a command per verb. A command parses flags
// and arguments (parse.go, ownerrule.go) into an edit and passes it to package cli. show.go prints one network, with a
// map of its pools (poolmap.go). free.go lists free space, scan.go lists who answers on a network's LAN, and refs.go
// completes names.
package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// Command is `berth network`.
func Command(p *cli.Program) cli.Row {
	return cli.Group("network", "Networks: planned ones and Docker's", networkCreateCommand(),
		networkListCommand(),
		networkShowCommand(), networkModifyCommand(), networkRemoveCommand(), freeCommand())
}

const networkCreateHelp = `Creates a network with its subnets, and prints its name. Without --subnet it is a
layer 2 network; berth subnet add adds subnets later.

To use the network in Docker: docker network create --ipam-driver berth --ipam-opt network=NETWORK NAME.

--subnet CIDR is the short form: automatic addresses come from the whole subnet. With options, separated by
commas, they come only from the pools that you list. Without a pool Berth assigns none, and the command prints
how to add one. The options:
  gateway=ADDRESS      name=NAME      dhcp
  pool                 a pool of the whole subnet
  pool=NAME            the same, with a name
  pool=RANGE           a pool of A-B, A+N, a CIDR or one address (repeatable)
/BITS,from=CIDR is a subnet of that length: the lowest one inside CIDR that is still free. To describe a
gateway, use berth subnet modify --gateway-note.

--type sets who chooses addresses. In a manual network Berth chooses, unless the request names an address. In
a dynamic network another system chooses, and Berth records its choice. In a vip network people choose.
Addresses in a --static band are assigned only on request.

With --dhcp PARENT the LAN's DHCP server chooses the addresses of a dynamic network. berth edge asks
it through the interface PARENT, with the container's name. --dhcp-id mac is for servers that reserve by MAC.
See docs/dhcp.md.

With --headroom N each host of a cluster claims N addresses in advance, for each of its Docker networks. It
assigns them while the shared store is unreachable. They count as held, and berth lease ls shows them.` + ownerRuleHelp

// behindSubnet lists what docker network create has as flags, and what --subnet takes as options here.
var behindSubnet = map[string]string{
	"gateway":  "write it after the subnet: --subnet CIDR,gateway=ADDRESS",
	"ip-range": "write it after the subnet: --subnet CIDR,pool=RANGE",
	"pool":     "write it after the subnet: --subnet CIDR,pool=RANGE",
}

func networkCreateCommand() cli.Row {
	var flags networkFlags
	var subnets []string
	create := ipam.CreateNetwork{Space: ipam.LocalSpace, Type: networkTypes[0]}
	return cli.Change{
		Verb: cli.Verb{Use: "create NETWORK", Short: "Create a network", Long: networkCreateHelp,
			Example: `  berth network create flat --subnet 10.7.0.0/24
  berth network create net1 --subnet 192.0.2.0/24,gateway=192.0.2.1,name=lan --subnet 2001:db8::/64,pool --tag site=a
  berth network create net2 --subnet /26,from=10.0.0.0/16,pool --sticky off --quarantine 10m
  berth network create front --subnet 10.8.0.0/24 --static 10.8.0.8-10.8.0.15 --owner-rule 'web-*=owner:shop/web/*'
  berth network create vips --type vip --subnet 203.0.113.0/28
  berth network create lan --type dynamic --subnet 10.0.0.0/24,gateway=10.0.0.1 --dhcp eth0
  berth network create wire --mac-prefix aa:00:00 --link host=alpha,mode=bridged,link=br0`,
			Instead: behindSubnet,
			Flags: append(flags.creating(&create),
				cli.Flag(&subnets, "subnet", "a subnet: `CIDR` or CIDR,OPTION,... (repeatable)"),
				cli.Flag(&create.Space, "space", "the address space `NAME`").Of(cli.SpaceRefs),
				cli.Flag(&create.Type, "type",
					"who chooses its addresses: `manual`, dynamic or vip").Words(networkTypes...))},
		Edits: func(args []string) ([]ipam.Edit, error) {
			if _, err := ipam.ParseNetworkType(create.Type); err != nil {
				return nil, fmt.Errorf("--type: %w", err)
			}
			create.Name = args[0]
			return flags.create(&create, subnets)
		},
		Noted: func(r *cli.Run, out ipam.Outcome) {
			if create.Type == networkTypes[0] {
				notePoolless(r, create.Name, poolless(out, create.Subnets...))
			}
		},
	}
}

// poolless returns the new subnets of an outcome that have no pool. specs are their forms, in order.
func poolless(out ipam.Outcome, specs ...ipam.SubnetSpec) (bare []netip.Prefix) {
	for i := range out.Changes {
		switch e := &out.Changes[i]; e.Verb {
		case ipam.SubnetCreated:
			if len(specs) == 0 {
				continue
			}
			if !specs[0].Pool && !specs[0].FromDHCP() {
				bare = append(bare, e.Subnet)
			}
			specs = specs[1:]
		case ipam.PoolAdded:
			bare = slices.DeleteFunc(bare, func(p netip.Prefix) bool { return p == e.Subnet })
		}
	}
	return bare
}

// notePoolless notes that a container gets no address from subnets without a pool, and the command that adds one.
func notePoolless(r *cli.Run, network string, bare []netip.Prefix) {
	for _, cidr := range bare {
		r.Note("the subnet %s has no pool, so Berth assigns no address from it; to add a pool, run: berth pool add %s "+
			"--subnet %s", cidr, network, cidr)
	}
}

const networkModifyHelp = `Changes only what the flags name. Addresses stay with their holders. After a new
--name, Docker may still use the former name in --ipam-opt network=NAME until another network gets it; the
command lists the Docker networks that were created with it. A network of
Docker becomes a planned one and stays when Docker leaves it. --static replaces all bands. --owner-rule
replaces the rule of the same pattern or comes last. --dhcp is for subnets with a DHCP server; --dhcp none
ends the use of that server once nobody has an address from it. --put-back overrides berth serve --put-back for
this network; default removes the override.` + ownerRuleHelp

func networkModifyCommand() cli.Row {
	var flags networkFlags
	var gone removals
	var modify ipam.ModifyNetwork
	rows := append(cli.Flags{
		cli.Flag(&modify.Name, "name", "the new `NAME`"),
		cli.Flag(&gone.tags, "tag-rm", "the `KEY` of a tag to remove (repeatable)"),
		cli.Flag(&gone.links, "link-rm", "the `HOST` of a link to remove (repeatable)"),
		cli.Flag(&gone.rules, "owner-rule-rm", "the `PATTERN` of a rule to remove (repeatable)").Of(ruleRefs),
		cli.Flag(&modify.Elastic, "elastic", "whether elastic addresses are mapped to its containers: `off|on|auto`; "+
			"auto: each also has a system address").Words("off", "on", "auto").Default("off"),
	}, flags.modifying(&modify)...)
	return cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK", Short: "Change a network's name, tags, links and policy",
			Long: networkModifyHelp,
			Example: `  berth network modify net1 --name front
  berth network modify net1 --tag site=b --tag-rm rack
  berth network modify net1 --static 10.8.0.8-10.8.0.15 --static 10.8.0.32/28
  berth network modify net1 --owner-rule 'web-*=pool:web' --owner-rule-rm 'db-*'
  berth network modify lan --dhcp eth1
  berth network modify net1 --put-back all
  berth network modify net1 --sticky off --quarantine 10m --dry-run`,
			Flags: rows, SomeOf: rows.Names()},
		Edit: func(args []string) (ipam.Edit, error) {
			modify.Network = args[0]
			err := flags.modify(&modify, gone)
			if err == nil && modify.Name != nil {
				err = ipam.CheckNewName("network", *modify.Name)
			}
			if err == nil {
				_, err = parsed(modify.Elastic, ipam.ParseElasticMode)
			}
			return &modify, err
		},
		Said: func(ipam.Outcome) []string { return []string{given(modify.Name, modify.Network)} },
	}
}

const networkRemoveHelp = `Removes unused networks, and prints their names. A network is unused if it has no
Docker network and holds no address but a gateway. For networks with reservations use --force; --dry-run lists
those reservations.`

func networkRemoveCommand() cli.Row {
	var force bool
	return cli.Change{
		Verb: cli.Verb{Use: "rm NETWORK...", Short: "Remove networks", Long: networkRemoveHelp,
			Any: cli.NetworkRefs,
			Example: `  berth network rm net1
  berth network rm net1 net2 --force
  berth network rm net1 --force --dry-run`,
			Flags: cli.Flags{cli.Flag(&force, "force", "remove networks with reservations, too")}},
		Make: func(e *cli.Editor) error {
			return cli.Each(e.Args, func(network string) error {
				err := e.Make(cli.Echo(network), &ipam.RemoveNetwork{Network: network, Force: force})
				if force && e.DryRun && e.Format == "text" {
					err = errors.Join(err, showEnding(e.Run, network))
				}
				return err
			})
		},
	}
}

// showEnding prints the reservations that end with a network.
func showEnding(r *cli.Run, network string) error {
	all, err := r.Reservations(r, network, "")
	if err != nil {
		return err
	}
	var lines []string
	for _, one := range all {
		address := one.Address.String()
		if !one.Address.IsValid() {
			address = "-"
		}
		lines = append(lines, fmt.Sprintf("%-18s  %-24s  owner=%s", ipam.ReservationRemoved, one.Network+" "+address,
			one.Owner))
	}
	return r.Say(lines...)
}
