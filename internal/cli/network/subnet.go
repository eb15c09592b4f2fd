package network

import (
	"fmt"
	"slices"
	"strings"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// SubnetCommand is `berth subnet`.
func SubnetCommand() cli.Row {
	return cli.Group("subnet", "Subnets, their gateways and pools", subnetAddCommand(), subnetListCommand(),
		subnetModifyCommand(),
		subnetRemoveCommand())
}

const subnetAddHelp = `Adds a subnet to a network, and prints its CIDR. /BITS takes the lowest free subnet of
that length inside --from. Without --pool Berth assigns no address until you add a pool with berth pool add.

` + gatewayNoteHelp

const gatewayNoteHelp = `--note describes the subnet, --gateway-note the gateway, in one line of at most 200
characters each. berth subnet ls --format wide shows them. A new gateway starts without a note.`

func subnetAddCommand() cli.Row {
	var add ipam.AddSubnet
	var from, gateway string
	spec := &add.SubnetSpec
	return cli.Change{
		Verb: cli.Verb{Use: "add NETWORK CIDR|/BITS", Short: "Add a subnet to a network", Long: subnetAddHelp,
			Example: `  berth subnet add net1 198.51.100.0/24 --gateway 198.51.100.1 --dhcp --name old --pool
  berth subnet add net1 /26 --from 10.0.0.0/16
  berth subnet add net1 2001:db8:1::/64 --dry-run`,
			Flags: append(subnetFlags(&gateway, &spec.GatewayNote, &spec.DHCP, &spec.Name, &spec.Note),
				cli.Flag(&from, "from", "the larger `CIDR` inside which Berth chooses /BITS"),
				cli.Flag(&spec.Pool, "pool", "add a pool of the whole subnet").
					Instead("--pool adds a pool of the whole subnet; for a range use berth pool add"))},
		Edit: func(args []string) (ipam.Edit, error) {
			add.Network = args[0]
			err := parsePlace(args[1], from, "--from CIDR", spec)
			if err == nil && spec.Name != "" {
				err = ipam.CheckNewName("subnet", spec.Name)
			}
			if err == nil && gateway != "" {
				spec.Gateway, err = parseGateway(gateway)
			}
			return &add, err
		},
		Noted: func(r *cli.Run, out ipam.Outcome) {
			n, err := r.Network(r, add.Network)
			if err == nil && n.Type == networkTypes[0] {
				notePoolless(r, n.Name, poolless(out, add.SubnetSpec))
			}
		},
		Said: sayCIDR,
	}
}

// subnetFlags are the common flags of add and modify. The variables of modify are pointers, which stay nil if the flag
// is not given.
func subnetFlags(gateway, gatewayNote, dhcp, name, note any) cli.Flags {
	return cli.Flags{
		cli.Flag(gateway, "gateway", "the gateway, an `ADDRESS` of the subnet, or none"),
		cli.Flag(gatewayNote, "gateway-note", "a note on the gateway, `TEXT`; an empty TEXT removes the note"),
		cli.Flag(dhcp, "dhcp", "record that a DHCP server serves the subnet (one subnet per family)"),
		cli.Flag(name, "name", "the subnet's `NAME` in the network"),
		noteFlag(note),
	}
}

const subnetModifyHelp = `Changes only what the flags name. SUBNET is a CIDR, a name or an id. The CIDR can
change only while no Docker network uses the subnet. The removed part must have no exclusions and no held or
reserved addresses; pools are trimmed.

--dhcp-parent sets the interface to the LAN's DHCP server of a dynamic network (docs/dhcp.md). --dhcp-parent
none ends the use of that server once nobody has an address from it.

` + gatewayNoteHelp

func subnetModifyCommand() cli.Row {
	var modify ipam.ModifySubnet
	var cidr, gateway, id *string
	return cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK SUBNET", Short: "Change the CIDR, gateway, DHCP flag, name or note of a subnet",
			Long: subnetModifyHelp, Refs: []cli.Refs{cli.NetworkRefs, cli.SubnetRefs},
			Example: `  berth subnet modify net1 lan --cidr 192.0.2.0/25 --gateway 192.0.2.2 --dhcp=false --name lan2
  berth subnet modify net1 192.0.2.0/24 --gateway none
  berth subnet modify net1 lan --gateway-note 'core router'
  berth subnet modify net1 lan --name ''
  berth subnet modify lan 192.168.1.0/24 --dhcp-parent eth1`,
			Flags: append(subnetFlags(&gateway, &modify.GatewayNote, &modify.DHCP, &modify.Name, &modify.Note),
				cli.Flag(&modify.DHCPParent, "dhcp-parent",
					"have the LAN's DHCP server choose the addresses; Berth reaches it through the "+
						"interface `PARENT`, such as eth0 (alpha=eth0,beta=eno1 where hosts have different ones), or "+
						"none"),
				dhcpIDFlag(&id),
				cli.Flag(&cidr, "cidr", "the new `CIDR`")),
			SomeOf: []string{"cidr", "gateway", "gateway-note", "dhcp", "dhcp-parent", "dhcp-id", "name", "note"}},
		Edit: func(args []string) (_ ipam.Edit, err error) {
			if modify.Name != nil && *modify.Name != "" {
				if err := ipam.CheckNewName("subnet", *modify.Name); err != nil {
					return nil, err
				}
			}
			if modify.CIDR, err = parsed(cidr, alloc.ParsePrefix); err != nil {
				return nil, err
			}
			if modify.Gateway, err = parsed(gateway, parseGateway); err != nil {
				return nil, err
			}
			modify.Network, modify.Subnet = args[0], args[1]
			modify.DHCPID, err = lanID(modify.DHCPParent, id)
			return &modify, err
		},
		Said: func(ipam.Outcome) []string {
			called := given(modify.Name, modify.Subnet)
			if _, err := alloc.ParsePrefix(called); err == nil && modify.CIDR != nil {
				called = modify.CIDR.String()
			}
			return []string{called}
		},
	}
}

const subnetRemoveHelp = `Removes a subnet with its pools and exclusions, and prints SUBNET. SUBNET is a CIDR, a
name or an id. Berth refuses to remove a subnet with reserved addresses, or with held addresses other than the
gateway. You can pass several subnets as berth subnet ls -q prints them: a CIDR of the space local, or
NETWORK/CIDR.`

func subnetRemoveCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "rm [NETWORK] SUBNET...", Short: "Remove subnets", Long: subnetRemoveHelp,
			Refs: []cli.Refs{cli.NetworkRefs, cli.SubnetRefs},
			Example: `  berth subnet rm net1 old
  berth subnet rm net1 198.51.100.0/24 --dry-run
  berth subnet rm $(berth subnet ls net1 -q)`},
		Each: func(at cli.Place) (ipam.Edit, error) {
			return &ipam.RemoveSubnet{Network: at.Network, Subnet: at.Thing}, nil
		},
	}
}

const subnetListHelp = `Lists the subnets of one network or of all, by space and address: the network of each,
its gateway, and how much of its pools is in use. USE is the share of the pools that is held, reserved or in
quarantine. 100% means that no address is free, 0% that none is in use. FREE is how many are free.

Subnets of one space never overlap; those of different spaces may. Networks of this host use the space
"local", swarm managers "global". Other spaces are created when a network first names them (docker network
create --ipam-driver berth --ipam-opt space=NAME). --sort space shows the spaces, too.

--format wide adds the name, the pools, the counts of held and remembered addresses, and the gateway notes. In
a cluster it adds the hosts with a Docker network on the subnet.`

func subnetListCommand() cli.Row {
	var space string
	return cli.Listing[ipam.SubnetInfo]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List subnets", Long: subnetListHelp,
			Example: `  berth subnet ls
  berth subnet ls net1
  berth subnet ls --space global
  berth subnet ls --sort space
  berth subnet ls -q --no-trunc
  berth subnet ls --format 'table {{.CIDR}}\t{{.Free}}'`,
			Flags: cli.Flags{cli.SpaceFlag(&space)}},
		Keys:      cli.Fields{"network", "space", "host=Hosts", "tag"},
		ColumnsOf: subnetColumns,
		Fetch: func(r *cli.Run) ([]ipam.SubnetInfo, error) {
			return subnetsOf(r, r.First(), space)
		},
	}
}

// subnetsOf lists the subnets of a network. Without a network it lists those of a space, or all.
func subnetsOf(r *cli.Run, network, space string) ([]ipam.SubnetInfo, error) {
	if network == "" {
		return r.Subnets(r, space)
	}
	networks, err := r.NetworksOf(network)
	if err != nil {
		return nil, err
	}
	if n := networks[0]; space != "" && space != n.Space { // all networks of one Docker network are in one space
		return nil, fmt.Errorf("the network %s is in the space %s, not in %s", n.Name, n.Space, space)
	}
	all, err := r.Subnets(r, networks[0].Space)
	return slices.DeleteFunc(all, func(s ipam.SubnetInfo) bool {
		return !slices.ContainsFunc(networks, func(n ipam.NetworkInfo) bool { return n.ID == s.NetworkID })
	}), err
}

func subnetColumns(out cli.Output) cli.Fields {
	bySpace := func([]ipam.SubnetInfo) bool { return out.Sorted("space") }
	return cli.Fields{
		"CIDR,ref", "SUBNET=CIDR", "Network",
		cli.Field[ipam.SubnetInfo]("Gateway").OrWide(func(all []ipam.SubnetInfo) bool { return !bySpace(all) }),
		cli.UseCol(out, func(s *ipam.SubnetInfo) ipam.Use { return s.Use }), "FREE=Use.Free", "Name,wide",
		cli.Field[ipam.SubnetInfo]("Space").OrWide(bySpace),
		cli.Col("ID", func(s *ipam.SubnetInfo) string { return cli.ShortID(s.ID, out.NoTrunc) }).Wide(),
		cli.Col("POOLS", func(s *ipam.SubnetInfo) string {
			var all []string
			for _, pool := range s.Pools {
				all = append(all, pool.Range.String())
			}
			return strings.Join(all, ",")
		}).Wide(),
		"HELD=Use.Leased,wide", "Remembered,wide", "Created,wide", "Hosts,wide", "GatewayNote,wide", "Note,wide",
	}
}
