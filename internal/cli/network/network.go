// Package network has the commands for networks, subnets, pools and exclusions. It reads the usual notations: a range,
// a CIDR, /BITS out of a larger one, KEY=VALUE. It refuses an impossible value before it asks the daemon.
//
// Each noun has a file (network.go, subnet.go, pool.go, exclusion.go) with a command per verb. A command parses flags
// and arguments (parse.go, ownerrule.go) into an edit and passes it to package cli. show.go prints one network, with a
// map of its pools (poolmap.go). free.go lists free space, and refs.go completes names.
package network

import (
	"context"
	"errors"
	"fmt"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// Command is `berth network`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("network", "Networks: planned ones and Docker's", networkCreateCommand(p),
		networkListCommand(p),
		networkShowCommand(p), networkModifyCommand(p), networkRemoveCommand(p), freeCommand(p))
}

const networkCreateHelp = `Creates a network with its subnets, and prints its id. Without --subnet it is a
layer 2 network; berth subnet add adds subnets later.

--subnet CIDR is the short form: automatic addresses come from the whole subnet. With options, separated by
commas, they come only from the pools that you list:
  gateway=ADDRESS      name=NAME      dhcp
  pool                 a pool of the whole subnet
  pool=NAME            the same, with a name
  pool=RANGE           a pool of A-B, A+N, a CIDR or one address (repeatable)
/BITS,from=CIDR is a subnet of that length: the lowest one inside CIDR that is still free. To describe a
gateway, use berth subnet modify --gateway-note.

--type sets who chooses addresses. In a manual network Berth chooses, unless the request names an address. In
a dynamic network another system chooses, and Berth records its choice. In a vip network people choose.
Addresses in a --static band are assigned only on request.

With --dhcp PARENT the LAN's DHCP server chooses the addresses of a dynamic network. berth edge asks it on
that interface, by container name. --dhcp-id mac is for servers that reserve by MAC. See docs/dhcp.md.

With --headroom N each host of a cluster claims N addresses in advance, for each of its Docker networks. It
assigns them while the shared store is unreachable. They count as held, and berth lease ls shows them.` + ownerRuleHelp

// behindSubnet is what goes into --subnet, and not beside it as in docker network create.
var behindSubnet = map[string]string{
	"gateway":  "write it after the subnet: --subnet CIDR,gateway=ADDRESS",
	"ip-range": "write it after the subnet: --subnet CIDR,pool=RANGE",
	"pool":     "write it after the subnet: --subnet CIDR,pool=RANGE",
}

func networkCreateCommand(p *cli.Program) *cobra.Command {
	var flags networkFlags
	var space, kind string
	var subnets []string
	cmd := cli.Change{
		Verb: cli.Verb{Use: "create NETWORK", Short: "Create a network", Long: networkCreateHelp,
			Example: `  berth network create flat --subnet 10.7.0.0/24
  berth network create net1 --subnet 192.0.2.0/24,gateway=192.0.2.1,name=lan --subnet 2001:db8::/64,pool --tag site=a
  berth network create net2 --subnet /26,from=10.0.0.0/16,pool --sticky off --quarantine 10m
  berth network create front --subnet 10.8.0.0/24 --static 10.8.0.8-10.8.0.15 --owner-rule 'web-*=owner:shop/web/*'
  berth network create vips --type vip --subnet 203.0.113.0/28
  berth network create lan --type dynamic --subnet 10.0.0.0/24,gateway=10.0.0.1 --dhcp eth0
  berth network create wire --mac-prefix aa:00:00 --link host=alpha,mode=bridged,link=br0`,
			Instead: behindSubnet},
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			if _, err := ipam.ParseNetworkType(kind); err != nil {
				return nil, fmt.Errorf("--type: %w", err)
			}
			create := flags.said
			create.Name, create.Space, create.Type = args[0], space, kind
			return flags.create(cmd, &create, subnets)
		},
		Said: func(out ipam.Outcome) []string { return []string{out.Results[0].Network.String()} },
	}.Command(p)
	cmd.Flags().StringArrayVar(&subnets, "subnet", nil, "a subnet: `CIDR` or CIDR,OPTION,... (repeatable)")
	cmd.Flags().StringVar(&space, "space", ipam.LocalSpace, "the address space `NAME`")
	cmd.Flags().StringVar(&kind, "type", networkTypes[0], "who chooses its addresses: `manual`, dynamic or vip")
	cli.Completes(cmd, "space", p.CompleteSpaces)
	cli.Completes(cmd, "type", cli.Words(networkTypes...))
	flags.flags(cmd, "a static band, a `RANGE` in which no address is chosen (repeatable)")
	return cmd
}

const networkModifyHelp = `Changes only what the flags name. Addresses stay with their holders. A network of
Docker becomes a planned one and stays when Docker leaves it. --static replaces all bands. --owner-rule
replaces the rule of the same pattern or comes last. --dhcp is for subnets with a DHCP server; none ends its
use once nobody has an address from it. --put-back overrides berth serve --put-back for this network; default
removes the override.` + ownerRuleHelp

func networkModifyCommand(p *cli.Program) *cobra.Command {
	var flags networkFlags
	var name string
	var elastic string
	var gone removals
	cmd := cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK", Short: "Change a network's name, tags, links and policy",
			Long: networkModifyHelp, Refs: []cli.Refs{cli.NetworkRefs},
			Example: `  berth network modify net1 --name front
  berth network modify net1 --tag site=b --tag-rm rack
  berth network modify net1 --static 10.8.0.8-10.8.0.15 --static 10.8.0.32/28
  berth network modify net1 --owner-rule 'web-*=pool:web' --owner-rule-rm 'db-*'
  berth network modify lan --dhcp eth1
  berth network modify net1 --put-back all
  berth network modify net1 --sticky off --quarantine 10m --dry-run`},
		Edits: func(cmd *cobra.Command, args []string) ([]ipam.Edit, error) {
			modify, err := flags.modify(cmd, args[0], gone)
			if err == nil && cmd.Flags().Changed("name") {
				modify.Name, err = &name, ipam.CheckName("network", name)
			}
			if err == nil {
				modify.Elastic = given(cmd, "elastic", elastic)
				_, err = ipam.ParseElasticMode(elastic)
			}
			return cli.One(modify, err)
		},
	}.Command(p)
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "the new `NAME`")
	f.StringArrayVar(&gone.tags, "tag-rm", nil, "the `KEY` of a tag that is removed (repeatable)")
	f.StringArrayVar(&gone.links, "link-rm", nil, "the `HOST` whose link is removed (repeatable)")
	f.StringArrayVar(&gone.rules, "owner-rule-rm", nil, "the `PATTERN` of a rule that is removed (repeatable)")
	flags.flags(cmd, "a static band, a `RANGE` in which no address is chosen; replaces the existing bands, "+
		"none removes them (repeatable)")
	f.StringVar(&elastic, "elastic", "off", "whether elastic addresses are mapped to its containers: `off|on|auto`; "+
		"auto: each has a system address")
	cli.Completes(cmd, "elastic", cli.Words("off", "on", "auto"))
	cli.Completes(cmd, "owner-rule-rm", p.CompleteFlag(ruleRefs))
	return cmd
}

const networkRemoveHelp = `Removes unused networks, and prints their names. A network is unused if it has no
Docker network and holds no address but a gateway. For networks with reservations use --force; --dry-run lists
those reservations.`

func networkRemoveCommand(p *cli.Program) *cobra.Command {
	var flags cli.EditFlags
	var force bool
	cmd := cli.Verb{Use: "rm NETWORK...", Short: "Remove networks", Long: networkRemoveHelp, Args: someNetworks,
		Example: "  berth network rm net1\n  berth network rm net1 net2 --force\n" +
			"  berth network rm net1 --force --dry-run",
	}.Command(p)
	cmd.ValidArgsFunction = p.CompleteNetworks
	cmd.Flags().BoolVar(&force, "force", false, "also networks with reservations, which end")
	flags.Flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := p.Editor(cmd, flags)
		if err != nil {
			return err
		}
		defer e.Close()
		var failed []error
		for _, network := range args { // as docker does: each for itself
			failed = append(failed, e.Make(cli.Echo(network), &ipam.RemoveNetwork{Network: network, Force: force}))
			if force && flags.DryRun && flags.Format == "text" {
				failed = append(failed, showEnding(cmd.Context(), p, e.Client, network))
			}
		}
		return errors.Join(failed...)
	}
	return cmd
}

// showEnding shows the reservations that end with a network.
func showEnding(ctx context.Context, p *cli.Program, c *client.Client, network string) error {
	all, err := c.Reservations(ctx, network, "")
	if err != nil {
		return err
	}
	var lines []string
	for _, r := range all {
		address := r.Address.String()
		if !r.Address.IsValid() {
			address = "-"
		}
		lines = append(lines, fmt.Sprintf("%-18s  %-24s  owner=%s", ipam.ReservationRemoved, r.Network+" "+address,
			r.Owner))
	}
	return p.Say(lines)
}

func someNetworks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(cmd, errors.New("NETWORK is missing: "+cmd.CommandPath()+" NETWORK..."))
	}
	return nil
}
