package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/store"
	"go4.org/netipx"
)

// overlapping reads the subnet of a space that overlaps cidr and is not self, nil where there is none. Since subnets of a
// space are disjoint, only the last one to begin before the end of cidr can, or the one before that where the last is self.
func (c *change) overlapping(space string, cidr netip.Prefix, self ID) (*Subnet, error) {
	family := subnetFamily(nil, space, cidr.Addr().Is6())
	last := appendAddr(slices.Clone(family), lastAddr(cidr))
	for rec, err := range c.tx.Scan(store.Range{From: family, To: append(last, 0), Reverse: true, Limit: 2}) {
		if err != nil {
			return nil, err
		}
		sub := new(Subnet)
		if err := decodeJSON("a subnet of space "+space, rec.Value, sub); err != nil {
			return nil, err
		}
		switch {
		case sub.ID == self:
		case sub.CIDR.Overlaps(cidr):
			return sub, nil
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// checkResize refuses another CIDR of a subnet where it overlaps another subnet (GA-13), or where the part cut off holds a
// lease, a reservation or an exclusion (GA-14), and trims the pools.
func (p *plan) checkResize(sub, edited *Subnet) error {
	if err := checkPrefix(edited.CIDR); err != nil {
		return err
	}
	if edited.CIDR.Addr().Is4() != sub.CIDR.Addr().Is4() {
		return &refusal{ErrInvalid, fmt.Sprintf("the subnet %s cannot become %s, which is of the other family; add that one, and remove this", sub.CIDR, edited.CIDR)}
	}
	if err := p.noOverlap(edited.CIDR, sub.ID); err != nil {
		return err
	}
	for _, x := range sub.Exclusions {
		if !covers(edited.CIDR, x.Range.IPRange) {
			return &refusal{ErrInUse, fmt.Sprintf("the subnet %s cannot become %s: the exclusion %s would be cut off; take it out with `berth exclusion rm` first", sub.CIDR, edited.CIDR, x)}
		}
	}
	for _, band := range sub.Static {
		if !covers(edited.CIDR, band.IPRange) {
			return &refusal{ErrInUse, fmt.Sprintf("the subnet %s cannot become %s: the static band %s would be cut off; change it with `berth network modify --static` first", sub.CIDR, edited.CIDR, band)}
		}
	}
	if err := p.checkCutOff(sub, edited); err != nil {
		return err
	}
	edited.Pools = trimmed(sub.Pools, wholeRange(edited.CIDR).IPRange)
	return nil
}

// checkCutOff refuses to cut off an address that somebody has or owns; the gateway counts unless it changes, too.
func (p *plan) checkCutOff(sub, edited *Subnet) error {
	var used error
	err := eachLease(p.tx, sub.ID, func(l *Lease) error {
		why := notHost(edited.CIDR, l.Address)
		replaced := l.Address == sub.Gateway && edited.Gateway != sub.Gateway
		if why == "" || replaced || !l.Held() && l.Reservation == nil {
			return nil
		}
		whose := "reserved for " + holderOf(l)
		switch {
		case l.Address == sub.Gateway:
			whose = "its gateway, for which --gateway gives another one"
		case l.Held():
			whose = "held by " + holderOf(l)
		}
		used = &refusal{ErrInUse, fmt.Sprintf("the subnet %s cannot become %s: %s, %s, would be %s", sub.CIDR, edited.CIDR, l.Address, whose, why)}
		return errStop
	})
	if errors.Is(err, errStop) {
		return used
	}
	return err
}

// holderOf names who has an address, or else whose it is.
func holderOf(l *Lease) string {
	if l.Held() {
		return l.Holder()
	}
	return l.Reservation.Owner
}

// trimmed is the pools less what lies outside of r.
func trimmed(pools []Pool, r netipx.IPRange) []Pool {
	left := []Pool{}
	for _, pool := range pools {
		if both, ok := intersect(pool.Range.IPRange, r); ok {
			left = append(left, Pool{pool.Name, Range{both}})
		}
	}
	return left
}

// resize writes the subnet under its other CIDR. Its leases are keyed by its id and stay.
func (p *plan) resize(sub, edited *Subnet) error {
	sx, outside, err := p.indexOf(edited)
	if err != nil {
		return err
	}
	for _, addr := range outside {
		p.edit.strays = append(p.edit.strays, stray{sub.ID, addr})
	}
	if err := p.tx.Delete(subnetKey(nil, sub.Space, sub.CIDR)); err != nil {
		return err
	}
	raw, err := p.putJSON(subnetKey(nil, edited.Space, edited.CIDR), edited, false)
	if err != nil {
		return err
	}
	if err := p.moveAttachments(edited); err != nil {
		return err
	}
	sx.record = cached[Subnet]{raw, edited}
	before := p.ix.dropSubnet(sub)
	p.ix.putSubnet(edited, sx)
	p.undo = append(p.undo, func() {
		p.ix.dropSubnet(edited)
		p.ix.putSubnet(sub, before)
	})
	return nil
}

// moveAttachments tells attachments that are being ended where their subnet is now; others keep it from changing.
func (p *plan) moveAttachments(edited *Subnet) error {
	for id, known := range p.ix.attachments {
		if known.value.Subnet != edited.ID {
			continue
		}
		at, err := p.attachment(id)
		if err != nil {
			return err
		}
		moved := *at
		moved.CIDR = edited.CIDR
		if err := p.setAttachment(id, &moved); err != nil {
			return err
		}
	}
	return nil
}

// indexOf builds the index of a subnet from its records, and lists the memories that lie outside of it.
func (p *plan) indexOf(sub *Subnet) (sx *subnetIndex, outside []netip.Addr, err error) {
	sx = newSubnetIndex(sub.CIDR, &p.ix.ends)
	var leases []*Lease
	err = eachLease(p.tx, sub.ID, func(l *Lease) error {
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

// stray is the memory of an address that lies outside of its subnet since that was made smaller. It means nothing.
type stray struct {
	subnet ID
	addr   netip.Addr
}

// sweepStrays deletes the strays that the index knows, in pages.
func (s *Service) sweepStrays(ctx context.Context) error {
	for {
		s.mu.Lock()
		page := slices.Clone(s.ix.strays[:min(len(s.ix.strays), s.page)])
		s.mu.Unlock()
		if len(page) == 0 {
			return nil
		}
		err := s.update(ctx, func(c *change) error {
			for _, one := range page {
				if err := c.sweepStray(one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.ix.strays = slices.DeleteFunc(s.ix.strays, func(one stray) bool { return slices.Contains(page, one) })
		s.mu.Unlock()
	}
}

// sweepStray deletes one, unless its subnet has grown over it again.
func (c *change) sweepStray(one stray) error {
	if sx := c.ix.subnets[one.subnet]; sx != nil && sx.usable.Contains(one.addr) {
		return nil
	}
	l, err := c.lease(one.subnet, one.addr)
	if err != nil || !l.Remembered() || l.Reservation != nil {
		return err
	}
	return c.tx.Delete(leaseKey(nil, one.subnet, one.addr))
}
