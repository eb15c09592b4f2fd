package ipam

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"berth/store"
)

// pageSize is Service.page of a host's own store. That of a shared one fits a transaction of etcd, which makes 128 writes at
// most: a larger one would keep all other hosts waiting.
const (
	pageSize       = 512
	sharedPageSize = 48
)

// ReleasePool ends an attachment with the leases taken through it (LN-2, LN-10). The last one to go takes its subnet and
// network with it. An attachment that is not there is no error. It succeeds with addresses still out, since
// the engine leaks some.
func (s *Service) ReleasePool(ctx context.Context, pool ID) error {
	return s.end(ctx, pool, func(*change, *Attachment) (bool, error) { return true, nil })
}

// end ends an attachment if a condition holds, which is asked in the same transaction. What a failure cuts off after that
// is gone on with by a repetition, by Run and by the next Open.
func (s *Service) end(ctx context.Context, pool ID, condition func(*change, *Attachment) (bool, error)) error {
	var gone *Subnet
	var inherited []ID
	var ended, last bool
	err := s.update(ctx, func(c *change) error {
		at, err := c.attachment(pool)
		if err != nil {
			return err
		}
		gone, inherited, ended, last = &Subnet{ID: at.Subnet, Space: at.Space, CIDR: at.CIDR}, c.ix.inheritedBy(pool), at.Ended, false
		if ended {
			return nil
		}
		if ended, err = condition(c, at); err != nil || !ended {
			return err
		}
		found, _, err := c.subnetOf(at)
		if err != nil {
			return err
		}
		last, err = c.detach(at, found)
		return err
	})
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && !ended:
		return nil
	case err != nil:
		return err
	case last:
		return s.sweep(ctx, gone)
	}
	if err := s.releaseLeases(ctx, pool, gone.ID); err != nil {
		return err
	}
	return s.releaseInherited(ctx, pool, inherited)
}

// detach takes the attachment off its subnet, and the subnet away with the last one. Leases stay for now: those of a
// subnet that is gone mean nothing, and those of an attachment that is Ended are released in pages.
func (c *change) detach(at *Attachment, found *Subnet) (last bool, err error) {
	edited := *found
	edited.Attachments = without(found.Attachments, at.ID)
	if _, err := c.event(&Event{Verb: PoolReleased, Space: at.Space, Subnet: at.CIDR, Attachment: at.ID}); err != nil {
		return false, err
	}
	n := c.ix.network(found.Network)
	planned := n != nil && n.Planned
	switch {
	case planned: // its pools are not the attachments' to take away
	case len(edited.Attachments) == 0:
		return true, c.endSubnet(at, found)
	default:
		if edited.Pools, err = c.poolsLeft(&edited, at); err != nil {
			return false, err
		}
	}
	ended := *at
	ended.Ended = true
	if err := c.setAttachment(at.ID, &ended); err != nil {
		return false, err
	}
	return false, c.setSubnet(&edited)
}

// poolsLeft is the subnet's pools less that of at, unless another attachment has the same.
func (c *change) poolsLeft(sub *Subnet, at *Attachment) ([]Pool, error) {
	gone := at.Pool
	if gone.IsZero() {
		gone = wholeRange(sub.CIDR)
	}
	for _, id := range sub.Attachments {
		other, err := c.attachment(id)
		if err != nil {
			return nil, err
		}
		if other.Pool == at.Pool {
			return sub.Pools, nil
		}
	}
	return slices.DeleteFunc(slices.Clone(sub.Pools), func(p Pool) bool { return p.Range == gone }), nil
}

// endSubnet removes the subnet and its network with the last attachment.
func (c *change) endSubnet(at *Attachment, sub *Subnet) error {
	if err := c.setAttachment(at.ID, nil); err != nil {
		return err
	}
	if _, err := c.event(&Event{Verb: SubnetRemoved, Space: sub.Space, Subnet: sub.CIDR, Name: c.networkName(sub.Network)}); err != nil {
		return err
	}
	if err := c.removeSubnet(sub); err != nil {
		return err
	}
	return c.setNetwork(sub.Network, nil)
}

// releaseLeases makes memories of all leases that were taken through an attachment which has Ended, and then removes it.
func (s *Service) releaseLeases(ctx context.Context, pool, subnet ID) error {
	page := leasesOf(subnet)
	page.Limit = s.page
	for page.From != nil {
		var next []byte
		err := s.update(ctx, func(c *change) (err error) {
			next, err = c.releasePage(pool, page)
			return err
		})
		if err != nil {
			return err
		}
		page.From = next
	}
	return s.update(ctx, func(c *change) error { return c.setAttachment(pool, nil) })
}

// releasePage ends the attachment's leases in one page of the subnet's, and tells where the next one begins; nil is the end.
func (c *change) releasePage(pool ID, page store.Range) (next []byte, err error) {
	at, err := c.attachment(pool)
	if errors.Is(err, ErrNotFound) || err == nil && c.idle(at) {
		return nil, nil // nothing is left of it, or its subnet ended meanwhile and took the leases with it
	}
	if err != nil {
		return nil, err
	}
	sub, _, err := c.subnetOf(at)
	if err != nil {
		return nil, err
	}
	leases, next, err := readPage(c.tx, page)
	if err != nil {
		return nil, err
	}
	for _, held := range leases {
		if !held.Held() || held.Attachment != pool {
			continue
		}
		if held.Kind == Gateway {
			err = c.setLease(sub.ID, held.Address, held, held.unheld())
		} else {
			err = c.release(sub, held)
		}
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

// readPage reads the leases of a range, and tells where the next page begins, nil at the end.
func readPage(tx store.Tx, r store.Range) (page []*Lease, next []byte, err error) {
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return nil, nil, err
		}
		_, addr, _ := leaseKeyParts(rec.Key)
		l, err := decodeLease(addr, rec.Value)
		if err != nil {
			return nil, nil, err
		}
		page = append(page, l)
		next = append(next[:0], rec.Key...)
	}
	if len(page) < r.Limit {
		return page, nil, nil
	}
	return page, append(next, 0), nil
}

// subnetGone is why a reservation ended that was swept.
const subnetGone = "its subnet is gone"

// catchAll is the subnet of an address of which is not known in which it was: one that fits every address of its family, so
// that what is left of a subnet that is gone ends by the same path as everything else (BO-12).
func catchAll(gone ID, addr netip.Addr) *Subnet {
	return &Subnet{ID: gone, CIDR: netip.PrefixFrom(addr, 0).Masked()}
}

// sweep ends what there is of leases and reservations in a subnet that is gone. A crash in the midst leaves the rest to the
// next Open.
func (s *Service) sweep(ctx context.Context, gone *Subnet) error {
	page := leasesOf(gone.ID)
	page.Limit = s.page
	for page.From != nil {
		var next []byte
		err := s.update(ctx, func(c *change) (err error) {
			next, err = c.sweepPage(gone, page)
			return err
		})
		if err != nil {
			return err
		}
		page.From = next
	}
	return nil
}

func (c *change) sweepPage(gone *Subnet, page store.Range) (next []byte, err error) {
	leases, next, err := readPage(c.tx, page)
	if err != nil {
		return nil, err
	}
	for _, l := range leases {
		if l.Reservation != nil {
			if err := c.endReservation(picked{gone, l.Address, l}, subnetGone); err != nil {
				return nil, err
			}
			l = l.withReservation(l.Address, nil)
		}
		switch {
		case l.Held() && l.Kind != Gateway:
			err = c.release(gone, l)
		case l != nil:
			err = c.setLease(gone.ID, l.Address, l, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

// deleteWhile deletes the records of a range up to the first one that goes not, which is told of by its number and key, and
// returns how many there were.
func deleteWhile(tx store.Tx, r store.Range, goes func(n int, key []byte) bool) (int, error) {
	var keys [][]byte
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return 0, err
		}
		if !goes(len(keys), rec.Key) {
			break
		}
		keys = append(keys, slices.Clone(rec.Key))
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}
