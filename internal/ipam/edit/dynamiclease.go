package edit

import (
	"cmp"
	"fmt"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// given is a lease of a DHCP server, with the subnet that it is in.
type given struct {
	sub   *ipam.Subnet
	lease *ipam.Lease
}

// givenIn reads the leases of DHCP servers in a network (LN-15), but for those that are on their way back.
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

// noneGiven refuses to ask the DHCP server of a subnet no more while somebody has an address of it: nobody would renew
// that, and the server would give it to another one.
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
		more = fmt.Sprintf(" and %d more are in use, too", n-1)
	}
	return ipam.Refuse(ipam.ErrInUse, "%s has %s of the DHCP server of the subnet %s%s, which nobody would renew any "+
		"more, so that the server would give it to another one; stop what runs on network %s first, or name another "+
		"interface", cmp.Or(first.Name, first.MAC.String()), first.Address, sub.CIDR, more, p.Called())
}

// showGiven adds to what is shown of an owner the lease that he has, else the one that is kept for him.
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
