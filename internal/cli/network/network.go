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
	return cli.Group("network", "Networks: what is planned, and what Docker asked for", networkCreateCommand(p),
		networkListCommand(p),
		networkShowCommand(p), networkModifyCommand(p), networkRemoveCommand(p), freeCommand(p))
}

const networkCreateHelp = `Creates a network with its subnets, and prints its id. Without --subnet it is a
network of layer 2 only; berth subnet add gives it subnets later.

--subnet CIDR is the short form: automatic addresses come from the whole subnet. With options behind it,
separated by commas, they come only from the pools that are among these:
  gateway=ADDRESS      name=NAME      dhcp
  pool                 a pool of the whole subnet
  pool=NAME            the same, with a name
  pool=RANGE           a pool of A-B, A+N, a CIDR or one address (repeatable)
/BITS,from=CIDR is a subnet of that length: the lowest one inside CIDR that is still free.
A gateway gets its note with berth subnet modify --gateway-note, as commas separate the options here.

--type says who chooses the addresses. In a manual network Berth does, where a request names none. In a dynamic one
somebody else does, and Berth records what it is told. In a vip one people do, and Berth never does. In a --static band
nothing is chosen: its addresses go only to those who ask for them.

--dhcp PARENT has the DHCP server of the LAN choose the addresses of a dynamic network: berth edge asks it by that
interface of the host, for each container by its name, and Berth keeps what it gives. --dhcp-id mac is for servers that
reserve by MAC. docs/dhcp.md tells how.

--headroom N lets each host of a cluster claim N addresses in advance, for each Docker network that it has on
the network. It gives them to containers while the shared store is out of reach. They count as held; berth
lease ls shows them.
` + ownerRuleHelp

// behindSubnet is what goes into --subnet, and not beside it as in docker network create.
var behindSubnet = map[string]string{
	"gateway":  "it goes behind the subnet: --subnet CIDR,gateway=ADDRESS",
	"ip-range": "it goes behind the subnet: --subnet CIDR,pool=RANGE",
	"pool":     "it goes behind the subnet: --subnet CIDR,pool=RANGE",
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

const networkModifyHelp = `Changes what the flags say and leaves the rest. Addresses stay with their holders;
a network that Docker asked for becomes a planned one, and stays when Docker leaves it. --static replaces the
bands that there are, --owner-rule the rule of the same pattern; a new rule is tried after the others. --dhcp is about
the subnets that a DHCP server serves; none ends that it is asked, once nobody has an address of it any more.
--put-back says for the containers of this network what berth serve --put-back says for those of all; default takes
that away.
` + ownerRuleHelp

func networkModifyCommand(p *cli.Program) *cobra.Command {
	var flags networkFlags
	var name string
	var elastic string
	var gone removals
	cmd := cli.Change{
		Verb: cli.Verb{Use: "modify NETWORK", Short: "Rename a network, change its tags, links and policy",
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
	flags.flags(cmd, "a static band, a `RANGE` in which no address is chosen; replaces the bands that there are, "+
		"none takes them "+
		"away (repeatable)")
	f.StringVar(&elastic, "elastic", "off", "whether elastic addresses are mapped to its containers: `off|on|auto`; "+
		"auto: each has a system address")
	cli.Completes(cmd, "elastic", cli.Words("off", "on", "auto"))
	cli.Completes(cmd, "owner-rule-rm", p.CompleteFlag(ruleRefs))
	return cmd
}

const networkRemoveHelp = `Removes networks that are not in use (no Docker network is on them, and no address
is held but a gateway), and prints their names. Networks with reservations are refused, unless --force
ends these, too; --dry-run lists them.`

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
		lines = append(lines, cli.Printable(fmt.Sprintf("%-18s  %-24s  owner=%s", ipam.ReservationRemoved, r.Network+" "+address,
			r.Owner)))
	}
	return p.Say(lines)
}

func someNetworks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usage(cmd, errors.New("NETWORK is missing: "+cmd.CommandPath()+" NETWORK..."))
	}
	return nil
}
