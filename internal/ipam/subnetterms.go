package ipam

import (
	"cmp"
	"net/netip"
	"strconv"
)

// What is said of a subnet as a whole, its name, gateway and DHCP flag, has a form in edits, one in documents and one
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
	Pool        bool         `json:"pool,omitempty"` // a pool of the whole subnet (GA-15, GA-18)
}

// Subnet is the record of one that is made as the spec says, at the place that was found for it.
func (spec *SubnetSpec) Subnet(id ID, n *Network, cidr netip.Prefix) *Subnet {
	return &Subnet{ID: id, Network: n.ID, Space: n.Space, Name: spec.Name, CIDR: cidr, Gateway: spec.Gateway,
		GatewayNote: spec.GatewayNote, NoGateway: !spec.Gateway.IsValid(), DHCP: spec.DHCP, Pools: []Pool{}}
}

// ModifySubnet changes what is not nil (GA-11 to GA-14).
type ModifySubnet struct {
	Network string        `json:"network"`
	Subnet  string        `json:"subnet"`
	Name    *string       `json:"name,omitempty"` // "": none
	CIDR    *netip.Prefix `json:"cidr,omitempty"`
	Gateway *netip.Addr   `json:"gateway,omitempty"` // the zero Addr: none
	// "": none. Without it the gateway keeps its note, and another one has none.
	GatewayNote *string `json:"gateway_note,omitempty"`
	DHCP        *bool   `json:"dhcp,omitempty"`
}

// Over is the subnet as the edit wants it, but for its CIDR, with which its ranges change.
func (e *ModifySubnet) Over(sub Subnet) Subnet {
	if e.Name != nil {
		sub.Name = *e.Name
	}
	if e.DHCP != nil {
		sub.DHCP = *e.DHCP
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

// CheckTexts refuses a subnet whose name is none, or the note of its gateway, or that has a note and no gateway.
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
	return CheckNote(sub.GatewayNote)
}

// PlannedSubnet is one subnet of a Plan.
type PlannedSubnet struct {
	CIDR        netip.Prefix       `json:"cidr"`
	Name        string             `json:"name,omitempty"`
	Gateway     netip.Addr         `json:"gateway,omitzero"`
	GatewayNote string             `json:"gateway_note,omitempty"`
	DHCP        bool               `json:"dhcp,omitempty"`
	Static      []PlannedBand      `json:"static,omitempty"`
	Pools       []PlannedPool      `json:"pools,omitempty"`
	Exclusions  []PlannedExclusion `json:"exclusions,omitempty"`
	Line        int                `json:"line,omitempty"`
}

// Planned is how a document says it, without its ranges.
func (sub *Subnet) Planned() PlannedSubnet {
	return PlannedSubnet{CIDR: sub.CIDR, Name: sub.Name, Gateway: sub.Gateway, GatewayNote: sub.GatewayNote,
		DHCP: sub.DHCP}
}

// Spec is how an edit would make it, without its ranges.
func (p *PlannedSubnet) Spec() *SubnetSpec {
	return &SubnetSpec{CIDR: p.CIDR, Name: p.Name, Gateway: p.Gateway, GatewayNote: p.GatewayNote, DHCP: p.DHCP}
}

// SubnetDifference is one thing that a document wants otherwise than it is.
type SubnetDifference struct{ What, Is, Wanted string }

// Against tells what of the subnet differs from what is there. What a document does not say differs in nothing.
func (p *PlannedSubnet) Against(there *Subnet) (all []SubnetDifference) {
	if p.Name != "" && p.Name != there.Name {
		all = append(all, SubnetDifference{"name", cmp.Or(there.Name, "none"), p.Name})
	}
	if p.Gateway.IsValid() && p.Gateway != there.Gateway {
		is := "none"
		if there.Gateway.IsValid() {
			is = there.Gateway.String()
		}
		all = append(all, SubnetDifference{"gateway", is, p.Gateway.String()})
	}
	if p.GatewayNote != "" && p.GatewayNote != there.GatewayNote {
		is := "none"
		if there.GatewayNote != "" {
			is = strconv.Quote(there.GatewayNote)
		}
		all = append(all, SubnetDifference{"gateway's note", is, strconv.Quote(p.GatewayNote)})
	}
	if p.DHCP && !there.DHCP {
		all = append(all, SubnetDifference{"DHCP flag", "off", "on"})
	}
	return all
}

// SubnetPlan is a subnet as its network shows it.
type SubnetPlan struct {
	ID          ID              `json:"id"`
	Name        string          `json:"name"`
	CIDR        netip.Prefix    `json:"cidr"`
	Gateway     netip.Addr      `json:"gateway"`
	GatewayNote string          `json:"gateway_note,omitempty"`
	DHCP        bool            `json:"dhcp"`
	Pools       []PoolPlan      `json:"pools"`
	Exclusions  []ExclusionPlan `json:"exclusions"`
	Held        uint64          `json:"held"`
	Reserved    uint64          `json:"reserved"`
	Docker      int             `json:"docker"`
}

// Shown is how its network shows it, without its ranges and what is in use of it.
func (sub *Subnet) Shown() SubnetPlan {
	return SubnetPlan{ID: sub.ID, Name: sub.Name, CIDR: sub.CIDR, Gateway: sub.Gateway,
		GatewayNote: sub.GatewayNote, DHCP: sub.DHCP, Pools: []PoolPlan{}, Exclusions: []ExclusionPlan{},
		Docker: len(sub.Attachments)}
}
