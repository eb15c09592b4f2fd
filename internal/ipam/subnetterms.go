package ipam

import (
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// A subnet's own settings (name, gateway, note, DHCP) have one form in the record, in edits, documents, answers and
// events. This file has these forms and the conversions between them.

// Subnet is a prefix with its gateway, pools and exclusions (libnetwork's pool). Its record lists the
// attachments, so the record alone shows when the last one ends.
type Subnet struct {
	ID      ID           `json:"id"`
	Network ID           `json:"network"`
	Space   string       `json:"space"`
	Name    string       `json:"name,omitempty"` // unique in its network
	CIDR    netip.Prefix `json:"cidr"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	// a description of the gateway, in a person's words; removed with it
	GatewayNote string `json:"gateway_note,omitempty"`
	// the only attachment that requested the gateway, which ends with it; zero: it stays
	GatewayBy ID     `json:"gateway_by,omitzero"`
	NoGateway bool   `json:"no_gateway,omitempty"` // Berth chooses no gateway
	Note      string `json:"note,omitempty"`       // its purpose, in a person's words
	// a DHCP server serves it. Berth has no DHCP server, and asks that one if LANTerms are set.
	DHCP bool `json:"dhcp,omitempty"`
	LANTerms
	Pools      []Pool      `json:"pools"`
	Exclusions []Exclusion `json:"exclusions,omitempty"` // disjoint and ascending
	// bands for static use, from which Berth never chooses; disjoint and ascending
	Static      []Range   `json:"static,omitempty"`
	Attachments []ID      `json:"attachments"` // oldest first
	Created     time.Time `json:"created"`     // unique in a store; orders the subnets of a network
}

// SubnetSpec describes a subnet to be made: its CIDR, or the lowest free prefix of length Bits inside From.
type SubnetSpec struct {
	CIDR        netip.Prefix `json:"cidr,omitzero"`
	Bits        int          `json:"bits,omitempty"`
	From        netip.Prefix `json:"from,omitzero"`
	Name        string       `json:"name,omitempty"`
	Gateway     netip.Addr   `json:"gateway,omitzero"` // zero: none
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        bool         `json:"dhcp,omitempty"`
	Note        string       `json:"note,omitempty"`
	LANTerms
	Pool bool `json:"pool,omitempty"` // make a pool of the whole subnet

	ID ID `json:"-"` // zero: a random one; clients cannot set it
}

// Subnet returns the record of the subnet that the spec makes at cidr.
func (spec *SubnetSpec) Subnet(id ID, n *Network, cidr netip.Prefix) *Subnet {
	return &Subnet{ID: id, Network: n.ID, Space: n.Space, Name: spec.Name, CIDR: cidr, Gateway: spec.Gateway,
		GatewayNote: spec.GatewayNote, NoGateway: !spec.Gateway.IsValid(), DHCP: spec.DHCP || spec.FromDHCP(),
		LANTerms: spec.LANTerms, Note: spec.Note, Pools: []Pool{}}
}

// ModifySubnet changes the fields that are not nil.
type ModifySubnet struct {
	Network string        `json:"network"`
	Subnet  string        `json:"subnet"`
	CIDR    *netip.Prefix `json:"cidr,omitempty"`
	Name    *string       `json:"name,omitempty"`    // empty removes it
	Gateway *netip.Addr   `json:"gateway,omitempty"` // the zero Addr removes it
	// Empty removes it. If nil, the gateway keeps its note, and a new gateway has none.
	GatewayNote *string `json:"gateway_note,omitempty"`
	DHCP        *bool   `json:"dhcp,omitempty"`        // false also clears the LANTerms
	Note        *string `json:"note,omitempty"`        // empty removes it
	DHCPParent  *string `json:"dhcp_parent,omitempty"` // empty: ask no server
	DHCPID      *LANID  `json:"dhcp_id,omitempty"`
}

// Over returns the subnet after the edit, except for its CIDR, which also changes its ranges.
func (e *ModifySubnet) Over(sub Subnet) Subnet {
	if e.Name != nil {
		sub.Name = *e.Name
	}
	if e.DHCP != nil {
		if sub.DHCP = *e.DHCP; !sub.DHCP {
			sub.LANTerms = LANTerms{}
		}
	}
	if e.DHCPParent != nil {
		sub.DHCPParent, sub.DHCP = *e.DHCPParent, sub.DHCP || *e.DHCPParent != ""
		if !sub.FromDHCP() {
			sub.DHCPID = LANByOwner
		}
	}
	if e.DHCPID != nil {
		sub.DHCPID = *e.DHCPID
	}
	if e.Note != nil {
		sub.Note = *e.Note
	}
	if e.Gateway != nil {
		if *e.Gateway != sub.Gateway {
			sub.GatewayNote = ""
		}
		sub.Gateway, sub.NoGateway = *e.Gateway, !e.Gateway.IsValid()
	}
	if e.GatewayNote != nil {
		sub.GatewayNote = *e.GatewayNote
	}
	return sub
}

// CheckLAN refuses a subnet whose addresses cannot come from a DHCP server on its LAN.
func (sub *Subnet) CheckLAN(n *Network) error {
	if err := sub.CheckDHCP(); err != nil || !sub.FromDHCP() {
		return err
	}
	switch {
	case n.Type != Dynamic:
		return RefuseAs(WrongType, ErrInvalid, "network %s has the type %s, where no DHCP server chooses addresses; "+
			"create it with --type dynamic", n.Name, n.Type)
	case len(sub.Pools) > 0:
		return RefuseAs(WrongType, ErrInvalid, "the addresses of the subnet %s come from its DHCP server on %s, not "+
			"from a pool; leave out the pool %s", sub.CIDR, sub.DHCPParent, sub.Pools[0].Range)
	}
	return nil
}

// CheckTexts refuses an invalid note, and a gateway note without a gateway.
func (sub *Subnet) CheckTexts() error {
	if sub.GatewayNote != "" && !sub.Gateway.IsValid() {
		return Refuse(ErrInvalid, "the subnet %s has a gateway note but no gateway; add a gateway, or leave the note "+
			"out", sub.CIDR)
	}
	if err := CheckNote(sub.Note); err != nil {
		return err
	}
	return CheckNote(sub.GatewayNote)
}

// PlannedSubnet is one subnet of a Plan.
type PlannedSubnet struct {
	CIDR        netip.Prefix `json:"cidr"`
	Name        string       `json:"name,omitempty"`
	Gateway     netip.Addr   `json:"gateway,omitzero"`
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        bool         `json:"dhcp,omitempty"`
	LANTerms
	Note       string             `json:"note,omitempty"` // its purpose, in a person's words
	Static     []PlannedBand      `json:"static,omitempty"`
	Whole      bool               `json:"-" plan:"pool"` // only in documents: one pool covers the whole subnet
	Pools      []PlannedPool      `json:"pools,omitempty"`
	Exclusions []PlannedExclusion `json:"exclusions,omitempty"`
	Line       int                `json:"line,omitempty"`
	Cleared    Cleared            `json:"cleared,omitempty" plan:"-"`
}

// Planned returns the form of a document, without the subnet's ranges.
func (sub *Subnet) Planned() PlannedSubnet {
	return PlannedSubnet{CIDR: sub.CIDR, Name: sub.Name, Gateway: sub.Gateway, GatewayNote: sub.GatewayNote,
		DHCP: sub.DHCP, LANTerms: sub.LANTerms, Note: sub.Note}
}

// Spec returns the edit's form of the subnet, without its ranges.
func (p *PlannedSubnet) Spec() *SubnetSpec {
	return &SubnetSpec{CIDR: p.CIDR, Name: p.Name, Gateway: p.Gateway, GatewayNote: p.GatewayNote, DHCP: p.DHCP,
		LANTerms: p.LANTerms, Note: p.Note}
}

// SubnetPlan is a subnet as shown with its network.
type SubnetPlan struct {
	ID          ID           `json:"id"`
	Name        string       `json:"name"`
	CIDR        netip.Prefix `json:"cidr"`
	Gateway     netip.Addr   `json:"gateway"`
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        bool         `json:"dhcp"`
	LANTerms
	Note       string          `json:"note,omitempty"`
	Pools      []PoolPlan      `json:"pools"`
	Exclusions []ExclusionPlan `json:"exclusions"`
	Use        Use             `json:"use"`
	Docker     int             `json:"docker"`
}

// Shown returns the subnet as shown with its network, without its ranges and usage.
func (sub *Subnet) Shown() SubnetPlan {
	return SubnetPlan{ID: sub.ID, Name: sub.Name, CIDR: sub.CIDR, Gateway: sub.Gateway,
		GatewayNote: sub.GatewayNote, DHCP: sub.DHCP, LANTerms: sub.LANTerms, Note: sub.Note, Pools: []PoolPlan{},
		Exclusions: []ExclusionPlan{},
		Docker:     len(sub.Attachments)}
}

// SubnetFacts is the part of a subnet that its events record.
type SubnetFacts struct {
	Name        string       `json:"name,omitempty"`
	CIDR        netip.Prefix `json:"cidr,omitzero"`
	Gateway     string       `json:"gateway,omitempty"` // "none": the subnet has no gateway
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        *bool        `json:"dhcp,omitempty"`
	Note        string       `json:"note,omitempty"`
	DHCPParent  string       `json:"dhcp_parent,omitempty"`
	DHCPID      string       `json:"dhcp_id,omitempty"`
	Pools       []Pool       `json:"pools,omitempty"`
	Exclusions  []Exclusion  `json:"exclusions,omitempty"`
	Static      []Range      `json:"static,omitempty"`
}

// Facts returns the facts of the subnet for its events.
func (sub *Subnet) Facts() SubnetFacts {
	f := SubnetFacts{Name: sub.Name, CIDR: sub.CIDR, Gateway: "none", GatewayNote: sub.GatewayNote, DHCP: new(sub.DHCP),
		Note: sub.Note, Pools: sub.Pools, Exclusions: sub.Exclusions, Static: sub.Static}
	if sub.Gateway.IsValid() {
		f.Gateway = sub.Gateway.String()
	}
	if sub.FromDHCP() {
		f.DHCPParent, f.DHCPID = sub.DHCPParent, sub.DHCPID.String()
	}
	return f
}

// LANTerms define the host interface on which Berth asks a LAN's DHCP server for a subnet's addresses, and the identity
// that it uses. With the zero LANTerms it asks none.
type LANTerms struct {
	// DHCPParent is an interface such as eth0 or, if hosts differ, alpha=eth0,beta=eno1.
	DHCPParent string `json:"dhcp_parent,omitempty"`
	DHCPID     LANID  `json:"dhcp_id,omitempty"`
}

// LANID is how a DHCP server identifies a client.
type LANID string

// The ways to identify a client.
const (
	LANByOwner LANID = ""    // by a client identifier with the owner; written "owner"
	LANByMAC   LANID = "mac" // by the endpoint's MAC without a client identifier, for servers that reserve by MAC
)

func (id LANID) String() string {
	if id == LANByOwner {
		return "owner"
	}
	return string(id)
}

// ParseLANID reads owner or mac. Empty means owner.
func ParseLANID(s string) (LANID, error) {
	switch s {
	case "", "owner":
		return LANByOwner, nil
	case string(LANByMAC):
		return LANByMAC, nil
	}
	return LANByOwner, Refuse(ErrInvalid, "%q is not a DHCP client identity: write owner or mac", s)
}

// linkForm is the kernel's form of an interface name, without characters that would make it ambiguous here.
var linkForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@+-]{0,14}$`)

// FromDHCP reports whether a DHCP server chooses the addresses.
func (t LANTerms) FromDHCP() bool { return t.DHCPParent != "" }

// CheckDHCP refuses terms that are valid on no host.
func (t LANTerms) CheckDHCP() error {
	if _, err := ParseLANID(string(t.DHCPID)); err != nil {
		return err
	}
	if !t.FromDHCP() {
		if t.DHCPID != LANByOwner {
			return Refuse(ErrInvalid, "the DHCP client identity (%s) needs the DHCP interface; give both", t.DHCPID)
		}
		return nil
	}
	hosts := map[string]bool{}
	for part := range strings.SplitSeq(t.DHCPParent, ",") {
		host, link, two := strings.Cut(part, "=")
		if !two {
			link, host = host, ""
		}
		if two && CheckName("host", host) != nil || !linkForm.MatchString(link) {
			return Refuse(ErrInvalid, "%q is not an interface: write one such as eth0 or, if hosts differ, "+
				"alpha=eth0,beta=eno1", part)
		}
		if hosts[host] || two != (strings.Contains(t.DHCPParent, "=")) {
			return Refuse(ErrInvalid, "%q gives a host two interfaces: write one interface for all hosts, or one for "+
				"each host, such as alpha=eth0,beta=eno1", t.DHCPParent)
		}
		hosts[host] = true
	}
	return nil
}

// ParentOn returns the interface for a host, or the empty string.
func (t LANTerms) ParentOn(host string) string {
	for part := range strings.SplitSeq(t.DHCPParent, ",") {
		on, link, two := strings.Cut(part, "=")
		if !two {
			return on
		}
		if on == host {
			return link
		}
	}
	return ""
}
