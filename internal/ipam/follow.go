package ipam

import (
	"context"
	"slices"

	"berth/store"
)

// shared is the store of a Service that has a Member.
func (s *Service) shared() store.Shared { return s.store.(store.Shared) }

// follow moves the index along with what other hosts have committed. A record that cannot be read is passed over: the index
// is advice, and whoever reads that record is refused.
func (s *Service) follow(all []store.Foreign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ix.followSubnets(all)
	for i := range all {
		s.ix.follow(&all[i])
	}
}

// follow takes over one write of another host, of all kinds but subnets, which leases need before.
func (ix *index) follow(w *store.Foreign) {
	switch w.Key[0] {
	case spaceKeys:
		ix.space(string(w.Key[1:]))
	case hostKeys:
		setCached(ix.hosts, string(w.Key[1:]), w.After)
	case attachmentKeys:
		if len(w.Key) == 17 {
			setCached(ix.attachments, ID(w.Key[1:]), w.After)
		}
	case networkKeys:
		if len(w.Key) == 17 {
			n, _ := decoded[Network](w.After)
			ix.setNetwork(ID(w.Key[1:]), n)
		}
	case dynamicKeys:
		ix.followOwner(w)
	case leaseKeys:
		ix.followLease(w)
	case eventKeys:
		ix.followEvent(w)
	}
}

// decoded is a record beside its bytes; the zero one where there is none, or none that can be read.
func decoded[T any](raw []byte) (cached[T], bool) {
	v := new(T)
	if raw == nil || decodeJSON("", raw, v) != nil {
		return cached[T]{}, false
	}
	return cached[T]{raw, v}, true
}

func setCached[K comparable, T any](in map[K]cached[T], key K, raw []byte) {
	if c, ok := decoded[T](raw); ok {
		in[key] = c
	} else {
		delete(in, key)
	}
}

func (ix *index) followEvent(w *store.Foreign) {
	switch {
	case w.Before == nil && w.After != nil:
		ix.events++
		ix.lastEvent = max(ix.lastEvent, eventID(w.Key))
	case w.Before != nil && w.After == nil:
		ix.events--
	}
}

func (ix *index) followOwner(w *store.Foreign) {
	if len(w.Key) < 17 {
		return
	}
	what := ending{network: ID(w.Key[1:17]), owner: string(w.Key[17:])}
	ix.ends.remove(what)
	if o, ok := decoded[dynamicOwner](w.After); ok {
		ix.ends.add(what, o.value.Until)
	}
}

func (ix *index) followLease(w *store.Foreign) {
	id, addr, ok := leaseKeyParts(w.Key)
	sx := ix.subnets[id]
	if !ok || sx == nil || slices.Contains(ix.unread, id) || !sx.usable.Contains(addr) {
		return
	}
	lease := func(raw []byte) *Lease {
		if raw == nil {
			return nil
		}
		l, err := decodeLease(addr, raw)
		if err != nil {
			return nil
		}
		ix.lastEvent = max(ix.lastEvent, l.ID)
		return l
	}
	sx.move(addr, lease(w.Before), lease(w.After))
}

// followSubnets takes over the subnets of a commit: first those that are gone, then those that are there. One that has got
// another CIDR is both.
func (ix *index) followSubnets(all []store.Foreign) {
	after := map[ID]cached[Subnet]{}
	var order []ID
	for i := range all {
		if all[i].Key[0] != subnetKeys {
			continue
		}
		if sub, ok := decoded[Subnet](all[i].After); ok {
			after[sub.value.ID] = sub
			order = append(order, sub.value.ID)
		}
	}
	for i := range all {
		if all[i].Key[0] != subnetKeys {
			continue
		}
		if before, ok := decoded[Subnet](all[i].Before); ok {
			ix.followGone(before.value, after[before.value.ID])
		}
	}
	for _, id := range order {
		sub := after[id]
		if sx := ix.subnets[id]; sx != nil {
			ix.replaceSubnet(sx, sub)
		} else {
			ix.addSubnet(sub.value, sub.raw)
		}
	}
}

// followGone drops a subnet, unless it stays what it is but for its record. The leases of one that has got another CIDR are
// to be read again.
func (ix *index) followGone(before *Subnet, after cached[Subnet]) {
	sx := ix.subnets[before.ID]
	if sx == nil || after.value != nil && after.value.CIDR == sx.record.value.CIDR {
		return
	}
	ix.dropSubnet(sx.record.value)
	ix.unread = slices.DeleteFunc(ix.unread, func(id ID) bool { return id == before.ID })
	if after.value != nil {
		ix.unread = append(ix.unread, before.ID)
	}
}

// catchUp has the leases read again that are to be, where nobody asks for anything.
func (s *Service) catchUp(ctx context.Context) error {
	s.mu.Lock()
	n := len(s.ix.unread)
	s.mu.Unlock()
	if n == 0 {
		return nil
	}
	return s.change(ctx, func(*change) error { return nil })
}

// readAgain builds the index of the subnets to which others have given another CIDR out of their leases.
func (c *change) readAgain() error {
	for _, id := range c.ix.unread {
		sx := c.ix.subnets[id]
		if sx == nil {
			continue
		}
		fresh, _, err := (&plan{change: c}).indexOf(sx.record.value)
		if err != nil {
			return err
		}
		fresh.record = sx.record
		c.ix.subnets[id] = fresh
	}
	c.ix.unread = nil
	return nil
}
