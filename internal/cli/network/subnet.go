package network

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// SubnetCommand is `berth subnet`.
func SubnetCommand(p *cli.Program) *cobra.Command {
	return cli.Group("subnet", "Subnets, their gateways and pools", subnetAddCommand(p), subnetListCommand(p),
		subnetModifyCommand(p),
		subnetRemoveCommand(p))
}

// subnetFlags are the flags of what add and modify have in common.
type subnetFlags struct {
	name, gateway string
	gatewayNote   string
	note          string
	dhcp          bool
}

func (s *subnetFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.gateway, "gateway", "", "the gateway, an `ADDRESS` of the subnet, or none")
	f.StringVar(&s.gatewayNote, "gateway-note", "", "a note on the gateway, `TEXT`; an empty one removes it")
	f.BoolVar(&s.dhcp, "dhcp", false, "record that a DHCP server serves it (one subnet per family)")
	f.StringVar(&s.name, "name", "", "its `NAME` in the network")
	f.StringVar(&s.note, "note", "", "a note, `TEXT`; an empty one removes it")
}

const subnetAddHelp = `Adds a subnet to a network, and prints its CIDR. /BITS takes the lowest free subnet of
that length inside --from. Without --pool Berth assigns no address until you add a pool with berth pool add.

` + gatewayNoteHelp

const gatewayNoteHelp = `--note describes the subnet, --gateway-note the gateway, in one line of at most 200
characters each. berth subnet ls --format wide shows them. A new gateway starts without a note.`

func subnetAddCommand(p *cli.Program) *cobra.Command {
	var flags subnetFlags
	var from string
	var pool bool
	cmd := cli.Change{
		Verb: cli.Verb{Use: "add NETWORK CIDR|/BITS", Short: "Add a subnet to a network", Long: subnetAddHelp,
			Refs: []cli.Refs{cli.NetworkRefs},
			Example: `  berth subnet add net1 198.51.100.0/24 --gateway 198.51.100.1 --dhcp --name old --pool
  berth subnet add net1 /26 --from 10.0.0.0/16
  berth subnet add net1 2001:db8:1::/64 --dry-run`},
		Edits: func(_ *cobra.Command, args []string) ([]ipam.Edit, error) {
			spec := ipam.SubnetSpec{Name: flags.name, GatewayNote: flags.gatewayNote, DHCP: flags.dhcp,
				Note: flags.note, Pool: pool}
			err := parsePlace(args[1], from, "--from CIDR", &spec)
			if err == nil && flags.name != "" {
				err = ipam.CheckName("subnet", flags.name)
			}
			if err == nil && flags.gateway != "" {
				spec.Gateway, err = parseGateway(flags.gateway)
			}
			return cli.One(&ipam.AddSubnet{Network: args[0], SubnetSpec: spec}, err)
		},
		Said: func(out ipam.Outcome) []string { return []string{out.Results[0].CIDR.String()} },
	}.Command(p)
	flags.flags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the larger `CIDR` that /BITS is taken from")
	cmd.Flags().BoolVar(&pool, "pool", false, "with a pool of the whole subnet")
	return cmd
}

const subnetModifyHelp = `Changes only what the flags name. SUBNET is a CIDR, a name or an id. The CIDR can
change only while no Docker network uses the subnet. The removed part must have no exclusions and no held or
reserved addresses; pools are trimmed.

--dhcp-parent sets the interface to the LAN's DHCP server of a dynamic network (docs/dhcp.md). None ends the
use of that server once nobody has an address from it.

` + gatewayNoteHelp

func subnetModifyCommand(p *cli.Program) *cobra.Command {
	var flags subnetFlags
	var cidr, parent, id string
	cmd := cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK SUBNET", Short: "Change the CIDR, gateway, DHCP flag, name or note of a subnet",
			Long: subnetModifyHelp, Refs: []cli.Refs{cli.NetworkRefs, cli.SubnetRefs},
			Example: `  berth subnet modify net1 lan --cidr 192.0.2.0/25 --gateway 192.0.2.2 --dhcp=false --name lan2
  berth subnet modify net1 192.0.2.0/24 --gateway none
  berth subnet modify net1 lan --gateway-note 'core router'
  berth subnet modify net1 lan --name ''
  berth subnet modify lan 192.168.1.0/24 --dhcp-parent eth1`},
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			modify, err := flags.modify(cmd, cidr)
			if err != nil {
				return nil, err
			}
			modify.Network, modify.Subnet = args[0], args[1]
			if modify.DHCPParent, modify.DHCPID, err = lanFlags(cmd, "dhcp-parent", parent, id); err != nil {
				return nil, err
			}
			return cli.One(modify, cli.Changed(cmd, "cidr", "gateway", "gateway-note", "dhcp", "dhcp-parent", "dhcp-id", "name",
				"note"))
		},
	}.Command(p)
	flags.flags(cmd)
	cmd.Flags().StringVar(&parent, "dhcp-parent", "", "have the DHCP server of its LAN choose the addresses, which "+
		"`PARENT`, an interface such as eth0, leads to (alpha=eth0,beta=eno1 where hosts have different ones), or none")
	cmd.Flags().StringVar(&id, "dhcp-id", "owner", "what identifies clients to that server: `owner|mac`")
	cli.Completes(cmd, "dhcp-id", cli.Words("owner", "mac"))
	cmd.Flags().StringVar(&cidr, "cidr", "", "the new `CIDR`")
	return cmd
}

// modify makes the edit of the flags that were given.
func (s *subnetFlags) modify(cmd *cobra.Command, cidr string) (*ipam.ModifySubnet, error) {
	m := &ipam.ModifySubnet{Name: given(cmd, "name", s.name), GatewayNote: given(cmd, "gateway-note", s.gatewayNote),
		Note: given(cmd, "note", s.note), DHCP: given(cmd, "dhcp", s.dhcp)}
	if s.name != "" {
		if err := ipam.CheckName("subnet", s.name); err != nil {
			return nil, err
		}
	}
	f := cmd.Flags()
	if f.Changed("cidr") {
		p, err := alloc.ParsePrefix(cidr)
		if err != nil {
			return nil, err
		}
		m.CIDR = &p
	}
	if f.Changed("gateway") {
		a, err := parseGateway(s.gateway)
		if err != nil {
			return nil, err
		}
		m.Gateway = &a
	}
	return m, nil
}

const subnetRemoveHelp = `Removes a subnet with its pools and exclusions, and prints what it was called.
SUBNET is a CIDR, a name or an id. It refuses a subnet with reserved addresses, or held ones other than the
gateway. You can pass several as berth subnet ls -q prints them: a CIDR of the space local, or NETWORK/CIDR.`

func subnetRemoveCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "rm [NETWORK] SUBNET...", Short: "Remove subnets", Long: subnetRemoveHelp,
			Refs: []cli.Refs{cli.NetworkRefs, cli.SubnetRefs}, Args: cli.SomePlaces("SUBNET"),
			Example: "  berth subnet rm net1 old\n  berth subnet rm net1 198.51.100.0/24 --dry-run\n" +
				"  berth subnet rm $(berth subnet ls net1 -q)"},
		Each: func(at cli.Place) (ipam.Edit, error) {
			return &ipam.RemoveSubnet{Network: at.Network, Subnet: at.Thing}, nil
		},
	}.Command(p)
}

const subnetListHelp = `Lists the subnets of one network or of all, by space and address: the network of each,
its gateway, and how much of its pools is in use. USE is the share of the pools that is held, reserved or in
quarantine. 100% means that no address is free, 0% that none is in use. FREE is how many are free.

Subnets of one space never overlap; those of different spaces may. Networks of this host use the space
"local", swarm managers "global". Other spaces are created when a network first names them (docker network
create --ipam-driver berth --ipam-opt space=NAME). --sort space shows the spaces, too.

--format wide adds the name, the pools, the counts of held and remembered addresses, and the gateway notes. In
a cluster it adds the hosts with a Docker network on the subnet.`

func subnetListCommand(p *cli.Program) *cobra.Command {
	var space string
	cmd := cli.Listing[ipam.SubnetInfo]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List subnets", Long: subnetListHelp,
			Refs: []cli.Refs{cli.NetworkRefs},
			Example: `  berth subnet ls
  berth subnet ls net1
  berth subnet ls --space global
  berth subnet ls --sort space
  berth subnet ls -q --no-trunc
  berth subnet ls --format 'table {{.CIDR}}\t{{.Free}}'`},
		Keys:    subnetKeys(),
		Columns: subnetColumns,
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]ipam.SubnetInfo, error) {
			return subnetsOf(ctx, c, cli.First(args), space)
		},
	}.Command(p)
	p.SpaceFlag(cmd, &space)
	return cmd
}

// subnetsOf lists the subnets of a network, or with the empty one of a space or of all.
func subnetsOf(ctx context.Context, c *client.Client, network, space string) ([]ipam.SubnetInfo, error) {
	if network == "" {
		return c.Subnets(ctx, space)
	}
	networks, err := cli.NetworksOf(ctx, c, network)
	if err != nil {
		return nil, err
	}
	if n := networks[0]; space != "" && space != n.Space { // the networks of one Docker network are in one space
		return nil, fmt.Errorf("the network %s is in the space %s, not in %s", n.Name, n.Space, space)
	}
	all, err := c.Subnets(ctx, networks[0].Space)
	return slices.DeleteFunc(all, func(s ipam.SubnetInfo) bool {
		return !slices.ContainsFunc(networks, func(n ipam.NetworkInfo) bool { return n.ID == s.NetworkID })
	}), err
}

func subnetKeys() []cli.Key[ipam.SubnetInfo] {
	return []cli.Key[ipam.SubnetInfo]{
		cli.ByNetwork(func(s *ipam.SubnetInfo) string { return s.Network },
			func(s *ipam.SubnetInfo) ipam.ID { return s.NetworkID }),
		cli.By(cli.KeySpace, func(s *ipam.SubnetInfo) string { return s.Space }),
		cli.ByAny(cli.KeyHost, func(s *ipam.SubnetInfo) []string { return s.Hosts }),
		cli.ByTag(func(s *ipam.SubnetInfo) map[string]string { return s.Tags }),
	}
}

func subnetColumns(out cli.Output) []cli.Column[ipam.SubnetInfo] {
	return []cli.Column[ipam.SubnetInfo]{
		cli.RefCol(func(s *ipam.SubnetInfo) string { return cli.Ref(s.Space, s.Network, s.CIDR.String()) }),
		cli.Col("SUBNET", func(s *ipam.SubnetInfo) string { return s.CIDR.String() }),
		cli.Col("NETWORK", func(s *ipam.SubnetInfo) string { return s.Network }),
		cli.Col("GATEWAY", func(s *ipam.SubnetInfo) string {
			if !s.Gateway.IsValid() {
				return ""
			}
			return s.Gateway.String()
		}).OrWide(func([]ipam.SubnetInfo) bool { return !out.Sorted("space") }),
		cli.UseCol(out, func(s *ipam.SubnetInfo) ipam.Use { return s.Use }),
		cli.Col("FREE", func(s *ipam.SubnetInfo) string { return s.Use.Free.Text() }),
		cli.WideCol("NAME", func(s *ipam.SubnetInfo) string { return s.Name }),
		cli.Col("SPACE", func(s *ipam.SubnetInfo) string { return s.Space }).
			OrWide(func([]ipam.SubnetInfo) bool { return out.Sorted("space") }),
		cli.WideCol("ID", func(s *ipam.SubnetInfo) string { return cli.ShortID(s.ID, out.NoTrunc) }),
		cli.WideCol("POOLS", func(s *ipam.SubnetInfo) string {
			var all []string
			for _, pool := range s.Pools {
				all = append(all, pool.Range.String())
			}
			return strings.Join(all, ",")
		}),
		cli.WideCol("HELD", func(s *ipam.SubnetInfo) string { return strconv.FormatUint(s.Use.Leased, 10) }),
		cli.WideCol("REMEMBERED", func(s *ipam.SubnetInfo) string { return strconv.Itoa(s.Remembered) }),
		cli.WideCol("CREATED", func(s *ipam.SubnetInfo) string { return cli.ShortTime(s.Created) }),
		cli.WideCol("HOSTS", func(s *ipam.SubnetInfo) string { return strings.Join(s.Hosts, ",") }),
		cli.WideCol("GATEWAY NOTE", func(s *ipam.SubnetInfo) string { return s.GatewayNote }),
		cli.WideCol("NOTE", func(s *ipam.SubnetInfo) string { return s.Note }),
	}
}
