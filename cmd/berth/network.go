package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) networkCommand() *cobra.Command {
	return group("network", "Networks: what is planned, and what Docker asked for", p.networkCreateCommand(), p.networkListCommand(),
		p.networkShowCommand(), p.networkModifyCommand(), p.networkRemoveCommand())
}

// networkFlags are the flags of what create and modify have in common.
type networkFlags struct {
	macPrefix          string
	sticky, quarantine string
	headroom           int
	tags, links        []string
	owners             ownerFlags
}

func (n *networkFlags) flags(cmd *cobra.Command, static string) {
	f := cmd.Flags()
	f.StringVar(&n.macPrefix, "mac-prefix", "", "the first three octets of its MACs, `aa:00:00`; stated, shown and told to hooks, Berth draws none")
	f.StringArrayVar(&n.tags, "tag", nil, "a tag, `KEY=VALUE` (repeatable)")
	f.StringArrayVar(&n.links, "link", nil, "what it is attached to on a host: `host=H,mode=M,link=L`; stated and shown, Berth connects nothing (repeatable)")
	f.StringVar(&n.sticky, "sticky", "", "`on|off`: whether a released address is kept for its last holder (a new network: on)")
	f.StringVar(&n.quarantine, "quarantine", "", "how `long` a released address is chosen for nobody but its last holder: 10m (a new network: 0s)")
	f.IntVar(&n.headroom, "headroom", 0, "how many addresses `N` each host of a cluster keeps claimed for each of its Docker networks, for when the shared store is out of reach")
	n.owners.flags(cmd, static)
	completes(cmd, "sticky", words("on", "off"))
}

// policy reads what was said of it; nil where nothing was.
func (n *networkFlags) policy(cmd *cobra.Command) (sticky *bool, quarantine *ipam.Duration, err error) {
	if cmd.Flags().Changed("sticky") {
		on, err := parseSwitch(n.sticky, true)
		if err != nil {
			return nil, nil, usage(cmd, fmt.Errorf("--sticky: %w", err))
		}
		sticky = &on
	}
	if cmd.Flags().Changed("quarantine") {
		d, err := parseDuration(n.quarantine)
		if err != nil {
			return nil, nil, usage(cmd, fmt.Errorf("--quarantine: %w", err))
		}
		quarantine = &d
	}
	return sticky, quarantine, nil
}

const networkCreateHelp = `Creates a network with its subnets, and prints its id. Without --subnet it is a network of layer 2 only; berth
subnet add gives it subnets later.

--subnet CIDR is the short form: automatic addresses come from the whole subnet. With options behind it,
separated by commas, they come only from the pools that are among these:
  gateway=ADDRESS      name=NAME      dhcp
  pool                 a pool of the whole subnet
  pool=NAME            the same, with a name
  pool=RANGE           a pool of A-B, A+N, a CIDR or one address (repeatable)
/BITS,from=CIDR takes the lowest free prefix of that length out of a larger one.

--type says who chooses addresses: manual, Berth where nobody names one; dynamic, somebody else, so that only what
is named is recorded; vip, addresses that a person names and moves, and no others. Out of a --static band nothing is
given that nobody names.

--headroom N has each host of a cluster claim N addresses in advance for each Docker network that it has on the network, and
give them to containers while the shared store is out of reach. They count as held; berth lease ls shows them.
` + ownerRuleHelp

func (p *program) networkCreateCommand() *cobra.Command {
	var flags networkFlags
	var edit editing
	var space, kind string
	var subnets []string
	cmd := &cobra.Command{Use: "create NETWORK", Short: "Create a network", Long: networkCreateHelp, Args: takes("NETWORK"),
		Example: `  berth network create flat --subnet 10.7.0.0/24
  berth network create net1 --subnet 192.0.2.0/24,gateway=192.0.2.1,name=lan --subnet 2001:db8::/64,pool --tag site=a
  berth network create net2 --subnet /26,from=10.0.0.0/16,pool --sticky off --quarantine 10m
  berth network create front --subnet 10.8.0.0/24 --static 10.8.0.8-10.8.0.15 --owner-rule 'web-*=owner:shop/web/*'
  berth network create vips --type vip --subnet 203.0.113.0/28
  berth network create wire --mac-prefix aa:00:00 --link host=alpha,mode=bridged,link=br0`}
	cmd.Flags().StringArrayVar(&subnets, "subnet", nil, "a subnet: `CIDR` or CIDR,OPTION,... (repeatable)")
	cmd.Flags().StringVar(&space, "space", ipam.LocalSpace, "the address space `NAME`")
	cmd.Flags().StringVar(&kind, "type", networkTypes[0], "who chooses its addresses: `manual`, dynamic or vip")
	completes(cmd, "space", p.completeSpaces)
	completes(cmd, "type", words(networkTypes...))
	flags.flags(cmd, "a `RANGE` for static use only, out of which nothing automatic is given (repeatable)")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := ipam.ParseNetworkType(kind); err != nil {
			return usage(cmd, fmt.Errorf("--type: %w", err))
		}
		edits, err := flags.create(cmd, &ipam.CreateNetwork{Name: args[0], Space: space, Type: kind}, subnets)
		if err != nil {
			return err
		}
		return p.edit(cmd, edit, func(out ipam.Outcome) []string { return []string{out.Results[0].Network.String()} }, edits...)
	}
	return cmd
}

// create makes the edits: the network with its subnets, and the pools that a SubnetSpec cannot say.
func (n *networkFlags) create(cmd *cobra.Command, create *ipam.CreateNetwork, subnets []string) ([]ipam.Edit, error) {
	create.MACPrefix, create.Headroom = n.macPrefix, n.headroom
	edits := []ipam.Edit{create}
	err := ipam.CheckName("network", create.Name)
	if err == nil {
		create.Tags, err = parseTags(n.tags)
	}
	if err == nil {
		create.Links, err = parseLinks(n.links)
	}
	if err == nil {
		create.Static, err = parseStatic(n.owners.static)
	}
	if err == nil {
		create.OwnerRules, err = parseOwnerRules(n.owners.rules)
	}
	for _, text := range subnets {
		if err != nil {
			break
		}
		var sub newSubnet
		sub, err = parseSubnet(text)
		create.Subnets = append(create.Subnets, sub.spec)
		for _, pool := range sub.pools {
			pool.Network = create.Name
			edits = append(edits, pool)
		}
	}
	if err != nil {
		return nil, usage(cmd, err)
	}
	create.Sticky, create.Quarantine, err = n.policy(cmd)
	return edits, err
}

const networkModifyHelp = `Changes what the flags say and leaves the rest. Addresses stay with their holders; a network that Docker asked for
becomes a planned one, and stays when Docker leaves it. --static replaces the bands there are, --owner-rule the rule
of the same pattern; a new rule comes behind the others.
` + ownerRuleHelp

func (p *program) networkModifyCommand() *cobra.Command {
	var flags networkFlags
	var edit editing
	var name string
	var gone removals
	cmd := &cobra.Command{Use: "modify NETWORK", Short: "Rename a network, change its tags, links and policy", Long: networkModifyHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth network modify net1 --name front
  berth network modify net1 --tag site=b --tag-rm rack
  berth network modify net1 --static 10.8.0.8-10.8.0.15 --static 10.8.0.32/28
  berth network modify net1 --owner-rule 'web-*=pool:web' --owner-rule-rm 'db-*'
  berth network modify net1 --sticky off --quarantine 10m --dry-run`}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "the new `NAME`")
	f.StringArrayVar(&gone.tags, "tag-rm", nil, "the `KEY` of a tag that is removed (repeatable)")
	f.StringArrayVar(&gone.links, "link-rm", nil, "the `HOST` whose link is removed (repeatable)")
	f.StringArrayVar(&gone.rules, "owner-rule-rm", nil, "the `PATTERN` of a rule that is removed (repeatable)")
	flags.flags(cmd, "a `RANGE` for static use only, instead of those there are; none: there is none any more (repeatable)")
	completes(cmd, "owner-rule-rm", p.completeFlag(ruleRefs))
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		modify, err := flags.modify(cmd, args[0], gone)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("name") {
			if err := ipam.CheckName("network", name); err != nil {
				return usage(cmd, err)
			}
			modify.Name = &name
		}
		return p.edit(cmd, edit, echo(args[0]), modify)
	}
	return cmd
}

// removals name what modify takes away.
type removals struct{ tags, links, rules []string }

// modify makes the edit.
func (n *networkFlags) modify(cmd *cobra.Command, network string, gone removals) (*ipam.ModifyNetwork, error) {
	if err := changed(cmd, "name", "tag", "tag-rm", "mac-prefix", "link", "link-rm", "sticky", "quarantine", "headroom", "static", "owner-rule", "owner-rule-rm"); err != nil {
		return nil, err
	}
	m := &ipam.ModifyNetwork{Network: network}
	err := n.retag(m, gone.tags)
	if err == nil {
		m.Links, err = parseLinks(n.links)
	}
	if err == nil {
		err = n.owners.modify(cmd, m, gone.rules)
	}
	if err != nil {
		return nil, usage(cmd, err)
	}
	for _, host := range gone.links {
		m.Links = append(m.Links, ipam.Link{Host: host})
	}
	if cmd.Flags().Changed("mac-prefix") {
		m.MACPrefix = &n.macPrefix
	}
	if cmd.Flags().Changed("headroom") {
		m.Headroom = &n.headroom
	}
	m.Sticky, m.Quarantine, err = n.policy(cmd)
	return m, err
}

// retag says which tags are set and which removed.
func (n *networkFlags) retag(m *ipam.ModifyNetwork, gone []string) error {
	tags, err := parseTags(n.tags)
	if err != nil {
		return err
	}
	m.Tags = map[string]*string{}
	for key, value := range tags {
		m.Tags[key] = &value
	}
	for _, key := range gone {
		if _, ok := tags[key]; ok {
			return fmt.Errorf("the tag %s is set and removed; do one of them", key)
		}
		m.Tags[key] = nil
	}
	return nil
}

const networkRemoveHelp = `Removes networks of which nothing is in use, and prints their names. Those with reservations are refused unless
--force is given, which removes the reservations, too.`

func (p *program) networkRemoveCommand() *cobra.Command {
	var edit editing
	var force bool
	cmd := &cobra.Command{Use: "rm NETWORK...", Aliases: []string{"remove"}, Short: "Remove networks", Long: networkRemoveHelp,
		ValidArgsFunction: p.completeNetworks,
		Example:           "  berth network rm net1\n  berth network rm net1 net2 --force\n  berth network rm net1 --force --dry-run"}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, errors.New("NETWORK is missing: "+cmd.CommandPath()+" NETWORK..."))
		}
		return nil
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also those with reservations, and these with them")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := p.editor(cmd, edit)
		if err != nil {
			return err
		}
		defer e.close()
		var failed []error
		for _, network := range args { // as docker does: each for itself
			failed = append(failed, e.make(echo(network), &ipam.RemoveNetwork{Network: network, Force: force}))
		}
		return errors.Join(failed...)
	}
	return cmd
}

const networkListHelp = `Lists the networks by name: those that were planned, and those that Berth made for a pool that Docker asked for
(named net- and the beginning of their id). HELD counts addresses in somebody's hands, DOCKER the Docker networks on it.`

func (p *program) networkListCommand() *cobra.Command {
	var out output
	var space string
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List networks", Long: networkListHelp, Args: noArgs,
		Example: `  berth network ls
  berth network ls --space global
  berth network ls --format '{{.Name}} {{index .Tags "site"}}'`}
	out.flags(cmd)
	p.spaceFlag(cmd, &space)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return list(p, cmd, out, networkColumns(out.noTrunc), func(n *ipam.NetworkInfo) string { return shortID(n.ID, out.noTrunc) },
			func(ctx context.Context, c *admin.Client) ([]ipam.NetworkInfo, error) { return c.Networks(ctx, space) })
	}
	return cmd
}

func networkColumns(noTrunc bool) []column[ipam.NetworkInfo] {
	return []column[ipam.NetworkInfo]{
		{"NAME", func(n *ipam.NetworkInfo) string { return n.Name }},
		{"SPACE", func(n *ipam.NetworkInfo) string { return n.Space }},
		{"ID", func(n *ipam.NetworkInfo) string { return shortID(n.ID, noTrunc) }},
		{"SUBNETS", func(n *ipam.NetworkInfo) string { return someSubnets(n.Subnets, noTrunc) }},
		{"HELD", func(n *ipam.NetworkInfo) string { return strconv.FormatUint(n.Held, 10) }},
		{"RESERVED", func(n *ipam.NetworkInfo) string { return strconv.FormatUint(n.Reserved, 10) }},
		{"DOCKER", func(n *ipam.NetworkInfo) string { return strconv.Itoa(n.Docker) }},
		{"TAGS", func(n *ipam.NetworkInfo) string { return tagText(n.Tags) }},
	}
}

// shownSubnets is how many subnets a row names.
const shownSubnets = 2

func someSubnets(subnets []ipam.SubnetPlan, all bool) string {
	var texts []string
	for i, s := range subnets {
		if i == shownSubnets && !all {
			texts = append(texts, fmt.Sprintf("+%d", len(subnets)-i))
			break
		}
		texts = append(texts, s.CIDR.String())
	}
	return strings.Join(texts, ",")
}

func tagText(tags map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		texts = append(texts, key+"="+tags[key])
	}
	return strings.Join(texts, ",")
}
