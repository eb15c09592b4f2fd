package ipam

import (
	"context"
	"fmt"

	"berth/store"
)

// load builds the index by one scan of the store.
func (s *Service) load(ctx context.Context) error {
	read := func(tx store.Tx) error {
		ix := newIndex()
		for _, step := range []func(*index, store.Tx) error{loadHosts, loadSpaces, loadNetworks, loadSubnets, loadAttachments, loadOwners, loadLeases, loadEvents} {
			if err := step(ix, tx); err != nil {
				return err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ix = ix
		return nil
	}
	if s.member == nil {
		return s.store.View(ctx, read)
	}
	return s.shared().Follow(ctx, read, s.follow)
}

func loadHosts(ix *index, tx store.Tx) error {
	for rec, err := range tx.Scan(kindRange(hostKeys)) {
		if err != nil {
			return err
		}
		h := new(Host)
		if err := decodeJSON("a host", rec.Value, h); err != nil {
			return err
		}
		ix.hosts[h.Name] = cached[Host]{append([]byte(nil), rec.Value...), h}
	}
	return nil
}

func loadSpaces(ix *index, tx store.Tx) error {
	for rec, err := range tx.Scan(kindRange(spaceKeys)) {
		if err != nil {
			return err
		}
		ix.space(string(rec.Key[1:]))
	}
	return nil
}

func loadNetworks(ix *index, tx store.Tx) error {
	for rec, err := range tx.Scan(kindRange(networkKeys)) {
		if err != nil {
			return err
		}
		n := new(Network)
		if err := decodeJSON("a network", rec.Value, n); err != nil {
			return err
		}
		ix.setNetwork(n.ID, cached[Network]{append([]byte(nil), rec.Value...), n})
	}
	return nil
}

func loadSubnets(ix *index, tx store.Tx) error {
	for rec, err := range tx.Scan(kindRange(subnetKeys)) {
		if err != nil {
			return err
		}
		sub := new(Subnet)
		if err := decodeJSON("a subnet", rec.Value, sub); err != nil {
			return err
		}
		if other, overlaps := ix.space(sub.Space).blocks.Overlap(sub.CIDR); overlaps {
			return fmt.Errorf("%w: the subnets %s and %s of space %s overlap; restore a backup (`berth restore`)", ErrDamaged, sub.CIDR, other, sub.Space)
		}
		ix.addSubnet(sub, append([]byte(nil), rec.Value...))
	}
	return nil
}

func loadAttachments(ix *index, tx store.Tx) error {
	for rec, err := range tx.Scan(kindRange(attachmentKeys)) {
		if err != nil {
			return err
		}
		a := new(Attachment)
		if err := decodeJSON("a pool", rec.Value, a); err != nil {
			return err
		}
		ix.attachments[a.ID] = cached[Attachment]{append([]byte(nil), rec.Value...), a}
	}
	return nil
}

// loadLeases takes the leases subnet by subnet, as their keys are ordered. Those of a subnet that is gone are
// noted as orphans, for settle to sweep.
func loadLeases(ix *index, tx store.Tx) error {
	var subnet ID
	var leases []*Lease
	flush := func() {
		if sx := ix.subnets[subnet]; sx != nil {
			sx.load(leases)
		} else if len(leases) > 0 {
			ix.orphans = append(ix.orphans, catchAll(subnet, leases[0].Address))
		}
		leases = leases[:0]
	}
	for rec, err := range tx.Scan(kindRange(leaseKeys)) {
		if err != nil {
			return err
		}
		id, addr, ok := leaseKeyParts(rec.Key)
		if !ok {
			return fmt.Errorf("%w: the key %x names no address", ErrDamaged, rec.Key)
		}
		if id != subnet {
			flush()
			subnet = id
		}
		l, err := decodeLease(addr, rec.Value)
		if err != nil {
			return err
		}
		if sx := ix.subnets[id]; sx != nil && !sx.usable.Contains(addr) && l.Remembered() && l.Reservation == nil {
			ix.strays = append(ix.strays, stray{id, addr})
			continue
		}
		leases = append(leases, l)
		ix.lastEvent = max(ix.lastEvent, l.ID)
	}
	flush()
	return nil
}

// loadEvents counts the events and finds the last one. Ids go on behind it, and behind those of leases whose events were
// trimmed away.
func loadEvents(ix *index, tx store.Tx) error {
	for rec, err := range tx.Scan(kindRange(eventKeys)) {
		if err != nil {
			return err
		}
		ix.events++
		ix.lastEvent = max(ix.lastEvent, eventID(rec.Key))
	}
	return nil
}
