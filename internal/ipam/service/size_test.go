package service_test

import (
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/mem"
)

// recordsOf returns the number of a state's records, and their bytes, for n leases from a pool of a whole subnet.
func recordsOf(t *testing.T, subnet string, leases int) (records, size int) {
	t.Helper()
	st := mem.New()
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, ipamtest.NewClock().Now)
	cidr := netip.MustParsePrefix(subnet)
	_, err := s.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1",
		Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true}}})
	fine(t, err)
	grant, err := s.RequestPool(t.Context(), ipam.PoolRequest{Network: "net1", CIDR: cidr, IPv6: cidr.Addr().Is6()})
	fine(t, err)
	for i := range leases {
		req := ipam.AddressRequest{Pool: grant.ID, Name: fmt.Sprintf("web-%03d", i)}
		if _, err := s.RequestAddress(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	err = st.View(t.Context(), func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			records, size = records+1, size+len(rec.Key)+len(rec.Value)
		}
		return nil
	})
	fine(t, err)
	return records, size
}

// TestPoolSize: the size of a state depends on the leases, not on the pool. A /64 takes as many records as a /24,
// and as many bytes apart from the longer addresses (GA-28).
func TestPoolSize(t *testing.T) {
	for _, leases := range []int{0, 1, 100} {
		records, size := recordsOf(t, "2001:db8::/64", leases)
		for _, other := range []struct {
			subnet string
			longer int // bytes by which an address is longer; a lease has it three times with its event
		}{{"2001:db8::/120", 0}, {"10.20.0.0/24", 12}} {
			n, bytes := recordsOf(t, other.subnet, leases)
			if most := bytes + 64 + other.longer*(3*leases+8); n != records || size > most {
				t.Errorf("%d leases of a /64 are %d records of %d bytes; those of %s %d of %d", leases, records, size,
					other.subnet, n, bytes)
			}
		}
	}
}
