package ledger

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// SubnetFacts is what events tell of a subnet.
type SubnetFacts struct {
	Name        string       `json:"name,omitempty"`
	CIDR        netip.Prefix `json:"cidr,omitzero"`
	Gateway     string       `json:"gateway,omitempty"` // "none" where there is none
	GatewayNote string       `json:"gateway_note,omitempty"`
	DHCP        *bool        `json:"dhcp,omitempty"`
	Note        string       `json:"note,omitempty"`
	DHCPParent  string       `json:"dhcp_parent,omitempty"`
	DHCPID      string       `json:"dhcp_id,omitempty"`
	Pools       []ipam.Pool  `json:"pools,omitempty"`

	Exclusions []ipam.Exclusion `json:"exclusions,omitempty"`
	Static     []ipam.Range     `json:"static,omitempty"`
}

// FactsOfSubnet is what the events of a subnet tell of it.
func FactsOfSubnet(sub *ipam.Subnet) SubnetFacts {
	gateway, dhcp := "none", sub.DHCP
	if sub.Gateway.IsValid() {
		gateway = sub.Gateway.String()
	}
	f := SubnetFacts{Name: sub.Name, CIDR: sub.CIDR, Gateway: gateway, GatewayNote: sub.GatewayNote, DHCP: &dhcp,
		Note: sub.Note, Pools: sub.Pools, Exclusions: sub.Exclusions, Static: sub.Static}
	if sub.FromDHCP() {
		f.DHCPParent, f.DHCPID = sub.DHCPParent, sub.DHCPID.String()
	}
	return f
}

// Differing is f less what is the same in other.
func (f SubnetFacts) Differing(other SubnetFacts) SubnetFacts {
	if f.Name == other.Name {
		f.Name = ""
	}
	if f.CIDR == other.CIDR {
		f.CIDR = netip.Prefix{}
	}
	if f.Gateway == other.Gateway {
		f.Gateway = ""
	}
	if f.GatewayNote == other.GatewayNote {
		f.GatewayNote = ""
	}
	if *f.DHCP == *other.DHCP {
		f.DHCP = nil
	}
	if f.Note == other.Note {
		f.Note = ""
	}
	if f.DHCPParent == other.DHCPParent {
		f.DHCPParent = ""
	}
	if f.DHCPID == other.DHCPID {
		f.DHCPID = ""
	}
	if slices.Equal(f.Pools, other.Pools) {
		f.Pools = nil
	}
	if slices.Equal(f.Exclusions, other.Exclusions) {
		f.Exclusions = nil
	}
	if slices.Equal(f.Static, other.Static) {
		f.Static = nil
	}
	return f
}
