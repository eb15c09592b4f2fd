package ipamtest

import (
	"fmt"
	"net/netip"

	"berth/internal/ipam"
)

// PlanForEdits has something of everything, for edits to change.
const PlanForEdits = `
	network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan+2001:db8::/64,pool tag.site=a
	network spare
	pool net1 192.0.2.10-192.0.2.100 name=front
	exclude net1 192.0.2.60+5 note=printers
	reserve net1 web 192.0.2.11
	take net1 rtr 0:ip0=192.0.2.12,ip1=pool
	take net1 gone 192.0.2.200
	release net1 gone
	attach A net=net1
	ask A mac=1
	attach B cidr=198.51.100.0/24
`

// EditsOfAllKinds are edits that can be made of planForEdits, each by itself.
func EditsOfAllKinds() map[string]ipam.Edit {
	return map[string]ipam.Edit{
		"network.create": &ipam.CreateNetwork{Name: "new", Space: "lab",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.0.0.0/24"),
				Gateway: netip.MustParseAddr("10.0.0.1"), Pool: true}}},
		"network.modify": &ipam.ModifyNetwork{Network: "net1", Name: new("core"),
			Tags: map[string]*string{"site": new("b")}},
		"network.remove": &ipam.RemoveNetwork{Network: "spare"},
		"subnet.add": &ipam.AddSubnet{Network: "spare",
			SubnetSpec: ipam.SubnetSpec{CIDR: netip.MustParsePrefix("203.0.113.0/24"),
				Gateway: netip.MustParseAddr("203.0.113.1"), Pool: true}},
		"subnet.modify": &ipam.ModifySubnet{Network: "net1", Subnet: "2001:db8::/64",
			CIDR: new(netip.MustParsePrefix("2001:db8::/56")), Name: new("six"),
			Gateway: new(netip.MustParseAddr("2001:db8::1"))},
		"subnet.remove": &ipam.RemoveSubnet{Network: "net1", Subnet: "2001:db8::/64"},
		"pool.add":      &ipam.AddPool{Network: "net1", Range: MustRange("192.0.2.150+9"), Name: "back"},
		"pool.modify":   &ipam.ModifyPool{Network: "net1", Pool: "front", Name: "first"},
		"pool.remove":   &ipam.RemovePool{Network: "net1", Pool: "192.0.2.20-192.0.2.50"},

		"exclusion.add":      &ipam.AddExclusion{Network: "net1", Range: MustRange("192.0.2.30+2"), Note: "x"},
		"exclusion.remove":   &ipam.RemoveExclusion{Network: "net1", Range: MustRange("192.0.2.62")},
		"reservation.add":    &ipam.AddReservation{Network: "net1", Owner: "db"},
		"reservation.remove": &ipam.RemoveReservation{Network: "net1", Owner: "web"},
		"address.take": &ipam.TakeAddress{Network: "net1", Owner: "vm",
			Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("192.0.2.200")}, {Slot: 1}}}},
		"address.release": &ipam.ReleaseAddress{Network: "net1", Owner: "rtr"},
	}
}

// DynamicPlan is a network of which somebody else chooses the addresses, with so many owners that they take several
// transactions.
func DynamicPlan() ipam.PlannedNetwork {
	n := ipam.PlannedNetwork{Name: "seen", Type: "dynamic",
		OwnerRules: []ipam.OwnerRule{{Pattern: "vm-*", Owner: "vm/*"}},
		Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.3.0.0/24"),
			Gateway: netip.MustParseAddr("10.3.0.1")}}}
	for i := range 200 {
		n.Reservations = append(n.Reservations, ipam.PlannedReservation{Owner: fmt.Sprintf("vm/%d", i)})
	}
	return n
}
