package edit

import (
	"context"
	"errors"

	"go4.org/netipx"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// checkResize refuses a new CIDR that overlaps another subnet, or cuts off a lease, reservation, exclusion or
// static band. It trims the pools.
func (p *Plan) checkResize(sub, edited *ipam.Subnet) error {
	if err := ipam.CheckSubnet(edited.CIDR); err != nil {
		return err
	}
	if edited.CIDR.Addr().Is4() != sub.CIDR.Addr().Is4() {
		return ipam.Refuse(ipam.ErrInvalid, "the subnet %s cannot become %s, which has another address family; add "+
			"the new subnet, and remove the old one", sub.CIDR, edited.CIDR)
	}
	if err := p.noOverlap(edited.CIDR, sub.ID); err != nil {
		return err
	}
	for _, x := range sub.Exclusions {
		if !ipam.Covers(edited.CIDR, x.Range.IPRange) {
			return ipam.Refuse(ipam.ErrInUse,
				"the subnet %s cannot become %s: the exclusion %s would be cut off", sub.CIDR,
				edited.CIDR, x).Advise(ipam.DoEndExclusion)
		}
	}
	for _, band := range sub.Static {
		if !ipam.Covers(edited.CIDR, band.IPRange) {
			return ipam.Refuse(ipam.ErrInUse,
				"the subnet %s cannot become %s: the static band %s would be cut off",
				sub.CIDR, edited.CIDR, band).Advise(ipam.DoModifyStatic)
		}
	}
	if err := p.checkCutOff(sub, edited); err != nil {
		return err
	}
	edited.Pools = trimmed(sub.Pools, allocator.WholeRange(edited.CIDR).IPRange)
	return nil
}

// checkCutOff refuses to cut off a held or reserved address. The gateway counts unless the edit also changes it.
func (p *Plan) checkCutOff(sub, edited *ipam.Subnet) error {
	var used error
	err := ledger.EachLease(p.Tx(), sub.ID, func(l *ipam.Lease) error {
		why := allocator.NotHost(edited.CIDR, l.Address)
		replaced := l.Address == sub.Gateway && edited.Gateway != sub.Gateway
		if why == "" || replaced || !l.Held() && l.Reservation == nil {
			return nil
		}
		whose := "reserved for " + holderOf(l)
		switch {
		case l.Address == sub.Gateway:
			whose = "its gateway, which --gateway can change"
		case l.Held():
			whose = "held by " + holderOf(l)
		}
		used = ipam.Refuse(ipam.ErrInUse, "the subnet %s cannot become %s: %s, %s, would be %s", sub.CIDR, edited.CIDR,
			l.Address,
			whose, why)
		return errStop
	})
	if errors.Is(err, errStop) {
		return used
	}
	return err
}

// holderOf names the holder of an address, otherwise its owner.
func holderOf(l *ipam.Lease) string {
	if l.Held() {
		return l.Holder()
	}
	return l.Reservation.Owner
}

// trimmed returns the parts of the pools inside r.
func trimmed(pools []ipam.Pool, r netipx.IPRange) []ipam.Pool {
	left := []ipam.Pool{}
	for _, pool := range pools {
		if both, ok := ledger.Intersect(pool.Range.IPRange, r); ok {
			left = append(left, ipam.Pool{Name: pool.Name, Range: ipam.Range{IPRange: both}})
		}
	}
	return left
}

// Resize stores the subnet with its new CIDR. Its leases stay, because their keys have its id.
func (p *Plan) Resize(sub, edited *ipam.Subnet) error {
	sx, outside, err := p.ReadIndex(edited)
	if err != nil {
		return err
	}
	p.AddStrays(sub.ID, outside)
	if err := p.moveAttachments(edited); err != nil {
		return err
	}
	return p.MoveSubnet(sub, edited, sx)
}

// moveAttachments updates the CIDR of attachments that are ending. Active attachments prevent a resize.
func (p *Plan) moveAttachments(edited *ipam.Subnet) error {
	for id, at := range p.Index().Attachments() {
		if at.Subnet != edited.ID {
			continue
		}
		at, err := p.Attachment(id)
		if err != nil {
			return err
		}
		moved := *at
		moved.CIDR = edited.CIDR
		if err := p.SetAttachment(id, &moved); err != nil {
			return err
		}
	}
	return nil
}

// sweepStrays deletes the strays that the index knows, in batches.
func sweepStrays(ctx context.Context, s *ledger.Ledger) error {
	for {
		page := s.Strays()
		if len(page) == 0 {
			return nil
		}
		err := s.Update(ctx, func(c *ledger.Change) error {
			for _, one := range page {
				if err := sweepStray(c, one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.StraysSwept(page)
	}
}

// sweepStray deletes one stray, unless its subnet covers it again.
func sweepStray(c *ledger.Change, one ledger.Stray) error {
	if sx := c.Index().Subnet(one.Subnet); sx != nil && sx.Usable().Contains(one.Addr) {
		return nil
	}
	l, err := c.Lease(one.Subnet, one.Addr)
	if err != nil {
		return err
	}
	if !l.Remembered() || l.Reservation != nil {
		return nil
	}
	return c.Tx().Delete(ledger.LeaseKey(nil, one.Subnet, one.Addr))
}
