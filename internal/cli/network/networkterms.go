package network

import (
	"errors"
	"fmt"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// What the command line says of a network as a whole: its flags, the edits that they make, and what its page shows.

// networkFlags are the flags of what create and modify have in common.
type networkFlags struct {
	said               ipam.CreateNetwork // by flags that need no reading
	sticky, quarantine string
	tags, links        []string
	dhcp, dhcpID       string
	owners             ownerFlags
}

func (n *networkFlags) flags(cmd *cobra.Command, static string) {
	f := cmd.Flags()
	f.StringVar(&n.said.MACPrefix, "mac-prefix", "", "the first three octets, `aa:00:00`, of the MACs that berth "+
		"compose writes for its services; shown and passed to hooks; the engine chooses all other MACs")
	f.StringArrayVar(&n.tags, "tag", nil, "a tag, `KEY=VALUE` (repeatable)")
	f.StringArrayVar(&n.links, "link", nil, "what it is attached to on a host: `host=H,mode=M,link=L`; for "+
		"display only (repeatable)")
	f.StringVar(&n.sticky, "sticky", "", "`on|off`: whether a released address is kept for its last holder (a new "+
		"network: on)")
	f.StringVar(&n.quarantine, "quarantine", "", "how long a released address is chosen for its last holder only, "+
		"a `duration` such as 10m (a new network: 0s)")
	f.IntVar(&n.said.Headroom, "headroom", 0, "`N` addresses that each host claims in advance for each of its "+
		"Docker networks")
	f.StringVar(&n.dhcp, "dhcp", "", "let the LAN's DHCP server on the host interface `PARENT` choose the "+
		"addresses; per host: alpha=eth0,beta=eno1")
	f.StringVar(&n.dhcpID, "dhcp-id", "owner", "what identifies clients to that server: `owner|mac`")
	cli.Completes(cmd, "dhcp-id", cli.Words("owner", "mac"))
	f.StringVar(&n.said.Probe, "probe", "", "the hosts' `INTERFACE` to the network's LAN, on which berth edge "+
		"probes addresses before Berth leases them, and excludes those in use; per host: alpha=eth0,beta=eno1; none: "+
		"no probes")
	f.StringVar(&n.said.PutBack, "put-back", "", "`which` containers are put back to their own addresses, if the "+
		"engine did not identify them: reserved, all, off, or default (as berth serve --put-back)")
	cli.Completes(cmd, "put-back", cli.Words("reserved", "all", "off", "default"))
	f.StringVar(&n.said.Note, "note", "", "a note, `TEXT`; an empty one removes it")
	n.owners.flags(cmd, static)
	cli.Completes(cmd, "sticky", cli.Words("off", "on", "auto"))
}

// policy reads what was said of it; nil where nothing was.
func (n *networkFlags) policy(cmd *cobra.Command) (sticky *bool, quarantine *ipam.Duration, err error) {
	if cmd.Flags().Changed("sticky") {
		on, err := parseSwitch(n.sticky, true)
		if err != nil {
			return nil, nil, fmt.Errorf("--sticky: %w", err)
		}
		sticky = &on
	}
	if cmd.Flags().Changed("quarantine") {
		d, err := cli.ParseDuration(n.quarantine)
		if err != nil {
			return nil, nil, fmt.Errorf("--quarantine: %w", err)
		}
		quarantine = &d
	}
	return sticky, quarantine, nil
}

// create makes the edits: the network with its subnets, and the pools that a SubnetSpec cannot say.
func (n *networkFlags) create(cmd *cobra.Command, create *ipam.CreateNetwork, subnets []string) ([]ipam.Edit, error) {
	create.Probe = unlessNone(create.Probe)
	if err := n.read(cmd, create); err != nil {
		return nil, err
	}
	terms := ipam.LANTerms{DHCPParent: n.dhcp}
	var err error
	if terms.DHCPID, err = ipam.ParseLANID(n.dhcpID); err == nil {
		err = terms.CheckDHCP()
	}
	if err != nil {
		return nil, fmt.Errorf("--dhcp: %w", err)
	}
	if terms.FromDHCP() && len(subnets) == 0 {
		return nil, errors.New("--dhcp is about the subnet of the LAN; say which one with --subnet")
	}
	edits := []ipam.Edit{create}
	for _, text := range subnets {
		sub, err := parseSubnet(text)
		if err != nil {
			return nil, err
		}
		if sub.spec.LANTerms = terms; terms.FromDHCP() && !strings.Contains(text, ",") {
			sub.spec.Pool = false // which the short form has where Berth chooses
		}
		create.Subnets = append(create.Subnets, sub.spec)
		for _, pool := range sub.pools {
			pool.Network = create.Name
			edits = append(edits, pool)
		}
	}
	return edits, nil
}

// read reads what the flags say of a new network, but for its subnets.
func (n *networkFlags) read(cmd *cobra.Command, create *ipam.CreateNetwork) (err error) {
	if err := ipam.CheckName("network", create.Name); err != nil {
		return err
	}
	if create.Tags, err = parseTags(n.tags); err != nil {
		return err
	}
	if create.Links, err = parseLinks(n.links); err != nil {
		return err
	}
	if create.Static, err = parseStatic(n.owners.static); err != nil {
		return err
	}
	if create.OwnerRules, err = parseOwnerRules(n.owners.rules); err != nil {
		return err
	}
	if _, err := ipam.ParsePutBackMode(create.PutBack); err != nil {
		return fmt.Errorf("--put-back: %w", err)
	}
	create.Sticky, create.Quarantine, err = n.policy(cmd)
	return err
}

// unlessNone is the interface to be probed by; none is no interface.
func unlessNone(parent string) string {
	if parent == "none" {
		return ""
	}
	return parent
}

// given is the value of a flag; nil: it was not given.
func given[T any](cmd *cobra.Command, flag string, value T) *T {
	if cmd.Flags().Changed(flag) {
		return &value
	}
	return nil
}

// removals name what modify takes away.
type removals struct{ tags, links, rules []string }

// modify makes the edit.
func (n *networkFlags) modify(cmd *cobra.Command, network string, gone removals) (*ipam.ModifyNetwork, error) {
	err := cli.Changed(cmd, "name", "tag", "tag-rm", "mac-prefix", "link", "link-rm", "sticky", "quarantine",
		"headroom", "probe", "put-back", "note", "static", "elastic", "dhcp", "dhcp-id",
		"owner-rule", "owner-rule-rm")
	if err != nil {
		return nil, err
	}
	m := &ipam.ModifyNetwork{Network: network, MACPrefix: given(cmd, "mac-prefix", n.said.MACPrefix),
		Headroom: given(cmd, "headroom", n.said.Headroom), Probe: given(cmd, "probe", unlessNone(n.said.Probe)),
		PutBack: given(cmd, "put-back", n.said.PutBack), Note: given(cmd, "note", n.said.Note)}
	if _, err := ipam.ParsePutBackMode(n.said.PutBack); err != nil {
		return nil, fmt.Errorf("--put-back: %w", err)
	}
	if err := n.retag(m, gone.tags); err != nil {
		return nil, err
	}
	if m.Links, err = parseLinks(n.links); err != nil {
		return nil, err
	}
	if err := n.owners.modify(cmd, m, gone.rules); err != nil {
		return nil, err
	}
	for _, host := range gone.links {
		m.Links = append(m.Links, ipam.Link{Host: host})
	}
	if m.DHCPParent, m.DHCPID, err = lanFlags(cmd, "dhcp", n.dhcp, n.dhcpID); err != nil {
		return nil, err
	}
	m.Sticky, m.Quarantine, err = n.policy(cmd)
	return m, err
}

// lanFlags are what flags say of how a DHCP server is asked from now on, where they are given; none takes that away.
func lanFlags(cmd *cobra.Command, parentFlag, parent, id string) (to *string, by *ipam.LANID, err error) {
	to = given(cmd, parentFlag, unlessNone(parent))
	if cmd.Flags().Changed("dhcp-id") {
		known, err := ipam.ParseLANID(id)
		if err != nil {
			return nil, nil, fmt.Errorf("--dhcp-id: %w", err)
		}
		by = &known
	}
	return to, by, nil
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

// network shows what is said of a network as a whole.
func (pg *page) network(n *ipam.NetworkInfo) {
	pg.Line("NETWORK %s", n.Name)
	pg.Entry("id", n.ID.String())
	pg.Entry("space", n.Space)
	pg.Entry("type", n.Type)
	pg.Entry("tags", tagText(n.Tags))
	pg.Entry("mac prefix", n.MACPrefix)
	for _, l := range n.Links {
		pg.Entry("link", fmt.Sprintf("on %s: %s %s", l.Host, l.Mode, l.Link))
	}
	pg.Entry("policy", policyText(n))
	if n.Headroom > 0 {
		pg.Entry("headroom", fmt.Sprintf("%d for each Docker network of each host", n.Headroom))
	}
	if n.Elastic != ipam.ElasticOff.String() {
		pg.Entry("elastic", n.Elastic)
	}
	pg.Entry("probed by", n.Probe)
	pg.Entry("put back", string(n.PutBack))
	pg.Entry("note", n.Note)
	for _, band := range n.Static {
		pg.Entry("static", band.String())
	}
	for _, r := range n.OwnerRules {
		pg.Entry("owner rule", r.String())
	}
	pg.Entry("in use", useText(n.Use.Leased, n.Use.Reserved, n.Docker))
	if !n.Planned {
		pg.Entry("made for", "Docker; it ends with its last Docker network, unless it is edited")
	}
}

func policyText(n *ipam.NetworkInfo) string {
	text := "released addresses are kept for their last holder"
	if !n.Sticky {
		text = "released addresses go to whoever is next"
	}
	if n.Quarantine != "" {
		text += ", quarantine " + n.Quarantine
	}
	return text
}
