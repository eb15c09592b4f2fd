package edit

import (
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// errStop ends a walk over leases.
var errStop = errors.New("seen enough")

// heldHere refuses a subnet in which an address is held, with the command that releases it.
func (p *Plan) heldHere(sub *ipam.Subnet, l *ipam.Lease) error {
	refused := ipam.Refuse(ipam.ErrInUse, "the subnet %s of network %s is in use: %s is held by %s", sub.CIDR,
		p.Called(),
		l.Address, l.Holder())
	switch l.Kind {
	case ipam.External:
		return refused.Advise(ipam.DoReleaseOwner, p.Called(), l.Name)
	case ipam.Headroom:
		return refused.Advise(ipam.DoLowerHeadroom)
	}
	return refused.Advise(ipam.DoReleaseDead)
}

// unused refuses a subnet in use: by a Docker network, a holder or, unless reserved is set, an owner.
func (p *Plan) unused(sub *ipam.Subnet, reserved bool) error {
	if n := len(sub.Attachments); n > 0 {
		return ipam.Refuse(ipam.ErrInUse, "%s on the subnet %s of network %s; run `docker network rm` first",
			dockerNetworks(n), sub.CIDR, p.Called())
	}
	var used error
	err := ledger.EachLease(p.Tx(), sub.ID, func(l *ipam.Lease) error {
		switch {
		case l.Held() && (l.Kind != ipam.Gateway || l.Attachment != (ipam.ID{})):
			used = p.heldHere(sub, l)
		case l.Reservation != nil && !reserved:
			used = ipam.Refuse(ipam.ErrInUse, "the subnet %s of network %s is in use: %s is reserved for %s",
				sub.CIDR,
				p.Called(), l.Address, l.Reservation.Owner).Advise(ipam.DoEndReservation)
		default:
			return nil
		}
		return errStop
	})
	if errors.Is(err, errStop) {
		return used
	}
	return err
}

// eachLeaseIn is ledger.EachLease for a range of addresses.
func eachLeaseIn(tx store.Tx, subnet ipam.ID, r ipam.Range, fn func(*ipam.Lease) error) error {
	end := append(ledger.LeaseKey(nil, subnet, r.To()), 0)
	return ledger.EachLeaseOf(tx, store.Range{From: ledger.LeaseKey(nil, subnet, r.From()), To: end}, fn)
}
