package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// copied is a network of the source the way the target is to have it.
type copied struct {
	network *ipam.Network // Moving
	subnets []copiedSubnet
}

// copiedSubnet is a subnet of it, with the attachments that it names, in their order.
type copiedSubnet struct {
	*ipam.Subnet
	attachments []*ipam.Attachment
}

// read reads the networks of a space of the source, by name, without their leases.
func (cp *copying) read(ctx context.Context, space string) (all []copied, err error) {
	err = cp.from.Look(ctx, func(c *ledger.Change) error {
		all = nil
		for _, n := range networksIn(c.Index(), space) {
			one, err := cp.readNetwork(c, n)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// networksIn lists the networks of a space by name, whatever their stage.
func networksIn(ix *ledger.Index, space string) (all []*ipam.Network) {
	for _, nx := range ix.Networks() {
		if n := nx.Record(); n != nil && n.Space == space {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.Network) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (cp *copying) readNetwork(c *ledger.Change, n *ipam.Network) (one copied, err error) {
	if n.Stage == ipam.Arriving || n.Stage == ipam.Leaving {
		return one, ipam.Refuse(ipam.ErrInUse, "network %s is being imported or removed; copy when that has ended",
			n.Name)
	}
	moving := *n
	moving.Stage = ipam.Moving
	one.network = &moving
	subnets, err := edit.PlanOf(c, n).Subnets()
	if err != nil {
		return one, err
	}
	for _, sub := range subnets {
		with := copiedSubnet{Subnet: sub}
		for _, id := range sub.Attachments {
			at, err := c.Attachment(id)
			if errors.Is(err, ipam.ErrNotFound) {
				err = ipam.Help(fmt.Errorf("%w: the subnet %s of network %s names a pool %s that is not there",
					ipam.ErrDamaged,
					sub.CIDR, n.Name, id), ipam.Advise(ipam.DoRunFsck))
			}
			if err != nil {
				return one, err
			}
			with.attachments = append(with.attachments, cp.attachment(at))
		}
		one.subnets = append(one.subnets, with)
	}
	return one, nil
}

// attachment is one the way the target is to have it. Whatever the host was called when it was made, it is of the host
// whose own store takes part.
func (cp *copying) attachment(at *ipam.Attachment) *ipam.Attachment {
	if at.Host == cp.to.Host() {
		return at
	}
	here := *at
	here.Host = cp.to.Host()
	return &here
}

// lease is the record of an address the way the target is to have it; nil for none. Headroom is claimed of the source,
// and means nothing elsewhere.
func (cp *copying) lease(sub *ipam.Subnet, l *ipam.Lease) *ipam.Lease {
	if l.Held() && l.Kind == ipam.Headroom {
		l = l.Unheld()
	}
	switch {
	case l == nil || l.Remembered() && l.Reservation == nil && !usableIn(sub, l):
		return nil
	case !l.Held() || l.Attachment == (ipam.ID{}) || l.Host == cp.to.Host():
		return l
	}
	here := *l
	here.Host = cp.to.Host()
	return &here
}

// leases copies the leases of a subnet, as the target is to have them. Each of those is told of as it is read.
func (cp *copying) leases(sub *ipam.Subnet, limit int, wanted func(*ipam.Lease)) *rangeCopy {
	return &rangeCopy{keys: ledger.LeasesOf(sub.ID), limit: limit, want: func(rec store.Record) ([]byte, error) {
		_, addr, _ := ledger.LeaseKeyParts(rec.Key)
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			return nil, err
		}
		if l = cp.lease(sub, l); l == nil {
			return nil, nil
		}
		wanted(l)
		return ipam.EncodeLease(nil, l), nil
	}}
}

// ownersOf copies the owners of a dynamic network.
func ownersOf(network ipam.ID, limit int) *rangeCopy {
	return &rangeCopy{keys: store.Prefix(ledger.OwnerKey(network, "")), limit: limit, want: asItIs}
}

// count adds what there is to be done to the total: each record is written, compared and cleared away.
func (cp *copying) count(ctx context.Context, space string, all []copied, first bool) error {
	n := 0
	cp.from.Read(func(ix *ledger.Index) {
		for _, one := range all {
			n += 2 // and the record of its name
			for _, sub := range one.subnets {
				n += 1 + len(sub.attachments) + int(ix.Subnet(sub.ID).Records())
			}
		}
	})
	err := eachEvent(ctx, cp.from, space, copyPage(cp.from), func(page []store.Record) error {
		n += len(page)
		return nil
	})
	if cp.total += 2 * n; first {
		cp.total += n
	}
	return err
}

// eachEvent hands out the events of a space, or of elastic addresses, in pages, each as a record of its own.
func eachEvent(ctx context.Context, s *ledger.Ledger, space string, limit int, fn func([]store.Record) error) error {
	for from, more := uint64(0), true; more; {
		var page []store.Record
		err := s.View(ctx, func(tx store.Tx) (err error) {
			page, from, more, err = eventPage(tx, space, from, limit)
			return err
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

// eventPage reads a page of eachEvent, and where the next one begins, if there are more.
func eventPage(tx store.Tx, space string, from uint64, limit int) (page []store.Record, next uint64, more bool,
	err error) {
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: from}) {
		if err != nil {
			return nil, from, false, err
		}
		e, err := at.Decode()
		if err != nil {
			return nil, from, false, err
		}
		if !isOf(e, space) {
			continue
		}
		if len(page) == limit {
			return page, at.ID, true, nil
		}
		alone, err := at.Alone()
		if err != nil {
			return nil, from, false, err
		}
		page = append(page, store.Record{Key: ledger.EventKey(nil, at.ID), Value: slices.Clone(alone)})
	}
	return page, from, false, nil
}

// copyPage is how many records a transaction of a copy writes.
func copyPage(s *ledger.Ledger) int { return 2 * s.Page() }
