package ipam

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// maxSubnets is how many subnets one edit makes or removes, so that its transaction stays bounded.
const maxSubnets = 500

// networkFacts is what events tell of a network.
type networkFacts struct {
	Name       string            `json:"name,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	MACPrefix  string            `json:"mac_prefix,omitempty"`
	Links      []Link            `json:"links,omitempty"`
	Sticky     *bool             `json:"sticky,omitempty"`
	Quarantine *Duration         `json:"quarantine,omitempty"`
	Headroom   *int              `json:"headroom,omitempty"` // nil: none, or it does not differ
	Type       NetworkType       `json:"type,omitempty"`
	Static     []Range           `json:"static,omitempty"`
	Rules      []OwnerRule       `json:"owner_rules,omitempty"`
}

func (n *Network) facts() networkFacts {
	sticky, quarantine := !n.Policy.Forget, Duration(n.Policy.Quarantine)
	f := networkFacts{Name: n.Name, Tags: n.Tags, MACPrefix: n.MACPrefix, Links: n.Links, Sticky: &sticky, Quarantine: &quarantine, Type: n.Type, Rules: n.Rules}
	if n.Headroom > 0 {
		f.Headroom = &n.Headroom
	}
	return f
}

// differing is f less what is the same in other.
func (f networkFacts) differing(other networkFacts) networkFacts {
	if f.Name == other.Name {
		f.Name = ""
	}
	if maps.Equal(f.Tags, other.Tags) {
		f.Tags = nil
	}
	if f.MACPrefix == other.MACPrefix {
		f.MACPrefix = ""
	}
	if slices.Equal(f.Links, other.Links) {
		f.Links = nil
	}
	if *f.Sticky == *other.Sticky {
		f.Sticky = nil
	}
	if *f.Quarantine == *other.Quarantine {
		f.Quarantine = nil
	}
	switch {
	case f.Headroom == nil && other.Headroom != nil:
		f.Headroom = new(int)
	case f.Headroom != nil && other.Headroom != nil && *f.Headroom == *other.Headroom:
		f.Headroom = nil
	}
	if f.Type == other.Type {
		f.Type = ""
	}
	if slices.Equal(f.Static, other.Static) {
		f.Static = nil
	}
	if slices.Equal(f.Rules, other.Rules) {
		f.Rules = nil
	}
	return f
}

func (e *CreateNetwork) apply(c *change) (Result, error) {
	if e.Space == "" {
		e.Space = LocalSpace
	}
	if err := CheckName("space", e.Space); err != nil {
		return Result{}, err
	}
	if len(e.Subnets) > maxSubnets {
		return Result{}, &refusal{ErrInvalid, fmt.Sprintf("the network %s is to have %d subnets; one request makes at most %d, `berth import` any number", e.Name, len(e.Subnets), maxSubnets)}
	}
	if err := c.nameFree(e.Name); err != nil {
		return Result{}, err
	}
	kind, err := ParseNetworkType(e.Type)
	if err != nil {
		return Result{}, err
	}
	n := &Network{ID: c.newID(), Name: e.Name, Space: e.Space, Type: kind, Created: c.now, Planned: true}
	tags := map[string]*string{}
	for key, value := range e.Tags {
		tags[key] = &value
	}
	set := ModifyNetwork{Tags: tags, MACPrefix: &e.MACPrefix, Links: e.Links, Sticky: e.Sticky, Quarantine: e.Quarantine, Headroom: &e.Headroom, OwnerRules: e.OwnerRules}
	if err := set.on(n); err != nil {
		return Result{}, err
	}
	if err := c.ensureSpace(e.Space); err != nil {
		return Result{}, err
	}
	p := &plan{c, n}
	facts := n.facts()
	facts.Static = e.Static
	if err := p.note(&Event{Verb: NetworkCreated}, nil, facts); err != nil {
		return Result{}, err
	}
	for i := range e.Subnets {
		if _, err := p.addSubnet(&e.Subnets[i]); err != nil {
			return Result{}, err
		}
	}
	if len(e.Static) > 0 {
		if err := p.setStatic(e.Static); err != nil {
			return Result{}, err
		}
	}
	return Result{Network: n.ID}, nil
}

func (e *ModifyNetwork) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	edited := *p.n
	edited.Tags, edited.Links, edited.Rules = maps.Clone(edited.Tags), slices.Clone(edited.Links), slices.Clone(edited.Rules)
	if e.Name != nil && *e.Name != edited.Name {
		if err := c.nameFree(*e.Name); err != nil {
			return Result{}, err
		}
		edited.Name = *e.Name
	}
	if err := e.on(&edited); err != nil {
		return Result{}, err
	}
	before, after := p.n.facts(), edited.facts()
	before.Static, after.Static = c.ix.bands(edited.ID), c.ix.bands(edited.ID)
	if e.Static != nil {
		if err := p.setStatic(*e.Static); err != nil {
			return Result{}, err
		}
		after.Static = c.ix.bands(edited.ID)
	}
	p.n = &edited
	return Result{Network: edited.ID}, p.note(&Event{Verb: NetworkModified}, before.differing(after), after.differing(before))
}

// on sets what e says of a network but for its name.
func (e *ModifyNetwork) on(n *Network) error {
	if e.MACPrefix != nil {
		prefix := strings.ToLower(*e.MACPrefix)
		if err := checkMACPrefix(prefix); err != nil {
			return err
		}
		n.MACPrefix = prefix
	}
	for _, key := range slices.Sorted(maps.Keys(e.Tags)) {
		if err := n.tag(key, e.Tags[key]); err != nil {
			return err
		}
	}
	if err := n.checkTags(); err != nil {
		return err
	}
	for _, link := range e.Links {
		if err := n.link(link); err != nil {
			return err
		}
	}
	if e.Sticky != nil {
		n.Policy.Forget = !*e.Sticky
	}
	if e.Quarantine != nil {
		if *e.Quarantine < 0 {
			return &refusal{ErrInvalid, fmt.Sprintf("the quarantine %s is negative", time.Duration(*e.Quarantine))}
		}
		n.Policy.Quarantine = time.Duration(*e.Quarantine)
	}
	for _, r := range e.OwnerRules {
		if err := n.setRule(r); err != nil {
			return err
		}
	}
	if e.Headroom != nil {
		return n.setHeadroom(*e.Headroom)
	}
	return nil
}

// maxHeadroom is how much of it an attachment can have: all of it is claimed by, and written for, each host.
const maxHeadroom = 1024

// setHeadroom says how many addresses each host keeps claimed for each of its attachments.
func (n *Network) setHeadroom(wanted int) error {
	switch {
	case wanted < 0 || wanted > maxHeadroom:
		return &refusal{ErrInvalid, fmt.Sprintf("a headroom of %d addresses is none: write 0 to %d", wanted, maxHeadroom)}
	case wanted > 0 && n.Space == LocalSpace:
		return &refusal{ErrInvalid, fmt.Sprintf("network %s is in the space local, which each host keeps for itself: it needs no headroom", n.Name)}
	case wanted > 0 && n.Type != Manual:
		return refuse(WrongType, ErrInvalid, "network %s is of the type %s: Berth chooses none of its addresses, and can keep none as headroom", n.Name, n.Type)
	}
	n.Headroom = wanted
	return nil
}

func (n *Network) tag(key string, value *string) error {
	if err := CheckName("tag", key); err != nil {
		return err
	}
	if value == nil {
		delete(n.Tags, key)
		return nil
	}
	if err := checkText("the tag "+key, *value); err != nil {
		return err
	}
	if n.Tags == nil {
		n.Tags = map[string]string{}
	}
	n.Tags[key] = *value
	return nil
}

// maxTags is how many tags a network keeps.
const maxTags = 128

func (n *Network) checkTags() error {
	if len(n.Tags) <= maxTags {
		return nil
	}
	return &refusal{ErrInvalid, fmt.Sprintf("network %s would have %d tags; it keeps at most %d", n.Name, len(n.Tags), maxTags)}
}

var macPrefixForm = regexp.MustCompile(`^[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}$`)

// checkMACPrefix refuses what does not begin the MAC address of one interface: an odd first octet is that of a group
// (IEEE 802).
func checkMACPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if !macPrefixForm.MatchString(prefix) {
		return &refusal{ErrInvalid, fmt.Sprintf("%q begins no MAC address: write three octets, such as aa:00:00", prefix)}
	}
	if strings.ContainsRune("13579bdf", rune(prefix[1])) {
		return &refusal{ErrInvalid, fmt.Sprintf("MAC addresses that begin with %s are those of groups (the first octet is odd); choose an even one, such as aa:00:00", prefix)}
	}
	return nil
}

// linkModes are the ways in which a network is connected to a host, as they are told to one who mistyped one.
var linkModes = []string{"bridged", "routed", "macvlan", "ipvlan", "ovs"}

// link sets the L2 attachment of one host, or removes it where it has no mode.
func (n *Network) link(l Link) error {
	if err := CheckName("host", l.Host); err != nil {
		return err
	}
	n.Links = slices.DeleteFunc(n.Links, func(other Link) bool { return other.Host == l.Host })
	if l.Mode == "" && l.Link == "" {
		return nil
	}
	if !slices.Contains(linkModes, l.Mode) {
		return &refusal{ErrInvalid, fmt.Sprintf("%q is no mode of a link on host %s: use one of %s", l.Mode, l.Host, strings.Join(linkModes, ", "))}
	}
	if l.Link == "" || len(l.Link) > 63 || strings.ContainsFunc(l.Link, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return &refusal{ErrInvalid, fmt.Sprintf("%q names no bridge, parent or table on host %s: write a name such as br0", l.Link, l.Host)}
	}
	n.Links = append(n.Links, l)
	slices.SortFunc(n.Links, func(a, b Link) int { return cmp.Compare(a.Host, b.Host) })
	return nil
}

// maxText bounds notes and tags.
const maxText = 255

// checkText refuses what is no line of text.
func checkText(what, text string) error {
	if len(text) > maxText {
		return &refusal{ErrInvalid, fmt.Sprintf("%s has %d bytes; at most %d are kept", what, len(text), maxText)}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return &refusal{ErrInvalid, fmt.Sprintf("%s has characters that cannot be printed; write it on one line", what)}
	}
	return nil
}

func (e *RemoveNetwork) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	all, err := p.subnets()
	if err != nil {
		return Result{}, err
	}
	for _, sub := range all {
		if err := p.unused(sub, e.Force); err != nil {
			return Result{}, err
		}
	}
	if err := p.dismissOwners(e.Force); err != nil {
		return Result{}, err
	}
	if _, err := p.tell(&Event{Verb: NetworkRemoved}, p.n.facts(), nil); err != nil {
		return Result{}, err
	}
	result := Result{Network: p.n.ID}
	if len(all) > maxSubnets {
		leaving := *p.n
		leaving.Stage, c.edit.leaving = Leaving, true
		return result, c.setNetwork(leaving.ID, &leaving)
	}
	for _, sub := range all {
		if err := p.dropSubnet(sub); err != nil {
			return Result{}, err
		}
	}
	return result, c.setNetwork(p.n.ID, nil)
}

// finishLeaving removes what is left of networks that were removed, a page of subnets at a time.
func (s *Service) finishLeaving(ctx context.Context) error {
	for s.leaving() {
		var swept []*Subnet
		left := false
		err := s.update(ctx, func(c *change) (err error) {
			swept, left, err = c.leavePage()
			return err
		})
		if err != nil || !left {
			return err
		}
		s.mu.Lock()
		s.ix.orphans = append(s.ix.orphans, swept...)
		s.mu.Unlock()
	}
	return nil
}

// leaving tells whether a network is being removed.
func (s *Service) leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nx := range s.ix.networks {
		if nx.record.value != nil && nx.record.value.Stage == Leaving {
			return true
		}
	}
	return false
}

// leavePage removes one page of a network that is leaving, and tells whether there may be more.
func (c *change) leavePage() (swept []*Subnet, left bool, err error) {
	for id, nx := range c.ix.networks {
		if nx.record.value == nil || nx.record.value.Stage != Leaving {
			continue
		}
		p := &plan{c, nx.record.value}
		all, err := p.subnets()
		if err != nil {
			return nil, false, err
		}
		for _, sub := range all[:min(len(all), maxSubnets)] {
			if err := p.dropSubnet(sub); err != nil {
				return nil, false, err
			}
		}
		if len(all) <= maxSubnets {
			err = c.setNetwork(id, nil)
		}
		return c.edit.swept, true, err
	}
	return nil, false, nil
}
