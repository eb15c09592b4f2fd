package ledger

import (
	"context"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// Shared is the store of a ledger with a Member. Without a Member it panics.
func (s *Ledger) Shared() store.Shared { return s.store.(store.Shared) }

// follow applies commits of other hosts to the index. It skips a record that does not decode: the index is only advice,
// and a change that reads the record itself is refused.
func (s *Ledger) follow(all []store.Foreign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.followSubnets(all)
	for i := range all {
		s.index.follow(&all[i])
	}
}

// follow applies one write of another host. Subnets were applied before, because leases need them.
func (ix *Index) follow(w *store.Foreign) {
	switch w.Key[0] {
	case SpaceKeys:
		ix.space(string(w.Key[1:]))
	case SettingKeys:
		if string(w.Key) == string(MendKey()) {
			ix.mending, _ = Decoded[mending](w.After)
		}
	case HostKeys:
		setCached(ix.hosts, string(w.Key[1:]), w.After)
	case AttachmentKeys:
		if len(w.Key) == 17 {
			setCached(ix.attachments, ipam.ID(w.Key[1:]), w.After)
		}
	case NetworkKeys:
		if len(w.Key) == 17 {
			n, _ := Decoded[ipam.Network](w.After)
			ix.setNetwork(ipam.ID(w.Key[1:]), n)
		}
	case DynamicKeys:
		ix.followOwner(w)
	case LeaseKeys:
		ix.followLease(w)
	case EventKeys:
		ix.followEvent(w)
	case AccountKeys, ElasticRangeKeys, ElasticKeys, AppliedKeys, SessionKeys:
		ix.takeElastic(w.Key, w.After)
	}
}

// Decoded is a record with its bytes. It is zero if there is no record or it cannot be decoded.
func Decoded[T any](raw []byte) (Cached[T], bool) {
	v := new(T)
	if raw == nil || ipam.DecodeJSON("", raw, v) != nil {
		return Cached[T]{}, false
	}
	return Cached[T]{raw, v}, true
}

func setCached[K comparable, T any](in map[K]Cached[T], key K, raw []byte) {
	if c, ok := Decoded[T](raw); ok {
		in[key] = c
	} else {
		delete(in, key)
	}
}

func (ix *Index) followEvent(w *store.Foreign) {
	if w.Before != nil {
		ix.events.add(sumOf(w.Before).negative())
	}
	if w.After != nil {
		ix.events.add(sumOf(w.After))
		ix.lastEvent = max(ix.lastEvent, EventID(w.Key))
		ix.sane.see(RecordTime(store.Record{Key: w.Key, Value: w.After}))
	}
}

func (ix *Index) followOwner(w *store.Foreign) {
	if len(w.Key) < 17 {
		return
	}
	what := Ending{Network: ipam.ID(w.Key[1:17]), Owner: string(w.Key[17:])}
	ix.ends.Remove(what)
	if o, ok := Decoded[DynamicOwner](w.After); ok {
		ix.ends.add(what, o.Value.Until)
	}
}

func (ix *Index) followLease(w *store.Foreign) {
	id, addr, ok := LeaseKeyParts(w.Key)
	sx := ix.subnets[id]
	if !ok || sx == nil || slices.Contains(ix.unread, id) || !sx.usable.Contains(addr) {
		return
	}
	lease := func(raw []byte) *ipam.Lease {
		if raw == nil {
			return nil
		}
		l, err := ipam.DecodeLease(addr, raw)
		if err != nil {
			return nil
		}
		ix.lastEvent = max(ix.lastEvent, l.ID)
		return l
	}
	after := lease(w.After)
	sx.Move(addr, lease(w.Before), after)
	if after.Remembered() && isFar(after.QuarantineUntil, ix.clock, ix.Policy(sx.Record()).Quarantine) {
		ix.suspect(id, sx)
	}
}

// followSubnets applies the subnets of a commit: first the removed ones, then the others. A subnet with a new CIDR is
// both.
func (ix *Index) followSubnets(all []store.Foreign) {
	after := map[ipam.ID]Cached[ipam.Subnet]{}
	var order []ipam.ID
	for i := range all {
		if all[i].Key[0] != SubnetKeys {
			continue
		}
		if sub, ok := Decoded[ipam.Subnet](all[i].After); ok {
			after[sub.Value.ID] = sub
			order = append(order, sub.Value.ID)
		}
	}
	for i := range all {
		if all[i].Key[0] != SubnetKeys {
			continue
		}
		if before, ok := Decoded[ipam.Subnet](all[i].Before); ok {
			ix.followGone(before.Value, after[before.Value.ID])
		}
	}
	for _, id := range order {
		sub := after[id]
		if sx := ix.subnets[id]; sx != nil {
			ix.replaceSubnet(sx, sub)
		} else {
			ix.addSubnet(sub.Value, sub.Raw)
		}
	}
}

// followGone drops a subnet unless only its record changed. If the subnet has a new CIDR, its leases must be read
// again.
func (ix *Index) followGone(before *ipam.Subnet, after Cached[ipam.Subnet]) {
	sx := ix.subnets[before.ID]
	if sx == nil || after.Value != nil && after.Value.CIDR == sx.record.Value.CIDR {
		return
	}
	ix.dropSubnet(sx.record.Value)
	ix.unread = slices.DeleteFunc(ix.unread, func(id ipam.ID) bool { return id == before.ID })
	if after.Value != nil {
		ix.unread = append(ix.unread, before.ID)
	}
}

// CatchUp rereads the leases of subnets whose CIDR another host has changed, without waiting for a request.
func (s *Ledger) CatchUp(ctx context.Context) error {
	s.mu.Lock()
	n := len(s.index.unread)
	s.mu.Unlock()
	if n == 0 {
		return nil
	}
	return s.Update(ctx, func(*Change) error { return nil })
}

// readAgain rebuilds the indexes of subnets whose CIDR another host has changed, from their lease records.
func (c *Change) readAgain() error {
	for _, id := range c.index.unread {
		sx := c.index.subnets[id]
		if sx == nil {
			continue
		}
		fresh, _, err := c.ReadIndex(sx.record.Value)
		if err != nil {
			return err
		}
		fresh.record = sx.record
		c.index.subnets[id] = fresh
	}
	c.index.unread = nil
	return nil
}
