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
	name, gateway, note string
	dhcp                bool
}

func (s *subnetFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.gateway, "gateway", "", "the gateway, an `ADDRESS` of the subnet, or none")
	f.StringVar(&s.note, "gateway-note", "", "what the gateway is, a `TEXT`; an empty one takes it away")
	f.BoolVar(&s.dhcp, "dhcp", false, "state that a DHCP server serves it, which one subnet of each family may; Berth "+
		"starts none")
	f.StringVar(&s.name, "name", "", "its `NAME` in the network")
}

const subnetAddHelp = `Adds a subnet to a network, and prints its CIDR. /BITS stands for a subnet of that
length: the lowest one inside --from that is still free. Without --pool no address of the subnet is chosen
until berth pool add says out of which range.

` + gatewayNoteHelp

const gatewayNoteHelp = `--gateway-note says what the gateway is, on one line of at most 200 characters:
berth subnet ls --wide shows it. It goes with its gateway: another one has no note unless it is given with it.`

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
			spec := ipam.SubnetSpec{Name: flags.name, GatewayNote: flags.note, DHCP: flags.dhcp, Pool: pool}
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
	cmd.Flags().StringVar(&from, "from", "", "the larger `CIDR` in which /BITS looks for its place")
	cmd.Flags().BoolVar(&pool, "pool", false, "with a pool of the whole subnet")
	return cmd
}

const subnetModifyHelp = `Changes what the flags say and leaves the rest. SUBNET is a CIDR, a name or an id.
The CIDR changes only while no Docker network is on the subnet. The part that is cut off must have no
exclusions, and no addresses that are held or reserved; pools are trimmed.

` + gatewayNoteHelp

func subnetModifyCommand(p *cli.Program) *cobra.Command {
	var flags subnetFlags
	var cidr string
	cmd := cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK SUBNET", Short: "Change the CIDR, gateway, DHCP flag or name of a subnet",
			Long: subnetModifyHelp, Refs: []cli.Refs{cli.NetworkRefs, cli.SubnetRefs},
			Example: `  berth subnet modify net1 lan --cidr 192.0.2.0/25 --gateway 192.0.2.2 --dhcp=false --name lan2
  berth subnet modify net1 192.0.2.0/24 --gateway none
  berth subnet modify net1 lan --gateway-note 'core router'
  berth subnet modify net1 lan --name ''`},
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			modify, err := flags.modify(cmd, cidr)
			if err != nil {
				return nil, err
			}
			modify.Network, modify.Subnet = args[0], args[1]
			return cli.One(modify, cli.Changed(cmd, "cidr", "gateway", "gateway-note", "dhcp", "name"))
		},
	}.Command(p)
	flags.flags(cmd)
	cmd.Flags().StringVar(&cidr, "cidr", "", "the new `CIDR`")
	return cmd
}

// modify makes the edit of the flags that were given.
func (s *subnetFlags) modify(cmd *cobra.Command, cidr string) (*ipam.ModifySubnet, error) {
	m := &ipam.ModifySubnet{}
	f := cmd.Flags()
	if f.Changed("name") {
		if s.name != "" {
			if err := ipam.CheckName("subnet", s.name); err != nil {
				return nil, err
			}
		}
		m.Name = &s.name
	}
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
	if f.Changed("gateway-note") {
		m.GatewayNote = &s.note
	}
	if f.Changed("dhcp") {
		m.DHCP = &s.dhcp
	}
	return m, nil
}

const subnetRemoveHelp = `Removes a subnet with its pools and exclusions, and prints what it was called.
SUBNET is a CIDR, a name or an id. A subnet with an address that is reserved, or held and not the gateway,
is refused.`

func subnetRemoveCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "rm NETWORK SUBNET", Short: "Remove a subnet", Long: subnetRemoveHelp,
			Refs:    []cli.Refs{cli.NetworkRefs, cli.SubnetRefs},
			Example: "  berth subnet rm net1 old\n  berth subnet rm net1 198.51.100.0/24 --dry-run"},
		Edits: func(_ *cobra.Command, args []string) ([]ipam.Edit, error) {
			return cli.One(&ipam.RemoveSubnet{Network: args[0], Subnet: args[1]}, nil)
		},
	}.Command(p)
}

const subnetListHelp = `Lists the subnets of one network or of all, by space and address: the network of each,
its gateway, the pools that automatic addresses come from, and how many addresses are held, remembered for
their last holder, and free in the pools. In a cluster, HOSTS are the hosts with a Docker network on it.
--wide also shows the notes of the gateways.`

func subnetListCommand(p *cli.Program) *cobra.Command {
	var space string
	var wide bool
	cmd := cli.Listing[ipam.SubnetInfo]{
		Verb: cli.Verb{Use: "ls [NETWORK]", Short: "List subnets", Long: subnetListHelp,
			Refs: []cli.Refs{cli.NetworkRefs},
			Example: `  berth subnet ls
  berth subnet ls net1
  berth subnet ls --space global
  berth subnet ls -q --no-trunc
  berth subnet ls --format 'table {{.CIDR}}\t{{.Free}}'`},
		Columns: func(out cli.Output) []cli.Column[ipam.SubnetInfo] { return subnetColumns(out, wide) },
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]ipam.SubnetInfo, error) {
			return subnetsOf(ctx, c, cli.First(args), space)
		},
	}.Command(p)
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "also the notes of the gateways")
	p.SpaceFlag(cmd, &space)
	return cmd
}

// subnetsOf lists the subnets of a network, or with the empty one of a space or of all.
func subnetsOf(ctx context.Context, c *client.Client, network, space string) ([]ipam.SubnetInfo, error) {
	if network == "" {
		return c.Subnets(ctx, space)
	}
	n, err := c.Network(ctx, network)
	if err != nil {
		return nil, err
	}
	if space != "" && space != n.Space {
		return nil, fmt.Errorf("the network %s is in the space %s, not in %s", n.Name, n.Space, space)
	}
	all, err := c.Subnets(ctx, n.Space)
	return slices.DeleteFunc(all, func(s ipam.SubnetInfo) bool { return s.Network != n.ID }), err
}

func subnetColumns(out cli.Output, wide bool) []cli.Column[ipam.SubnetInfo] {
	columns := []cli.Column[ipam.SubnetInfo]{
		cli.Col("SUBNET", func(s *ipam.SubnetInfo) string { return s.CIDR.String() }),
		cli.Col("NAME", func(s *ipam.SubnetInfo) string { return s.Name }),
		cli.Col("SPACE", func(s *ipam.SubnetInfo) string { return s.Space }),
		cli.Col("NETWORK", func(s *ipam.SubnetInfo) string { return s.NetworkName }),
		cli.Col("ID", func(s *ipam.SubnetInfo) string { return cli.ShortID(s.ID, out.NoTrunc) }).Names(),
		cli.Col("GATEWAY", func(s *ipam.SubnetInfo) string {
			if !s.Gateway.IsValid() {
				return ""
			}
			return s.Gateway.String()
		}),
		cli.Col("POOLS", func(s *ipam.SubnetInfo) string {
			var all []string
			for _, pool := range s.Pools {
				all = append(all, pool.Range.String())
			}
			return strings.Join(all, ",")
		}),
		cli.Col("HELD", func(s *ipam.SubnetInfo) string { return strconv.FormatUint(s.Held, 10) }),
		cli.Col("REMEMBERED", func(s *ipam.SubnetInfo) string { return strconv.Itoa(s.Remembered) }),
		cli.Col("FREE", func(s *ipam.SubnetInfo) string { return s.Free.String() }),
		cli.Col("CREATED", func(s *ipam.SubnetInfo) string { return cli.LocalTime(s.Created) }),
		cli.Col("HOSTS", func(s *ipam.SubnetInfo) string { return strings.Join(s.Hosts, ",") }).IfAny(),
	}
	if wide {
		columns = append(columns, cli.Col("GATEWAY NOTE", func(s *ipam.SubnetInfo) string { return s.GatewayNote }))
	}
	return columns
}
