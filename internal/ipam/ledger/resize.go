package ledger

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// Overlapping reads the subnet of a space that overlaps cidr and is not self, or nil. Subnets of a space are disjoint.
// So only the last one that begins before the end of cidr can overlap, or the one before it if the last is self.
func (c *Change) Overlapping(space string, cidr netip.Prefix, self ipam.ID) (*ipam.Subnet, error) {
	family := subnetFamily(nil, space, cidr.Addr().Is6())
	last := ipam.AppendAddr(slices.Clone(family), ipam.LastAddr(cidr))
	near := store.Range{From: family, To: append(last, 0), Reverse: true, Limit: 2}
	for one, err := range EachJSON[ipam.Subnet](c.tx, near, "a subnet of space "+space) {
		if err != nil {
			return nil, err
		}
		switch sub := one.Value; {
		case sub.ID == self:
		case sub.CIDR.Overlaps(cidr):
			return sub, nil
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// ReadIndex builds the index of a subnet from its records. outside lists the memories that lie outside of the subnet.
func (c *Change) ReadIndex(sub *ipam.Subnet) (sx *SubnetIndex, outside []netip.Addr, err error) {
	sx = newSubnetIndex(sub.CIDR, &c.index.ends)
	var leases []*ipam.Lease
	err = EachLease(c.tx, sub.ID, func(l *ipam.Lease) error {
		if sx.usable.Contains(l.Address) {
			leases = append(leases, l)
		} else {
			outside = append(outside, l.Address)
		}
		return nil
	})
	sx.load(leases)
	return sx, outside, err
}

// Stray is the memory of an address that is outside of its subnet since the subnet was made smaller. It has no effect.
type Stray struct {
	Subnet ipam.ID
	Addr   netip.Addr
}
