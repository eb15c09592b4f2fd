package ipam

import (
	"errors"
	"fmt"

	"berth/store"
)

// errStop ends a walk over leases.
var errStop = errors.New("seen enough")

// unused refuses a subnet that somebody uses: a Docker network, the holder of an address or, unless reservations do not
// count, an owner (GA-11).
func (p *plan) unused(sub *Subnet, reserved bool) error {
	if n := len(sub.Attachments); n > 0 {
		return &refusal{ErrInUse, fmt.Sprintf("%s on the subnet %s of network %s; remove it with `docker network rm` first", dockerNetworks(n), sub.CIDR, p.n.Name)}
	}
	var used error
	err := eachLease(p.tx, sub.ID, func(l *Lease) error {
		switch {
		case l.Held() && (l.Kind != Gateway || l.Attachment != (ID{})):
			used = &refusal{ErrInUse, fmt.Sprintf("the subnet %s of network %s is in use: %s is held by %s, which must give it back first", sub.CIDR, p.n.Name, l.Address, l.Holder())}
		case l.Reservation != nil && !reserved:
			used = &refusal{ErrInUse, fmt.Sprintf("the subnet %s of network %s is in use: %s is reserved for %s; end that with `berth reservation rm`", sub.CIDR, p.n.Name, l.Address, l.Reservation.Owner)}
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

// eachLease walks over all records of a subnet's addresses, until fn fails.
func eachLease(tx store.Tx, subnet ID, fn func(*Lease) error) error {
	for rec, err := range tx.Scan(leasesOf(subnet)) {
		if err != nil {
			return err
		}
		_, addr, ok := leaseKeyParts(rec.Key)
		if !ok {
			return fmt.Errorf("%w: the key %x names no address", ErrDamaged, rec.Key)
		}
		l, err := decodeLease(addr, rec.Value)
		if err != nil {
			return err
		}
		if err := fn(l); err != nil {
			return err
		}
	}
	return nil
}
