package ipam

import (
	"net/netip"
	"regexp"
	"strings"
)

// What is said of a subnet as a whole, its name, gateway, note and how it stands with DHCP, has a form in edits, one in
// documents and one
// in answers. They stand here together with how they become the record and come out of it.

// SubnetSpec describes a subnet that is to be made: by its CIDR, or as the lowest free prefix of Bits inside From.
type SubnetSpec struct {
	CIDR        netip.Prefix `json:"cidr,omitzero"`
	Bits        int          `json:"bits,omitempty"`
	From        netip.Prefix `json:"from,omitzero"`
	Name        string       `json:"name,omitempty"`
	Gateway     netip.Addr   `json:"gateway,omitzero"` // zero: none (GA-5)
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        bool         `json:"dhcp,omitempty"`
	Note        string       `json:"note,omitempty"`
	LANTerms
	Pool bool `json:"pool,omitempty"` // a pool of the whole subnet (GA-15, GA-18)

	ID ID `json:"-"` // zero: one is drawn. No client can say one
}

// Subnet is the record of one that is made as the spec says, at the place that was found for it.
func (spec *SubnetSpec) Subnet(id ID, n *Network, cidr netip.Prefix) *Subnet {
	return &Subnet{ID: id, Network: n.ID, Space: n.Space, Name: spec.Name, CIDR: cidr, Gateway: spec.Gateway,
		GatewayNote: spec.GatewayNote, NoGateway: !spec.Gateway.IsValid(), DHCP: spec.DHCP || spec.FromDHCP(),
		LANTerms: spec.LANTerms, Note: spec.Note, Pools: []Pool{}}
}

// ModifySubnet changes what is not nil (GA-11 to GA-14).
type ModifySubnet struct {
	Network string        `json:"network"`
	Subnet  string        `json:"subnet"`
	CIDR    *netip.Prefix `json:"cidr,omitempty"`
	Name    *string       `json:"name,omitempty"`    // "": none
	Gateway *netip.Addr   `json:"gateway,omitempty"` // the zero Addr: none
	// "": none. Without it the gateway keeps its note, and another one has none.
	GatewayNote *string `json:"gateway_note,omitempty"`
	DHCP        *bool   `json:"dhcp,omitempty"`        // false also ends that a server is asked
	Note        *string `json:"note,omitempty"`        // "": none
	DHCPParent  *string `json:"dhcp_parent,omitempty"` // "": no server is asked any more
	DHCPID      *LANID  `json:"dhcp_id,omitempty"`
}

// Over is the subnet as the edit wants it, but for its CIDR, with which its ranges change.
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

// CheckLAN refuses a subnet whose addresses cannot come from its LAN's DHCP server (LN-15).
func (sub *Subnet) CheckLAN(n *Network) error {
	if err := sub.CheckDHCP(); err != nil || !sub.FromDHCP() {
		return err
	}
	switch {
	case n.Type != Dynamic:
		return RefuseAs(WrongType, ErrInvalid, "network %s is of the type %s, of which no DHCP server chooses the "+
			"addresses; make it with --type dynamic", n.Name, n.Type)
	case len(sub.Pools) > 0:
		return RefuseAs(WrongType, ErrInvalid, "the addresses of the subnet %s come from its DHCP server by %s, and so "+
			"out of no pool; leave out the pool %s", sub.CIDR, sub.DHCPParent, sub.Pools[0].Range)
	}
	return nil
}

// CheckTexts refuses a subnet whose name or note is none, or the note of its gateway, or that has that and no gateway.
func (sub *Subnet) CheckTexts() error {
	if sub.Name != "" {
		if err := CheckName("subnet", sub.Name); err != nil {
			return err
		}
	}
	if sub.GatewayNote != "" && !sub.Gateway.IsValid() {
		return Refuse(ErrInvalid, "the subnet %s has no gateway, and so no note on it; give it a gateway, or leave "+
			"the note out", sub.CIDR)
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
	Gateway     netip.Addr   `json:"gateway,omitzero" plan:",null"`
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        bool         `json:"dhcp,omitempty"`
	LANTerms
	Note       string             `json:"note,omitempty"` // what the subnet is for, in a person's words
	Static     []PlannedBand      `json:"static,omitempty"`
	Whole      bool               `json:"-" plan:"pool"` // in a document alone: its one pool is all of it
	Pools      []PlannedPool      `json:"pools,omitempty"`
	Exclusions []PlannedExclusion `json:"exclusions,omitempty"`
	Line       int                `json:"line,omitempty"`
}

// Planned is how a document says it, without its ranges.
func (sub *Subnet) Planned() PlannedSubnet {
	return PlannedSubnet{CIDR: sub.CIDR, Name: sub.Name, Gateway: sub.Gateway, GatewayNote: sub.GatewayNote,
		DHCP: sub.DHCP, LANTerms: sub.LANTerms, Note: sub.Note}
}

// Spec is how an edit would make it, without its ranges.
func (p *PlannedSubnet) Spec() *SubnetSpec {
	return &SubnetSpec{CIDR: p.CIDR, Name: p.Name, Gateway: p.Gateway, GatewayNote: p.GatewayNote, DHCP: p.DHCP,
		LANTerms: p.LANTerms, Note: p.Note}
}

// SubnetPlan is a subnet as its network shows it.
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

// Shown is how its network shows it, without its ranges and what is in use of it.
func (sub *Subnet) Shown() SubnetPlan {
	return SubnetPlan{ID: sub.ID, Name: sub.Name, CIDR: sub.CIDR, Gateway: sub.Gateway,
		GatewayNote: sub.GatewayNote, DHCP: sub.DHCP, LANTerms: sub.LANTerms, Note: sub.Note, Pools: []PoolPlan{},
		Exclusions: []ExclusionPlan{},
		Docker:     len(sub.Attachments)}
}

// LANTerms say by which interface of a host a LAN's DHCP server is asked for a subnet's addresses, and as whom (LN-15).
// The zero LANTerms say that none is asked.
type LANTerms struct {
	// DHCPParent is an interface such as eth0 or, where hosts have different ones, alpha=eth0,beta=eno1.
	DHCPParent string `json:"dhcp_parent,omitempty"`
	DHCPID     LANID  `json:"dhcp_id,omitempty"`
}

// LANID says by what a DHCP server knows who asks.
type LANID string

// The ways of being known.
const (
	LANByOwner LANID = ""    // by a client identifier that is the owner's; written "owner"
	LANByMAC   LANID = "mac" // by the MAC of the endpoint, and no client identifier: for servers that reserve by MAC
)

func (id LANID) String() string {
	if id == LANByOwner {
		return "owner"
	}
	return string(id)
}

// ParseLANID reads owner or mac; empty is owner.
func ParseLANID(s string) (LANID, error) {
	switch s {
	case "", "owner":
		return LANByOwner, nil
	case string(LANByMAC):
		return LANByMAC, nil
	}
	return LANByOwner, Refuse(ErrInvalid, "%q is no way of being known to a DHCP server: write owner or mac", s)
}

// linkForm is what the kernel takes as the name of an interface, less what would not be told from other words.
var linkForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@+-]{0,14}$`)

// FromDHCP tells whether a DHCP server chooses the addresses.
func (t LANTerms) FromDHCP() bool { return t.DHCPParent != "" }

// CheckDHCP refuses terms that can be no host's.
func (t LANTerms) CheckDHCP() error {
	if _, err := ParseLANID(string(t.DHCPID)); err != nil {
		return err
	}
	if !t.FromDHCP() {
		if t.DHCPID != LANByOwner {
			return Refuse(ErrInvalid, "as whom a DHCP server is asked (%s) needs the interface by which it is; give both",
				t.DHCPID)
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
			return Refuse(ErrInvalid, "%q is no interface: write one such as eth0 or, for hosts that have different "+
				"ones, alpha=eth0,beta=eno1", part)
		}
		if hosts[host] || two != (strings.Contains(t.DHCPParent, "=")) {
			return Refuse(ErrInvalid, "%q names an interface twice: write one for all hosts, or one for each, such as "+
				"alpha=eth0,beta=eno1", t.DHCPParent)
		}
		hosts[host] = true
	}
	return nil
}

// ParentOn is the interface of a host; empty where the host has none.
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
