package ipamtest

import (
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// PlanForEdits has something of every kind, for edits to change.
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

// editsOfAllKinds can be made to PlanForEdits, each by itself.
const editsOfAllKinds = `
	network new space=lab subnet=10.0.0.0/24,gw=10.0.0.1,pool
	network.set net1 name=core tag.site=b
	network.rm spare
	subnet spare 203.0.113.0/24 gw=203.0.113.1 pool
	subnet.set net1 2001:db8::/64 cidr=2001:db8::/56 name=six gw=2001:db8::1
	subnet.rm net1 2001:db8::/64
	pool net1 192.0.2.150+9 name=back
	pool.set net1 front first
	pool.rm net1 192.0.2.20-192.0.2.50
	exclude net1 192.0.2.30+2 note=x
	include net1 192.0.2.62
	reserve net1 db
	unreserve net1 web
	take net1 vm 0:ip0=192.0.2.200,ip1=pool
	release net1 rtr
`

// EditsOfAllKinds returns edits of PlanForEdits by operation. Each can be made by itself.
func EditsOfAllKinds(t testing.TB) map[string]ipam.Edit {
	t.Helper()
	all := map[string]ipam.Edit{}
	for _, e := range Edits(t, editsOfAllKinds) {
		all[e.Op()] = e
	}
	return all
}

// DynamicPlan returns a network whose addresses somebody else chooses. Its owners take several transactions.
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
