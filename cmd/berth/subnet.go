package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin"
	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) subnetCommand() *cobra.Command {
	return group("subnet", "Subnets, their gateways and pools", p.subnetAddCommand(), p.subnetListCommand(), p.subnetModifyCommand(),
		p.subnetRemoveCommand())
}

// subnetFlags are the flags of what add and modify have in common.
type subnetFlags struct {
	name, gateway string
	dhcp          bool
}

func (s *subnetFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.gateway, "gateway", "", "the gateway, an `ADDRESS` of the subnet, or none")
	f.BoolVar(&s.dhcp, "dhcp", false, "state that a DHCP server serves it: one subnet of a family and network; Berth starts none")
	f.StringVar(&s.name, "name", "", "its `NAME` in the network")
}

const subnetAddHelp = `Adds a subnet to a network, and prints its CIDR. /BITS takes the lowest free prefix of that length out of the one that
--from names. Without --pool no address of it is given automatically, until berth pool add says which.`

func (p *program) subnetAddCommand() *cobra.Command {
	var flags subnetFlags
	var edit editing
	var from string
	var pool bool
	cmd := &cobra.Command{Use: "add NETWORK CIDR|/BITS", Short: "Add a subnet to a network", Long: subnetAddHelp,
		Args: takes("NETWORK", "CIDR|/BITS"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth subnet add net1 198.51.100.0/24 --gateway 198.51.100.1 --dhcp --name old --pool
  berth subnet add net1 /26 --from 10.0.0.0/16
  berth subnet add net1 2001:db8:1::/64 --dry-run`}
	flags.flags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the larger `CIDR` that /BITS is taken out of")
	cmd.Flags().BoolVar(&pool, "pool", false, "with a pool of the whole subnet")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec := ipam.SubnetSpec{Name: flags.name, DHCP: flags.dhcp, Pool: pool}
		err := parsePlace(args[1], from, "--from CIDR", &spec)
		if err == nil && flags.name != "" {
			err = ipam.CheckName("subnet", flags.name)
		}
		if err == nil && flags.gateway != "" {
			spec.Gateway, err = parseGateway(flags.gateway)
		}
		if err != nil {
			return usage(cmd, err)
		}
		return p.edit(cmd, edit, func(out ipam.Outcome) []string { return []string{out.Results[0].CIDR.String()} },
			&ipam.AddSubnet{Network: args[0], SubnetSpec: spec})
	}
	return cmd
}

const subnetModifyHelp = `Changes what the flags say and leaves the rest. SUBNET is a CIDR, a name or an id. A CIDR changes only while no Docker
network is attached; what is cut off must be free of addresses and exclusions, and the pools are trimmed.`

func (p *program) subnetModifyCommand() *cobra.Command {
	var flags subnetFlags
	var edit editing
	var cidr string
	cmd := &cobra.Command{Use: "modify NETWORK SUBNET", Short: "Change the CIDR, gateway, DHCP flag or name of a subnet", Long: subnetModifyHelp,
		Args: takes("NETWORK", "SUBNET"), ValidArgsFunction: p.completeRefs(networkRefs, subnetRefs),
		Example: `  berth subnet modify net1 lan --cidr 192.0.2.0/25 --gateway 192.0.2.2 --dhcp=false --name lan2
  berth subnet modify net1 192.0.2.0/24 --gateway none
  berth subnet modify net1 lan --name ''`}
	flags.flags(cmd)
	cmd.Flags().StringVar(&cidr, "cidr", "", "the new `CIDR`")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		modify, err := flags.modify(cmd, cidr)
		if err != nil {
			return usage(cmd, err)
		}
		if err := changed(cmd, "cidr", "gateway", "dhcp", "name"); err != nil {
			return err
		}
		modify.Network, modify.Subnet = args[0], args[1]
		return p.edit(cmd, edit, echo(args[1]), modify)
	}
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
	if f.Changed("dhcp") {
		m.DHCP = &s.dhcp
	}
	return m, nil
}

const subnetRemoveHelp = `Removes a subnet with its pools and exclusions, and prints what it was called. SUBNET is a CIDR, a name or an id. One of which an
address is in use or reserved is refused.`

func (p *program) subnetRemoveCommand() *cobra.Command {
	var edit editing
	cmd := &cobra.Command{Use: "rm NETWORK SUBNET", Aliases: []string{"remove"}, Short: "Remove a subnet", Long: subnetRemoveHelp,
		Args: takes("NETWORK", "SUBNET"), ValidArgsFunction: p.completeRefs(networkRefs, subnetRefs),
		Example: "  berth subnet rm net1 old\n  berth subnet rm net1 198.51.100.0/24 --dry-run"}
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.edit(cmd, edit, echo(args[1]), &ipam.RemoveSubnet{Network: args[0], Subnet: args[1]})
	}
	return cmd
}

const subnetListHelp = `Lists the subnets, of one network or of all, by space and address: the network that each belongs to, its gateway,
the pools that automatic addresses come from, and how many addresses are held, remembered for their last
holder, and free in the pools. In a cluster, HOSTS are those with a Docker network on it.`

func (p *program) subnetListCommand() *cobra.Command {
	var out output
	var space string
	cmd := &cobra.Command{Use: "ls [NETWORK]", Aliases: []string{"list"}, Short: "List subnets", Long: subnetListHelp, Args: mayTake("NETWORK"),
		ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth subnet ls
  berth subnet ls net1
  berth subnet ls --space global
  berth subnet ls -q --no-trunc
  berth subnet ls --format 'table {{.CIDR}}\t{{.Free}}'`}
	out.flags(cmd)
	p.spaceFlag(cmd, &space)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hosts := column[ipam.SubnetInfo]{"HOSTS", func(s *ipam.SubnetInfo) string { return strings.Join(s.Hosts, ",") }}
		return listWith(p, cmd, out, subnetColumns(out.noTrunc), hosts, func(s *ipam.SubnetInfo) string { return shortID(s.ID, out.noTrunc) },
			func(ctx context.Context, c *admin.Client) ([]ipam.SubnetInfo, error) {
				return subnetsOf(ctx, c, first(args), space)
			})
	}
	return cmd
}

// subnetsOf lists the subnets of a network, or with the empty one of a space or of all.
func subnetsOf(ctx context.Context, c *admin.Client, network, space string) ([]ipam.SubnetInfo, error) {
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

func subnetColumns(noTrunc bool) []column[ipam.SubnetInfo] {
	return []column[ipam.SubnetInfo]{
		{"SUBNET", func(s *ipam.SubnetInfo) string { return s.CIDR.String() }},
		{"NAME", func(s *ipam.SubnetInfo) string { return s.Name }},
		{"SPACE", func(s *ipam.SubnetInfo) string { return s.Space }},
		{"NETWORK", func(s *ipam.SubnetInfo) string { return s.NetworkName }},
		{"ID", func(s *ipam.SubnetInfo) string { return shortID(s.ID, noTrunc) }},
		{"GATEWAY", func(s *ipam.SubnetInfo) string {
			if !s.Gateway.IsValid() {
				return ""
			}
			return s.Gateway.String()
		}},
		{"POOLS", func(s *ipam.SubnetInfo) string {
			var all []string
			for _, pool := range s.Pools {
				all = append(all, pool.Range.String())
			}
			return strings.Join(all, ",")
		}},
		{"HELD", func(s *ipam.SubnetInfo) string { return strconv.FormatUint(s.Held, 10) }},
		{"REMEMBERED", func(s *ipam.SubnetInfo) string { return strconv.Itoa(s.Remembered) }},
		{"FREE", func(s *ipam.SubnetInfo) string { return s.Free.String() }},
		{"CREATED", func(s *ipam.SubnetInfo) string { return localTime(s.Created) }},
	}
}
