package ipam

import (
	"context"
	"fmt"
	"net/netip"
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
	buf   []byte
	undo  []func()
}

// update runs fn as one durable change. Whatever fn's error, nothing of it remains then.
func (s *Service) update(ctx context.Context, fn func(*change) error) error {
	actor := actorOf(ctx)
	return s.store.Update(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		c := &change{tx: tx, ix: s.ix, now: s.now(), actor: actor, host: s.host}
		tx.OnAbort(func() { s.abort(c) })
		return fn(c)
	})
}

// abort moves the index back to before c. It must not hold the lock twice: OnAbort runs after fn has returned.
func (s *Service) abort(c *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.undo[i]()
	}
	c.undo = nil
}

// attachment reads the attachment that the engine knows as pool id.
func (c *change) attachment(id ID) (*Attachment, error) {
	raw, err := c.tx.Get(attachmentKey(id))
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, &refusal{ErrNotFound, fmt.Sprintf("there is no pool %s: it was released, or belongs to another Berth; see `berth subnet ls`", id)}
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
	raw, err := c.tx.Get(subnetKey(a.Space, a.CIDR))
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
	return sub, sx, nil
}

// lease reads the record of an address; nil where it has none.
func (c *change) lease(subnet ID, addr netip.Addr) (*Lease, error) {
	raw, err := c.tx.Get(leaseKey(subnet, addr))
	if err != nil || raw == nil {
		return nil, err
	}
	return decodeLease(addr, raw)
}

// setLease replaces the record of an address: before as it was read, after nil to delete it.
func (c *change) setLease(subnet ID, addr netip.Addr, before, after *Lease) error {
	var err error
	if after == nil {
		err = c.tx.Delete(leaseKey(subnet, addr))
	} else {
		c.buf = encodeLease(c.buf[:0], after)
		err = c.tx.Put(leaseKey(subnet, addr), c.buf)
	}
	if err != nil {
		return err
	}
	sx := c.ix.subnets[subnet]
	sx.move(addr, before, after)
	c.undo = append(c.undo, func() { sx.move(addr, after, before) })
	return nil
}

// event writes an entry of the audit trail and returns its id: the time in microseconds, made strictly increasing, so that
// ids stay unique when the clock is set back.
func (c *change) event(e *Event) (uint64, error) {
	id := c.nextID()
	e.Actor, e.Host = c.actor, c.host
	if e.Verb == LeaseTaken {
		e.Lease = id // a lease has the id of the event that made it
	}
	c.buf = encodeEvent(c.buf[:0], e)
	if err := c.tx.Put(eventKey(id), c.buf); err != nil {
		return 0, err
	}
	c.ix.events++
	c.undo = append(c.undo, func() { c.ix.events-- })
	return id, nil
}

// nextID is the id of the event that this change writes next.
func (c *change) nextID() uint64 {
	c.ix.lastEvent = max(c.ix.lastEvent+1, uint64(max(c.now.UnixMicro(), 0)))
	return c.ix.lastEvent
}

// setAttachment writes a, or removes it where a is nil.
func (c *change) setAttachment(id ID, a *Attachment) error {
	raw, err := c.putJSON(attachmentKey(id), a, a == nil)
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
	raw, err := c.putJSON(subnetKey(sub.Space, sub.CIDR), sub, false)
	if err != nil {
		return err
	}
	if sx := c.ix.subnets[sub.ID]; sx != nil {
		before := sx.record
		sx.record = cached[Subnet]{raw, sub}
		c.undo = append(c.undo, func() { sx.record = before })
		return nil
	}
	c.ix.addSubnet(sub, raw)
	c.undo = append(c.undo, func() { c.ix.dropSubnet(sub) })
	return nil
}

// removeSubnet deletes a subnet's record. Its leases lose their meaning with it and are swept later.
func (c *change) removeSubnet(sub *Subnet) error {
	if err := c.tx.Delete(subnetKey(sub.Space, sub.CIDR)); err != nil {
		return err
	}
	sx := c.ix.subnets[sub.ID]
	c.ix.dropSubnet(sub)
	c.undo = append(c.undo, func() { c.ix.restoreSubnet(sub, sx) })
	return nil
}

// setNetwork writes n, or removes it where n is nil.
func (c *change) setNetwork(id ID, n *Network) error {
	if _, err := c.putJSON(networkKey(id), n, n == nil); err != nil {
		return err
	}
	before := c.ix.networks[id]
	c.undo = append(c.undo, func() { c.ix.setNetwork(id, before) })
	c.ix.setNetwork(id, n)
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

func (ix *index) addSubnet(sub *Subnet, raw []byte) {
	sx := newSubnetIndex(sub.CIDR)
	sx.record = cached[Subnet]{raw, sub}
	ix.restoreSubnet(sub, sx)
}

func (ix *index) restoreSubnet(sub *Subnet, sx *subnetIndex) {
	ix.subnets[sub.ID] = sx
	sp := ix.space(sub.Space)
	sp.blocks.Insert(sub.CIDR)
	sp.ids[sub.CIDR] = sub.ID
}

func (ix *index) dropSubnet(sub *Subnet) {
	delete(ix.subnets, sub.ID)
	sp := ix.space(sub.Space)
	sp.blocks.Remove(sub.CIDR)
	delete(sp.ids, sub.CIDR)
}

func (ix *index) setNetwork(id ID, n *Network) {
	if n == nil {
		delete(ix.networks, id)
	} else {
		ix.networks[id] = n
	}
}
