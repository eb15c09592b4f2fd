package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/store"
)

// change is one run of a request inside a store transaction: it reads records, writes them, and moves the index along
// with them. When the run does not become part of the store, the index is moved back.
type change struct {
	tx    store.Tx
	ix    *index
	now   time.Time
	actor string
	host  string

	memories int  // how many a subnet keeps
	forgets  bool // the state is rebuilt from what runs (BO-4)
	page     int  // how many leases a transaction ends at most
	membership

	edit editing // what belongs to edits of the plan

	moves []leaseMove // of the index, to be undone in reverse order
	undo  []func()    // the same for what is not a lease, and independent of the leases
	added int         // events
	key   []byte      // buffers that are used again
	value []byte
	abort func()
}

// leaseMove is a step of one address in the index.
type leaseMove struct {
	sx            *subnetIndex
	addr          netip.Addr
	before, after *Lease
}

// update runs fn as one durable change, after the owners whose time is over have ended. Whatever fn's error, nothing of it
// remains then.
func (s *Service) update(ctx context.Context, fn func(*change) error) error {
	if err := s.endOwners(ctx); err != nil {
		return err
	}
	return s.change(ctx, fn)
}

func (s *Service) change(ctx context.Context, fn func(*change) error) error {
	s.imports.asked.Add(1)
	c := s.changes.Get().(*change)
	defer s.changes.Put(c)
	c.actor = actorOf(ctx)
	events := 0
	err := s.store.Update(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.tx, c.ix, c.now = tx, s.ix, s.now()
		clear(c.moves)
		clear(c.undo)
		c.moves, c.undo, c.added, c.edit = c.moves[:0], c.undo[:0], 0, editing{}
		tx.OnAbort(c.abort)
		if err := c.enter(s.joined); err != nil {
			return err
		}
		err := fn(c)
		events = c.ix.events
		if err != nil {
			return err
		}
		return c.leave()
	})
	if err == nil {
		s.wakeTrim(events)
	}
	return err
}

// newChange makes a change for the pool of them. Its abort moves the index back to before its last run; it is called when
// that run is over and the lock is free.
func (s *Service) newChange() any {
	c := &change{host: s.host, memories: s.memories, forgets: s.forgets, page: s.page, membership: membership{member: s.member}, key: make([]byte, 0, 64), value: make([]byte, 0, 256)}
	if s.member != nil {
		c.present = s.shared().Present
	}
	c.abort = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range slices.Backward(c.moves) {
			m.sx.move(m.addr, m.after, m.before)
		}
		for _, undo := range slices.Backward(c.undo) {
			undo()
		}
		c.ix.events -= c.added
		c.moves, c.undo, c.added = c.moves[:0], c.undo[:0], 0
	}
	return c
}

// attachment reads the attachment that the engine knows as pool id.
func (c *change) attachment(id ID) (*Attachment, error) {
	c.key = attachmentKey(c.key[:0], id)
	raw, err := c.tx.Get(c.key)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, &refusal{ErrNotFound, fmt.Sprintf("there is no pool %s: it was released, or belongs to another Berth or another state of this one; remove the Docker network and create it again; `berth subnet ls` lists what is there", id)}
	}
	if known := c.ix.attachments[id]; known.is(raw) {
		return known.value, nil
	}
	a := new(Attachment)
	if err := decodeJSON("pool "+id.String(), raw, a); err != nil {
		return nil, err
	}
	return a, nil
}

// subnetOf reads the subnet that an attachment holds.
func (c *change) subnetOf(a *Attachment) (*Subnet, *subnetIndex, error) {
	c.key = subnetKey(c.key[:0], a.Space, a.CIDR)
	raw, err := c.tx.Get(c.key)
	if err != nil {
		return nil, nil, err
	}
	sx := c.ix.subnets[a.Subnet]
	if raw == nil || sx == nil {
		return nil, nil, fmt.Errorf("%w: pool %s is of subnet %s in space %s, which is not there; run `berth fsck`", ErrDamaged, a.ID, a.CIDR, a.Space)
	}
	if sx.record.is(raw) {
		return sx.record.value, sx, nil
	}
	sub := new(Subnet)
	if err := decodeJSON("subnet "+a.CIDR.String(), raw, sub); err != nil {
		return nil, nil, err
	}
	if sub.ID != a.Subnet {
		return nil, nil, &refusal{ErrDamaged, fmt.Sprintf("pool %s is of a subnet %s that was replaced; run `berth fsck`", a.ID, a.CIDR)}
	}
	return sub, sx, nil
}

// lease reads the record of an address; nil where it has none.
func (c *change) lease(subnet ID, addr netip.Addr) (*Lease, error) {
	c.key = leaseKey(c.key[:0], subnet, addr)
	raw, err := c.tx.Get(c.key)
	if err != nil || raw == nil {
		return nil, err
	}
	return decodeLease(addr, raw)
}

// setLease replaces the record of an address: before as it was read, after nil to delete it.
func (c *change) setLease(subnet ID, addr netip.Addr, before, after *Lease) error {
	var err error
	c.key = leaseKey(c.key[:0], subnet, addr)
	if after == nil {
		err = c.tx.Delete(c.key)
	} else {
		c.value = encodeLease(c.value[:0], after)
		err = c.tx.Put(c.key, c.value)
	}
	if err != nil {
		return err
	}
	sx := c.ix.subnets[subnet]
	if sx == nil {
		return nil // the subnet is gone, and its index with it
	}
	sx.move(addr, before, after)
	c.moves = append(c.moves, leaseMove{sx, addr, before, after})
	return nil
}

// event writes an entry of the audit trail and returns its id: the time in microseconds, made strictly increasing, so that
// ids stay unique when the clock is set back. Of hosts that share a store each makes ids of its own (membership.own).
func (c *change) event(e *Event) (uint64, error) {
	id := c.nextID()
	e.Actor, e.Host = c.actor, c.host
	if (e.Verb == LeaseTaken || e.Verb == HeadroomClaimed) && e.Lease == 0 {
		e.Lease = id // a lease has the id of the event that made it
	}
	c.key, c.value = eventKey(c.key[:0], id), encodeEvent(c.value[:0], e)
	c.countEvents(1)
	if c.edit.collects {
		told := *e
		told.ID, told.Time = id, eventTime(id)
		c.edit.changes = append(c.edit.changes, told)
	}
	return id, c.tx.Put(c.key, c.value)
}

func (c *change) countEvents(n int) {
	c.added += n
	c.ix.events += n
}

// nextID is the id of the event that this change writes next.
func (c *change) nextID() uint64 {
	c.ix.lastEvent = c.own(max(c.ix.lastEvent+1, uint64(max(c.now.UnixMicro(), 0))))
	return c.ix.lastEvent
}

// setAttachment writes a, or removes it where a is nil.
func (c *change) setAttachment(id ID, a *Attachment) error {
	raw, err := c.putJSON(attachmentKey(nil, id), a, a == nil)
	if err != nil {
		return err
	}
	before, was := c.ix.attachments[id]
	c.undo = append(c.undo, func() {
		if was {
			c.ix.attachments[id] = before
		} else {
			delete(c.ix.attachments, id)
		}
	})
	if a == nil {
		delete(c.ix.attachments, id)
	} else {
		c.ix.attachments[id] = cached[Attachment]{raw, a}
	}
	return nil
}

// setSubnet writes a subnet that is new or has changed, but for its CIDR.
func (c *change) setSubnet(sub *Subnet) error {
	if len(sub.Pools) > maxRanges || len(sub.Exclusions) > maxRanges || len(sub.Static) > maxRanges {
		return &refusal{ErrInvalid, fmt.Sprintf("the subnet %s would have %d pools, %d exclusions and %d static bands; it keeps at most %d of each, so put ranges that lie side by side into one",
			sub.CIDR, len(sub.Pools), len(sub.Exclusions), len(sub.Static), maxRanges)}
	}
	raw, err := c.putJSON(subnetKey(nil, sub.Space, sub.CIDR), sub, false)
	if err != nil {
		return err
	}
	if sx := c.ix.subnets[sub.ID]; sx != nil {
		before := sx.record
		c.ix.replaceSubnet(sx, cached[Subnet]{raw, sub})
		c.undo = append(c.undo, func() { c.ix.replaceSubnet(sx, before) })
		return nil
	}
	c.ix.addSubnet(sub, raw)
	c.undo = append(c.undo, func() { c.ix.dropSubnet(sub) })
	return nil
}

// removeSubnet deletes a subnet's record. Its leases lose their meaning with it and are swept later.
func (c *change) removeSubnet(sub *Subnet) error {
	if err := c.tx.Delete(subnetKey(nil, sub.Space, sub.CIDR)); err != nil {
		return err
	}
	sx := c.ix.dropSubnet(sub)
	c.undo = append(c.undo, func() { c.ix.putSubnet(sub, sx) })
	return nil
}

// setNetwork writes n, or removes it where n is nil, together with the record of its name. Whether a name is free is asked
// before (nameFree).
func (c *change) setNetwork(id ID, n *Network) error {
	var before cached[Network]
	if nx := c.ix.networks[id]; nx != nil {
		before = nx.record
	}
	if was := before.value; was != nil && was.Stage != Leaving && (n == nil || n.Name != was.Name || n.Stage == Leaving) {
		if err := c.tx.Delete(nameKey(nil, was.Name)); err != nil {
			return err
		}
	}
	raw, err := c.putJSON(networkKey(nil, id), n, n == nil)
	if err != nil {
		return err
	}
	if n != nil && n.Stage != Leaving {
		if err := c.tx.Put(nameKey(nil, n.Name), id[:]); err != nil {
			return err
		}
	}
	c.undo = append(c.undo, func() { c.ix.setNetwork(id, before) })
	c.ix.setNetwork(id, cached[Network]{raw, n})
	return nil
}

func (c *change) putJSON(key []byte, v any, remove bool) ([]byte, error) {
	if remove {
		return nil, c.tx.Delete(key)
	}
	raw, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	return raw, c.tx.Put(key, raw)
}
