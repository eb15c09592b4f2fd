package edit

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
)

// maxSubnets is how many subnets one edit makes or removes, so that its transaction stays bounded.
const maxSubnets = 500

// networkFacts is what events tell of a network.
type networkFacts struct {
	Name       string            `json:"name,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	MACPrefix  string            `json:"mac_prefix,omitempty"`
	Links      []ipam.Link       `json:"links,omitempty"`
	Sticky     *bool             `json:"sticky,omitempty"`
	Quarantine *ipam.Duration    `json:"quarantine,omitempty"`
	Headroom   *int              `json:"headroom,omitempty"` // nil: none, or it does not differ
	Type       ipam.NetworkType  `json:"type,omitempty"`
	Static     []ipam.Range      `json:"static,omitempty"`
	Rules      []ipam.OwnerRule  `json:"owner_rules,omitempty"`
	Elastic    string            `json:"elastic,omitempty"`
	Probe      *string           `json:"probe,omitempty"` // nil: none, or it does not differ
	PutBack    string            `json:"put_back,omitempty"`
}

// FactsOfNetwork is what the events of a network tell of it.
func FactsOfNetwork(n *ipam.Network) networkFacts {
	sticky, quarantine := !n.Policy.Forget, ipam.Duration(n.Policy.Quarantine)
	f := networkFacts{Name: n.Name, Tags: n.Tags, MACPrefix: n.MACPrefix, Links: n.Links, Sticky: &sticky,
		Quarantine: &quarantine, Type: n.Type, Rules: n.Rules}
	if n.Headroom > 0 {
		f.Headroom = &n.Headroom
	}
	if n.Probe != "" {
		f.Probe = &n.Probe
	}
	if n.Elastic != ipam.ElasticOff {
		f.Elastic = n.Elastic.String()
	}
	f.PutBack = string(n.PutBack)
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
	switch {
	case f.Probe == nil && other.Probe != nil:
		f.Probe = new(string)
	case f.Probe != nil && other.Probe != nil && *f.Probe == *other.Probe:
		f.Probe = nil
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
	if f.Elastic == other.Elastic {
		f.Elastic = ""
	}
	if f.PutBack == other.PutBack {
		f.PutBack = ""
	}
	return f
}

func createNetwork(e *ipam.CreateNetwork, c *run) (ipam.Result, error) {
	space := cmp.Or(e.Space, ipam.LocalSpace)
	if err := ipam.CheckName("space", space); err != nil {
		return ipam.Result{}, err
	}
	if len(e.Subnets) > maxSubnets {
		return ipam.Result{}, ipam.Help(ipam.Refuse(ipam.ErrInvalid,
			"the network %s is to have %d subnets; one request makes at most %d",
			e.Name, len(e.Subnets), maxSubnets), ipam.Advise(ipam.DoImportInstead))
	}
	if err := NameFree(c.Change, e.Name); err != nil {
		return ipam.Result{}, err
	}
	kind, err := ipam.ParseNetworkType(e.Type)
	if err != nil {
		return ipam.Result{}, err
	}
	n := &ipam.Network{ID: c.NewID(), Name: e.Name, Space: space, Type: kind, Created: c.Now(), Planned: true}
	tags := map[string]*string{}
	for key, value := range e.Tags {
		tags[key] = &value
	}
	set := ipam.ModifyNetwork{Tags: tags, MACPrefix: &e.MACPrefix, Links: e.Links, Sticky: e.Sticky,
		Quarantine: e.Quarantine, Headroom: &e.Headroom, Probe: &e.Probe,
		PutBack: &e.PutBack, OwnerRules: e.OwnerRules}
	if err := SetFields(&set, n); err != nil {
		return ipam.Result{}, err
	}
	if err := c.EnsureSpace(space); err != nil {
		return ipam.Result{}, err
	}
	p := c.plan(n)
	if im := c.imports; im != nil {
		if err := im.hide(p); err != nil {
			return ipam.Result{}, err
		}
	}
	facts := FactsOfNetwork(n)
	facts.Static = e.Static
	if err := p.Note(&ipam.Event{Verb: ipam.NetworkCreated}, nil, facts); err != nil {
		return ipam.Result{}, err
	}
	for i := range e.Subnets {
		if _, err := p.addSubnet(&e.Subnets[i]); err != nil {
			return ipam.Result{}, err
		}
	}
	if len(e.Static) > 0 {
		if err := p.setStatic(e.Static); err != nil {
			return ipam.Result{}, err
		}
	}
	return ipam.Result{Network: n.ID}, nil
}

func modifyNetwork(e *ipam.ModifyNetwork, c *run) (ipam.Result, error) {
	p, err := OpenPlan(c, e.Network, e)
	if err != nil {
		return ipam.Result{}, err
	}
	edited := *p.N
	edited.Tags, edited.Links, edited.Rules = maps.Clone(edited.Tags), slices.Clone(edited.Links),
		slices.Clone(edited.Rules)
	if e.Name != nil && *e.Name != edited.Name {
		if err := NameFree(c.Change, *e.Name); err != nil {
			return ipam.Result{}, err
		}
		edited.Name = *e.Name
	}
	if err := SetFields(e, &edited); err != nil {
		return ipam.Result{}, err
	}
	if e.Elastic != nil {
		mode, err := ipam.ParseElasticMode(*e.Elastic)
		if err != nil {
			return ipam.Result{}, err
		}
		if err := elastic.SetMode(c.Change, &edited, mode); err != nil {
			return ipam.Result{}, err
		}
	}
	if err := elastic.MayLink(&edited, e.Links); err != nil {
		return ipam.Result{}, err
	}
	if err := p.setLAN(e); err != nil {
		return ipam.Result{}, err
	}
	before, after := FactsOfNetwork(p.N), FactsOfNetwork(&edited)
	before.Static, after.Static = Bands(c.Index(), edited.ID), Bands(c.Index(), edited.ID)
	if e.Static != nil {
		if err := p.setStatic(*e.Static); err != nil {
			return ipam.Result{}, err
		}
		after.Static = Bands(c.Index(), edited.ID)
	}
	p.N = &edited
	if edited.Stage != "" { // nobody sees it, and it has no revision
		if err := c.SetNetwork(edited.ID, &edited); err != nil {
			return ipam.Result{}, err
		}
	}
	return ipam.Result{Network: edited.ID}, p.Note(&ipam.Event{Verb: ipam.NetworkModified}, before.differing(after),
		after.differing(before))
}

// SetFields sets what e says of a network but for its name.
func SetFields(e *ipam.ModifyNetwork, n *ipam.Network) error {
	if e.MACPrefix != nil {
		prefix := strings.ToLower(*e.MACPrefix)
		if err := checkMACPrefix(prefix); err != nil {
			return err
		}
		n.MACPrefix = prefix
	}
	for _, key := range slices.Sorted(maps.Keys(e.Tags)) {
		if err := n.SetTag(key, e.Tags[key]); err != nil {
			return err
		}
	}
	if err := n.CheckTags(); err != nil {
		return err
	}
	for _, link := range e.Links {
		if err := SetLink(n, link); err != nil {
			return err
		}
	}
	if e.Sticky != nil {
		n.Policy.Forget = !*e.Sticky
	}
	if e.Quarantine != nil {
		if *e.Quarantine < 0 {
			return ipam.Refuse(ipam.ErrInvalid, "the quarantine %s is negative", time.Duration(*e.Quarantine))
		}
		n.Policy.Quarantine = time.Duration(*e.Quarantine)
	}
	for _, r := range e.OwnerRules {
		if err := n.SetRule(r); err != nil {
			return err
		}
	}
	if e.Headroom != nil {
		if err := SetHeadroom(n, *e.Headroom); err != nil {
			return err
		}
	}
	if e.PutBack != nil {
		if err := SetPutBack(n, *e.PutBack); err != nil {
			return err
		}
	}
	if e.Probe != nil {
		return SetProbe(n, *e.Probe)
	}
	return nil
}

// SetPutBack says which containers of the network are put back to their own addresses.
func SetPutBack(n *ipam.Network, mode string) (err error) {
	n.PutBack, err = ipam.ParsePutBackMode(mode)
	return err
}

// SetProbe names the hosts' interface to the network's LAN, or one for each host; empty: nothing is probed.
func SetProbe(n *ipam.Network, parent string) error {
	if err := (ipam.LANTerms{DHCPParent: parent}).CheckDHCP(); err != nil {
		return err
	}
	n.Probe = parent
	return nil
}

// MaxHeadroom is how much of it an attachment can have: all of it is claimed by, and written for, each host.
const MaxHeadroom = 1024

// SetHeadroom says how many addresses each host keeps claimed for each of its attachments.
func SetHeadroom(n *ipam.Network, wanted int) error {
	switch {
	case wanted < 0 || wanted > MaxHeadroom:
		return ipam.Refuse(ipam.ErrInvalid, "a headroom of %d addresses is none: write 0 to %d", wanted, MaxHeadroom)
	case wanted > 0 && n.Space == ipam.LocalSpace:
		return ipam.Refuse(ipam.ErrInvalid,
			"network %s is in the space local, which each host keeps for itself: it needs no "+
				"headroom", n.Name)
	case wanted > 0 && n.Type != ipam.Manual:
		return ipam.RefuseAs(ipam.WrongType, ipam.ErrInvalid,
			"network %s is of the type %s: Berth chooses none of its addresses, "+
				"and can keep none as headroom", n.Name, n.Type)
	}
	n.Headroom = wanted
	return nil
}

var macPrefixForm = regexp.MustCompile(`^[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}$`)

// checkMACPrefix refuses what does not begin the MAC address of one interface: an odd first octet is that of a group
// (IEEE 802).
func checkMACPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if !macPrefixForm.MatchString(prefix) {
		return ipam.Refuse(ipam.ErrInvalid, "%q begins no MAC address: write three octets, such as aa:00:00", prefix)
	}
	if strings.ContainsRune("13579bdf", rune(prefix[1])) {
		return ipam.Refuse(ipam.ErrInvalid,
			"MAC addresses that begin with %s are those of groups (the first octet is odd); "+
				"choose an even one, such as aa:00:00", prefix)
	}
	return nil
}

// linkModes are the ways in which a network is connected to a host, as they are told to one who mistyped one.
var linkModes = []string{"bridged", "routed", "macvlan", "ipvlan", "ovs"}

// SetLink sets the L2 attachment of one host, or removes it where it has no mode.
func SetLink(n *ipam.Network, l ipam.Link) error {
	if err := ipam.CheckName("host", l.Host); err != nil {
		return err
	}
	n.Links = slices.DeleteFunc(n.Links, func(other ipam.Link) bool { return other.Host == l.Host })
	if l.Mode == "" && l.Link == "" {
		return nil
	}
	if !slices.Contains(linkModes, l.Mode) {
		return ipam.Refuse(ipam.ErrInvalid, "%q is no mode of a link on host %s: use one of %s", l.Mode, l.Host,
			strings.Join(linkModes, ", "))
	}
	if l.Link == "" || len(l.Link) > 63 || strings.ContainsFunc(l.Link,
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return ipam.Refuse(ipam.ErrInvalid, "%q names no bridge, parent or table on host %s: write a name such as br0",
			l.Link,
			l.Host)
	}
	n.Links = append(n.Links, l)
	slices.SortFunc(n.Links, func(a, b ipam.Link) int { return cmp.Compare(a.Host, b.Host) })
	return nil
}
