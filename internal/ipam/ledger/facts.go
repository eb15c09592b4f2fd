package ledger

import (
	"net/netip"
	"reflect"

	"berth/internal/ipam"
)

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
	Pools       []ipam.Pool  `json:"pools,omitempty"`

	Exclusions []ipam.Exclusion `json:"exclusions,omitempty"`
	Static     []ipam.Range     `json:"static,omitempty"`
}

// FactsOfSubnet returns the facts of a subnet for its events.
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

// Differing returns both values without the fields in which they are equal.
func Differing[T any](was, is T) (T, T) {
	before, after := reflect.ValueOf(&was).Elem(), reflect.ValueOf(&is).Elem()
	for _, f := range reflect.VisibleFields(before.Type()) {
		a, b := before.FieldByIndex(f.Index), after.FieldByIndex(f.Index)
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			a.SetZero()
			b.SetZero()
		}
	}
	return was, is
}
