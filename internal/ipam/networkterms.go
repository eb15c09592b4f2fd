package ipam

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A network's own settings have one form in edits, one in documents and one in answers. This file has these forms, the
// record, and the conversions. Documents, tables, comparisons and events follow the json tags.

// Network carries the name, the tags and the policy of its subnets. A network made for a pool that Docker
// requested is named `net-` plus the first eight digits of its id. It ends with its last attachment, unless it is
// Planned.
type Network struct {
	ID    ID                `json:"id"`
	Name  string            `json:"name"` // unique in a store
	Space string            `json:"space"`
	Tags  map[string]string `json:"tags,omitempty"`
	// the first three octets, such as "aa:00:00", of MACs in Compose overrides
	MACPrefix string      `json:"mac_prefix,omitempty"`
	Links     []Link      `json:"links,omitempty"` // sorted by host
	Policy    Policy      `json:"policy"`
	Type      NetworkType `json:"type,omitempty"`
	Rules     []OwnerRule `json:"rules,omitempty"` // in the order of their creation
	// addresses that each host keeps claimed for each of its attachments
	Headroom int         `json:"headroom,omitempty"`
	Elastic  ElasticMode `json:"elastic,omitempty"`
	// the hosts' interface to a LAN shared with other machines, which Berth probes for them; empty: no probes
	Probe string `json:"probe,omitempty"`
	// which containers are put back to their own addresses if the engine did not identify them
	PutBack PutBackMode `json:"put_back,omitempty"`
	Note    string      `json:"note,omitempty"` // its purpose, in a person's words
	Created time.Time   `json:"created"`
	// FormerNames are accepted from Docker (`--ipam-opt network=NAME`) until another network gets them; oldest first.
	FormerNames []string `json:"former_names,omitempty"`

	// Planned networks were made, edited, or used for a reservation by a person. They stay when Docker leaves them.
	Planned bool `json:"planned,omitempty"`
	// Revision is the id of the event of the last change to the network, its subnets, pools or exclusions.
	Revision uint64 `json:"revision,omitempty"`
	// Stage is set while the network is incomplete. Then nobody sees it and it gives no address.
	Stage Stage `json:"stage,omitempty"`
	// Importer is the daemon whose import writes an Arriving network. Nil means the daemon of the host that owns
	// the store.
	Importer *Importer `json:"importer,omitempty"`
}

// CreateNetwork makes a network with its subnets.
type CreateNetwork struct {
	Name       string            `json:"name"`
	Space      string            `json:"space,omitempty"` // default: local
	Tags       map[string]string `json:"tags,omitempty"`
	MACPrefix  string            `json:"mac_prefix,omitempty"`
	Links      []Link            `json:"links,omitempty"`
	Sticky     *bool             `json:"sticky,omitempty"`
	Quarantine *Duration         `json:"quarantine,omitempty"`
	// addresses that each host keeps claimed for each of its attachments
	Headroom   int          `json:"headroom,omitempty"`
	Probe      string       `json:"probe,omitempty"`    // the hosts' interface to the LAN, see Network
	PutBack    string       `json:"put_back,omitempty"` // default (if empty), reserved, all or off
	Note       string       `json:"note,omitempty"`
	Type       string       `json:"type,omitempty"` // manual (default), dynamic or vip
	Static     []Range      `json:"static,omitempty"`
	OwnerRules []OwnerRule  `json:"owner_rules,omitempty"`
	Subnets    []SubnetSpec `json:"subnets,omitempty"`
	// names that Docker's requests may also use, see Network
	FormerNames []string `json:"former_names,omitempty"`
}

// Network returns the record of the network that the edit creates, without its subnets.
func (e *CreateNetwork) Network(id ID, now time.Time) (*Network, error) {
	kind, err := ParseNetworkType(e.Type)
	if err != nil {
		return nil, err
	}
	said := ModifyNetwork{Tags: map[string]*string{}, MACPrefix: &e.MACPrefix, Links: e.Links, Sticky: e.Sticky,
		Quarantine: e.Quarantine, Headroom: &e.Headroom, Probe: &e.Probe, PutBack: &e.PutBack, Note: &e.Note,
		OwnerRules: e.OwnerRules, FormerNames: &e.FormerNames}
	for key, value := range e.Tags {
		said.Tags[key] = &value
	}
	return said.Over(Network{ID: id, Name: e.Name, Space: cmp.Or(e.Space, LocalSpace), Type: kind, Created: now,
		Planned: true})
}

// ModifyNetwork changes the fields that are not nil.
type ModifyNetwork struct {
	Network    string             `json:"network"`
	Name       *string            `json:"name,omitempty"`
	Tags       map[string]*string `json:"tags,omitempty"` // nil removes a tag; tags that are not named stay
	MACPrefix  *string            `json:"mac_prefix,omitempty"`
	Links      []Link             `json:"links,omitempty"` // replaces the host's link; an empty Mode and Link remove it
	Sticky     *bool              `json:"sticky,omitempty"`
	Quarantine *Duration          `json:"quarantine,omitempty"`
	Headroom   *int               `json:"headroom,omitempty"`
	Probe      *string            `json:"probe,omitempty"`    // empty: no probes
	PutBack    *string            `json:"put_back,omitempty"` // reserved, all, off or default
	Note       *string            `json:"note,omitempty"`     // empty removes the note
	// replaces the former names; a new Name adds the present one
	FormerNames *[]string `json:"former_names,omitempty"`
	// replaces the bands for static use
	Static *[]Range `json:"static,omitempty"`
	// each replaces the rule with the same pattern; one without owner and pool removes it
	OwnerRules []OwnerRule `json:"owner_rules,omitempty"`
	Elastic    *string     `json:"elastic,omitempty"` // off, on or auto
	// for the subnets marked as served by DHCP or, if none is, for all
	DHCPParent *string `json:"dhcp_parent,omitempty"` // empty: ask no server
	DHCPID     *LANID  `json:"dhcp_id,omitempty"`
}

// Over returns the network after the edit. It leaves out the name, which may be taken, and elastic addresses and
// subnets.
func (e *ModifyNetwork) Over(n Network) (*Network, error) {
	n.Tags, n.Links, n.Rules = maps.Clone(n.Tags), slices.Clone(n.Links), slices.Clone(n.Rules)
	if e.MACPrefix != nil {
		n.MACPrefix = strings.ToLower(*e.MACPrefix)
		if err := checkMACPrefix(n.MACPrefix); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.Tags)) {
		if err := n.setTag(key, e.Tags[key]); err != nil {
			return nil, err
		}
	}
	if err := n.checkTags(); err != nil {
		return nil, err
	}
	for _, link := range e.Links {
		if err := setLink(&n, link); err != nil {
			return nil, err
		}
	}
	if e.Sticky != nil {
		n.Policy.Forget = !*e.Sticky
	}
	if e.Quarantine != nil {
		if *e.Quarantine < 0 {
			return nil, Refuse(ErrInvalid, "the quarantine %s is negative", time.Duration(*e.Quarantine))
		}
		n.Policy.Quarantine = time.Duration(*e.Quarantine)
	}
	for _, r := range e.OwnerRules {
		if err := n.setRule(r); err != nil {
			return nil, err
		}
	}
	if e.Headroom != nil {
		if err := setHeadroom(&n, *e.Headroom); err != nil {
			return nil, err
		}
	}
	if e.PutBack != nil {
		mode, err := ParsePutBackMode(*e.PutBack)
		if err != nil {
			return nil, err
		}
		n.PutBack = mode
	}
	if e.Note != nil {
		n.Note = *e.Note
		if err := CheckNote(n.Note); err != nil {
			return nil, err
		}
	}
	if e.FormerNames != nil {
		if err := n.setFormerNames(*e.FormerNames); err != nil {
			return nil, err
		}
	}
	if e.Probe != nil {
		n.Probe = *e.Probe
		if err := (LANTerms{DHCPParent: n.Probe}).CheckDHCP(); err != nil {
			return nil, err
		}
	}
	return &n, nil
}

// PlannedNetwork is one network of a Plan with all of its contents. An import creates the network, or adds what an
// existing one of this name lacks. A zero field leaves an existing network unchanged.
//
// Without a name, it stands for those networks of its space that have the addresses listed in it. It may then list only
// pools, exclusions, reservations and addresses.
type PlannedNetwork struct {
	Name         string               `json:"name,omitempty"`
	Space        string               `json:"space,omitempty"` // default: local
	Tags         map[string]string    `json:"tags,omitempty"`
	MACPrefix    string               `json:"mac_prefix,omitempty"`
	Links        []Link               `json:"links,omitempty"`
	Sticky       *bool                `json:"sticky,omitempty"`
	Quarantine   *Duration            `json:"quarantine,omitempty"`
	Headroom     int                  `json:"headroom,omitempty"`
	Elastic      string               `json:"elastic,omitempty"`     // off (default), on or auto
	Probe        string               `json:"probe,omitempty"`       // the hosts' interface to the LAN that is probed
	PutBack      string               `json:"put_back,omitempty"`    // default, reserved, all or off
	Type         string               `json:"type,omitempty"`        // manual (default), dynamic or vip
	Note         string               `json:"note,omitempty"`        // its purpose, in a person's words
	OwnerRules   []OwnerRule          `json:"owner_rules,omitempty"` // in the order in which they are tried
	FormerNames  []string             `json:"former_names,omitempty"`
	Subnets      []PlannedSubnet      `json:"subnets,omitempty"`
	Static       []PlannedBand        `json:"static,omitempty"` // each goes to the subnet that contains it
	Pools        []PlannedPool        `json:"pools,omitempty"`  // in addition to those listed with a subnet
	Exclusions   []PlannedExclusion   `json:"exclusions,omitempty"`
	Reservations []PlannedReservation `json:"reservations,omitempty"`
	Addresses    []PlannedAddress     `json:"addresses,omitempty"` // held by non-containers
	Line         int                  `json:"line,omitempty"`
	Cleared      Cleared              `json:"cleared,omitempty" plan:"-"`
}

// Document returns the form of a document, without the network's contents.
func (n *Network) Document() *PlannedNetwork {
	p := &PlannedNetwork{Name: n.Name, Space: n.Space, Tags: maps.Clone(n.Tags), MACPrefix: n.MACPrefix,
		Links: slices.Clone(n.Links), Headroom: n.Headroom, Probe: n.Probe, PutBack: string(n.PutBack),
		Type: string(n.Type), Note: n.Note, OwnerRules: slices.Clone(n.Rules),
		FormerNames: slices.Clone(n.FormerNames)}
	if n.Policy.Forget {
		p.Sticky = new(false)
	}
	if n.Policy.Quarantine > 0 {
		p.Quarantine = new(Duration(n.Policy.Quarantine))
	}
	if n.Elastic != ElasticOff {
		p.Elastic = n.Elastic.String()
	}
	return p
}

// Create returns the edit that makes the network, without its contents and elastic mode.
func (p *PlannedNetwork) Create() *CreateNetwork {
	return &CreateNetwork{Name: p.Name, Space: p.Space, Tags: p.Tags, MACPrefix: p.MACPrefix, Links: p.Links,
		Sticky: p.Sticky, Quarantine: p.Quarantine, Headroom: p.Headroom, Probe: p.Probe, PutBack: p.PutBack,
		Type: p.Type, Note: p.Note, OwnerRules: p.OwnerRules, FormerNames: p.FormerNames}
}

// NetworkInfo is a network as shown to users, with all that is planned in it.
type NetworkInfo struct {
	ID        ID                `json:"id"`
	Name      string            `json:"name"`
	Recorded  string            `json:"-"` // the unique name in its record, by which lists are sorted
	Space     string            `json:"space"`
	Tags      map[string]string `json:"tags"`
	MACPrefix string            `json:"mac_prefix"`

	// The first subnet of each family, and the map of its first pool. They date from when a network had only one
	// subnet.
	CIDR     netip.Prefix `json:"cidr"`
	Gateway  netip.Addr   `json:"gateway"`
	CIDR6    netip.Prefix `json:"cidr6"`
	Gateway6 netip.Addr   `json:"gateway6"`
	Map      string       `json:"map,omitempty"`

	CIDRs      []netip.Prefix `json:"-"` // of all its subnets, also in brief lists
	Subnets    []SubnetPlan   `json:"subnets"`
	Type       string         `json:"type"` // manual, dynamic or vip
	Static     []Range        `json:"static"`
	OwnerRules []OwnerRule    `json:"owner_rules"`
	Links      []Link         `json:"links"`
	Sticky     bool           `json:"sticky"`
	Quarantine Duration       `json:"quarantine,omitempty"`
	// addresses that each host keeps claimed for each Docker network
	Headroom int    `json:"headroom,omitempty"`
	Elastic  string `json:"elastic"`         // off, on or auto
	Probe    string `json:"probe,omitempty"` // the hosts' interface to the LAN that is probed
	// which containers are put back; omitted if each host's daemon decides
	PutBack  PutBackMode `json:"put_back,omitempty"`
	Note     string      `json:"note,omitempty"`
	Planned  bool        `json:"planned"` // it stays when Docker leaves it
	Revision uint64      `json:"revision"`
	Created  time.Time   `json:"created"`
	Docker   int         `json:"docker"` // Docker networks on it
	Use      Use         `json:"use"`    // of its addresses

	// Docker's requests may still use them
	FormerNames []string `json:"former_names,omitempty"`
}

// Shown returns the network for lists, without its contents.
func (n *Network) Shown() NetworkInfo {
	info := NetworkInfo{ID: n.ID, Name: n.Name, Recorded: n.Name, Space: n.Space, Tags: map[string]string{},
		MACPrefix: n.MACPrefix, Subnets: []SubnetPlan{}, Type: n.Type.String(), Static: []Range{},
		OwnerRules: append([]OwnerRule{}, n.Rules...), Links: append([]Link{}, n.Links...), Sticky: !n.Policy.Forget,
		Quarantine: Duration(n.Policy.Quarantine), Headroom: n.Headroom, Elastic: n.Elastic.String(), Probe: n.Probe,
		PutBack: n.PutBack, Note: n.Note, Planned: n.Planned,
		Revision: n.LastRevision(), Created: n.Created, FormerNames: slices.Clone(n.FormerNames)}
	maps.Copy(info.Tags, n.Tags)
	return info
}

// MaxHeadroom is the maximum headroom of an attachment. Each host claims all of it and writes a record for each
// address.
const MaxHeadroom = 1024

// setHeadroom sets how many addresses each host keeps claimed for each of its attachments.
func setHeadroom(n *Network, wanted int) error {
	switch {
	case wanted < 0 || wanted > MaxHeadroom:
		return Refuse(ErrInvalid, "a headroom of %d addresses is invalid: write 0 to %d", wanted, MaxHeadroom)
	case wanted > 0 && n.Space == LocalSpace:
		return Refuse(ErrInvalid, "network %s is in the space local, which belongs to one host: it needs no headroom",
			n.Name)
	case wanted > 0 && n.Type != Manual:
		return RefuseAs(WrongType, ErrInvalid, "network %s has the type %s: Berth does not choose its addresses, so "+
			"it keeps no headroom", n.Name, n.Type)
	}
	n.Headroom = wanted
	return nil
}

// OwnerMAC returns the MAC of an owner on a network: the network's prefix, or a locally administered one if it is empty,
// and a hash. It is constant for the network and the owner. try is 0, or the next number if that MAC is another owner's.
func OwnerMAC(network ID, prefix, owner string, try int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", network, owner, try))
	if prefix == "" {
		return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
	}
	return fmt.Sprintf("%s:%02x:%02x:%02x", prefix, sum[0], sum[1], sum[2])
}

var macPrefixForm = regexp.MustCompile(`^[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}$`)

// checkMACPrefix refuses what cannot begin the MAC of a single interface. An odd first octet is a group address (IEEE
// 802).
func checkMACPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if !macPrefixForm.MatchString(prefix) {
		return Refuse(ErrInvalid, "%q is not the start of a MAC address: write three octets, such as aa:00:00", prefix)
	}
	if strings.ContainsRune("13579bdf", rune(prefix[1])) {
		return Refuse(ErrInvalid, "MAC addresses that begin with %s are group addresses (the first octet is odd); "+
			"choose an even one, such as aa:00:00", prefix)
	}
	return nil
}

// linkModes are the ways to connect a network to a host. The message about a wrong mode lists them.
var linkModes = []string{"bridged", "routed", "macvlan", "ipvlan", "ovs"}

// setLink sets the link of one host, or removes it if Mode and Link are empty.
func setLink(n *Network, l Link) error {
	if err := CheckName("host", l.Host); err != nil {
		return err
	}
	n.Links = slices.DeleteFunc(n.Links, func(other Link) bool { return other.Host == l.Host })
	if l.Mode == "" && l.Link == "" {
		return nil
	}
	if !slices.Contains(linkModes, l.Mode) {
		return Refuse(ErrInvalid, "%q is not a link mode on host %s: use one of %s", l.Mode, l.Host,
			strings.Join(linkModes, ", "))
	}
	if l.Link == "" || len(l.Link) > 63 || strings.ContainsFunc(l.Link,
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return Refuse(ErrInvalid, "%q cannot name a bridge, parent or table on host %s: write a name such as br0",
			l.Link, l.Host)
	}
	n.Links = append(n.Links, l)
	slices.SortFunc(n.Links, func(a, b Link) int { return cmp.Compare(a.Host, b.Host) })
	return nil
}
