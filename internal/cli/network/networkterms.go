package network

import (
	"errors"
	"fmt"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// This file has the flags of a network as a whole, the edits from them, and its part of the network's page.

// networkFlags are the flags of create and modify that need parsing.
type networkFlags struct {
	sticky, quarantine *string
	tags, links        []string
	dhcp, dhcpID       *string
	owners             ownerFlags
}

// creating returns the flags of create; modifying returns those of modify.
func (n *networkFlags) creating(c *ipam.CreateNetwork) cli.Flags {
	return n.rows("a static band, a `RANGE` from which Berth assigns addresses only on request (repeatable)",
		&c.MACPrefix, &c.Headroom, &c.Probe, &c.PutBack, &c.Note)
}

func (n *networkFlags) modifying(m *ipam.ModifyNetwork) cli.Flags {
	return n.rows("a static band, a `RANGE` from which Berth assigns addresses only on request; replaces the existing "+
		"bands, none removes them (repeatable)", &m.MACPrefix, &m.Headroom, &m.Probe, &m.PutBack, &m.Note)
}

// rows returns the common flags. The variables of modify are pointers, which stay nil if the flag is not given.
func (n *networkFlags) rows(static string, macPrefix, headroom, probe, putBack, note any) cli.Flags {
	return append(n.owners.rows(static),
		cli.Flag(macPrefix, "mac-prefix", "the first three octets, `aa:00:00`, of the MACs that berth "+
			"compose, deploy and pin give to owners; the engine chooses all other MACs"),
		cli.Flag(&n.tags, "tag", "a tag, `KEY=VALUE` (repeatable)"),
		cli.Flag(&n.links, "link", "what the network is attached to on a host: `host=H,mode=M,link=L`; for "+
			"display only (repeatable)"),
		cli.Flag(&n.sticky, "sticky",
			"`on|off`: whether a released address is kept for its last holder (default "+
				"for a new network: on)").Words("off", "on", "auto"),
		cli.Flag(&n.quarantine, "quarantine",
			"how long Berth gives a released address only to its last holder, "+
				"a `duration` such as 10m (default for a new network: 0s)"),
		cli.Flag(headroom, "headroom", "`N` addresses that each host claims in advance for each of its "+
			"Docker networks"),
		cli.Flag(&n.dhcp, "dhcp", "let the LAN's DHCP server on the host interface `PARENT` choose the "+
			"addresses; per host: alpha=eth0,beta=eno1"),
		dhcpIDFlag(&n.dhcpID),
		cli.Flag(probe, "probe", "the hosts' `INTERFACE` to the network's LAN, on which berth edge "+
			"probes addresses before Berth leases them; Berth excludes addresses that are in use; per host: "+
			"alpha=eth0,beta=eno1; none: no probes"),
		cli.Flag(putBack, "put-back", "`which` containers Berth puts back to their own addresses, if the "+
			"engine did not identify them: reserved, all, off, or default (as berth serve --put-back)").
			Words("reserved", "all", "off", "default"),
		noteFlag(note))
}

func dhcpIDFlag(id **string) cli.FlagRow {
	return cli.Flag(id, "dhcp-id",
		"what identifies clients to the DHCP server: `owner|mac`").Words("owner", "mac").
		Default("owner")
}

// noteFlag is --note of commands that can change an existing note.
func noteFlag(note any) cli.FlagRow {
	return cli.Flag(note, "note", "a note, `TEXT`; an empty TEXT removes the note")
}

// policy parses --sticky and --quarantine. It returns nil for a flag that is not given.
func (n *networkFlags) policy() (sticky *bool, quarantine *ipam.Duration, err error) {
	sticky, err = parsed(n.sticky, func(text string) (bool, error) { return parseSwitch(text, true) })
	if err != nil {
		return nil, nil, fmt.Errorf("--sticky: %w", err)
	}
	if quarantine, err = parsed(n.quarantine, cli.ParseDuration); err != nil {
		return nil, nil, fmt.Errorf("--quarantine: %w", err)
	}
	return sticky, quarantine, nil
}

// create returns the edits: the network with its subnets, and the pools that do not fit into a SubnetSpec.
func (n *networkFlags) create(create *ipam.CreateNetwork, subnets []string) ([]ipam.Edit, error) {
	unlessNone(&create.Probe)
	if err := n.read(create); err != nil {
		return nil, err
	}
	var terms ipam.LANTerms
	if n.dhcp != nil {
		terms.DHCPParent = *n.dhcp
	}
	id, err := parsed(n.dhcpID, ipam.ParseLANID)
	if id != nil {
		terms.DHCPID = *id
	}
	if err == nil {
		err = terms.CheckDHCP()
	}
	if err != nil {
		return nil, fmt.Errorf("--dhcp: %w", err)
	}
	if terms.FromDHCP() && len(subnets) == 0 {
		return nil, errors.New("--dhcp needs the subnet of the LAN; name it with --subnet")
	}
	edits := []ipam.Edit{create}
	for _, text := range subnets {
		sub, err := parseSubnet(text)
		if err != nil {
			return nil, err
		}
		if sub.spec.LANTerms = terms; terms.FromDHCP() && !strings.Contains(text, ",") {
			sub.spec.Pool = false // the short form has it, if Berth chooses the addresses
		}
		create.Subnets = append(create.Subnets, sub.spec)
		for _, pool := range sub.pools {
			pool.Network = create.Name
			edits = append(edits, pool)
		}
	}
	return edits, nil
}

// read parses the flags of a new network, except its subnets.
func (n *networkFlags) read(create *ipam.CreateNetwork) (err error) {
	if err := ipam.CheckNewName("network", create.Name); err != nil {
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
	create.Sticky, create.Quarantine, err = n.policy()
	return err
}

// unlessNone empties the name of an interface if it is none.
func unlessNone(parent *string) {
	if parent != nil && *parent == "none" {
		*parent = ""
	}
}

// parsed parses the value of a flag, if it was given.
func parsed[T any](text *string, parse func(string) (T, error)) (*T, error) {
	if text == nil {
		return nil, nil
	}
	value, err := parse(*text)
	return &value, err
}

// given is what a thing is called after a change: by its new name if it got one.
func given(name *string, before string) string {
	if name == nil || *name == "" {
		return before
	}
	return *name
}

// removals are the tags, links and owner rules that modify removes.
type removals struct{ tags, links, rules []string }

// modify completes the edit.
func (n *networkFlags) modify(m *ipam.ModifyNetwork, gone removals) (err error) {
	unlessNone(m.Probe)
	if _, err := parsed(m.PutBack, ipam.ParsePutBackMode); err != nil {
		return fmt.Errorf("--put-back: %w", err)
	}
	if err := n.retag(m, gone.tags); err != nil {
		return err
	}
	if m.Links, err = parseLinks(n.links); err != nil {
		return err
	}
	if err := n.owners.modify(m, gone.rules); err != nil {
		return err
	}
	for _, host := range gone.links {
		m.Links = append(m.Links, ipam.Link{Host: host})
	}
	m.DHCPParent = n.dhcp
	if m.DHCPID, err = lanID(n.dhcp, n.dhcpID); err != nil {
		return err
	}
	m.Sticky, m.Quarantine, err = n.policy()
	return err
}

// lanID parses --dhcp-id; nil if it is not given. It empties a parent that is none, which turns DHCP off.
func lanID(parent, id *string) (*ipam.LANID, error) {
	unlessNone(parent)
	by, err := parsed(id, ipam.ParseLANID)
	if err != nil {
		return nil, fmt.Errorf("--dhcp-id: %w", err)
	}
	return by, nil
}

// retag adds the tags to set and the tags to remove to the edit.
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
			return fmt.Errorf("the tag %s is both set and removed; do only one of these", key)
		}
		m.Tags[key] = nil
	}
	return nil
}

// network writes the network's own part of its page.
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
	pg.Entry("former names", strings.Join(n.FormerNames, ", "))
	pg.Entry("note", n.Note)
	for _, band := range n.Static {
		pg.Entry("static", band.String())
	}
	for _, r := range n.OwnerRules {
		pg.Entry("owner rule", r.String())
	}
	pg.Entry("in use", useText(&n.Use, n.Docker))
	if !n.Planned {
		pg.Entry("made for", "Docker; Berth removes it with its last Docker network, unless you edit it")
	}
}

func policyText(n *ipam.NetworkInfo) string {
	text := "released addresses are kept for their last holder"
	if !n.Sticky {
		text = "released addresses go to whoever is next"
	}
	if n.Quarantine > 0 {
		text += ", quarantine " + n.Quarantine.String()
	}
	return text
}
