package edit

import (
	"cmp"
	"fmt"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// given is a DHCP lease and its subnet.
type given struct {
	sub   *ipam.Subnet
	lease *ipam.Lease
}

// givenIn reads the DHCP leases in a network, except those being returned.
func (p *Plan) givenIn() (all []given, err error) {
	nx := p.Index().NetworkIndex(p.N.ID)
	if nx == nil {
		return nil, nil
	}
	for _, id := range nx.Subnets() {
		sub := p.Index().Subnet(id).Record()
		if !sub.FromDHCP() {
			continue
		}
		if err := ledger.EachLease(p.Tx(), id, func(l *ipam.Lease) error {
			if !l.DHCP.IsReturned() {
				all = append(all, given{sub, l})
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// noneGiven refuses to stop asking a subnet's DHCP server while its leases are in use. Nobody would renew them, and the
// server would give the addresses to others.
func (p *Plan) noneGiven(sub *ipam.Subnet) error {
	var first *ipam.Lease
	n := 0
	err := ledger.EachLease(p.Tx(), sub.ID, func(l *ipam.Lease) error {
		if !l.Held() || !l.DHCP.Lasts(p.Now()) {
			return nil
		}
		if n++; first == nil {
			first = l
		}
		return nil
	})
	if err != nil || n == 0 {
		return err
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more in use)", n-1)
	}
	return ipam.Refuse(ipam.ErrInUse, "%s has %s from the DHCP server of the subnet %s%s, and nobody would renew that "+
		"lease; stop the containers on network %s first, or name another interface",
		cmp.Or(first.Name, first.MAC.String()), first.Address, sub.CIDR, more, p.Called())
}

// showGiven adds the owner's DHCP lease: the held one, otherwise the one kept for the owner.
func (p *Plan) showGiven(info *ipam.ReservationInfo, all []given) {
	for _, one := range all {
		l := one.lease
		if !allocator.LeaseOf(p.N, l, info.Owner) || info.InUse || info.Leased.IsValid() && !l.Held() {
			continue
		}
		info.Leased, info.Subnet, info.Host, info.InUse = l.Address, one.sub.CIDR, l.Host, l.Held()
		if l.Held() {
			info.Endpoint = cmp.Or(l.Name, l.MAC.String())
		}
	}
}
