package doors

import (
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// TestImport: the largest import that Berth promises, of 100,000 reservations, leaves little in memory but its
// records. Under -short it is a tenth of them.
func TestImport(t *testing.T) {
	networks, most := 100, mostImporting
	if testing.Short() {
		networks, most = 10, mostResident
	}
	d := start(t)
	c := client.New(d.admin())
	defer c.Close()
	said := d.suffers(func() {
		if _, err := c.Import(t.Context(), large(networks), false, nil); err != nil {
			t.Error(err)
		}
	}, func() {})
	t.Logf("an import of %d reservations: %s", networks*perNetwork, said)
	if is := d.memory(); is.now > mostResident || is.most > float64(most) {
		t.Errorf("%.0f MiB are resident, and at most %.0f were", is.now, is.most)
	}
}

const perNetwork = 1000 // reservations

// large is a plan of n networks.
func large(networks int) (p ipam.Plan) {
	for n := range networks {
		at := func(a, b int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(100 + n), byte(a), byte(b)}) }
		one := ipam.PlannedNetwork{Name: fmt.Sprintf("plan%03d", n),
			Subnets: []ipam.PlannedSubnet{{CIDR: netip.PrefixFrom(at(0, 0), 16)}}}
		for i := range perNetwork {
			one.Reservations = append(one.Reservations, ipam.PlannedReservation{Owner: fmt.Sprintf("web-%d", i),
				Address: at(1+i/250, 1+i%250)})
		}
		p.Networks = append(p.Networks, one)
	}
	return p
}
