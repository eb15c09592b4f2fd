package ledger

import (
	"berth/internal/ipam"
	"berth/store"
)

// Event writes an entry of the audit trail and returns its id: the time in microseconds, made strictly increasing, so
// that ids stay unique when the clock is set back. Of hosts that share a store each makes ids of its own
// (membership.own).
func (c *Change) Event(e *ipam.Event) (uint64, error) {
	last := c.index.lastEvent
	id := c.nextID()
	e.Actor, e.Host = c.actor, c.host
	c.tellNetwork(e)
	if (e.Verb == ipam.LeaseTaken || e.Verb == ipam.HeadroomClaimed) && e.Lease == 0 {
		e.Lease = id // a lease has the id of the event that made it
	}
	c.verbs = append(c.verbs, e.Verb)
	if c.collects {
		told := *e
		told.ID, told.Time = id, ipam.EventTime(id)
		c.events = append(c.events, told)
	}
	if e.Verb == ipam.LeaseReleased && e.Lease == last && c.member == nil {
		return id, c.putRelease(id, e)
	}
	c.value = ipam.EncodeEvent(c.value[:0], e)
	return id, c.putRecord(id, c.value)
}

// putRelease writes the release of the lease that was taken by the event right before: in one record with that, so that
// containers which are thrown away one after the other leave half as much. In the record of the later event the earlier
// one has its place in the order of ids, for a reader who is before both, between them, or behind.
//
// In a shared store each event has its own record: two of one host seldom come one after the other, and the taking would
// have to be taken out of what its transaction has put as a whole.
func (c *Change) putRelease(id uint64, e *ipam.Event) error {
	c.key = EventKey(c.key[:0], e.Lease)
	taken, err := c.tx.Get(c.key)
	if err != nil {
		return err
	}
	record, paired := ipam.EncodePair(c.value[:0], taken, e)
	if !paired {
		c.value = ipam.EncodeEvent(c.value[:0], e)
		return c.putRecord(id, c.value)
	}
	c.value = record
	if err := c.dropRecord(e.Lease, taken); err != nil {
		return err
	}
	return c.putRecord(id, record)
}

// putRecord writes a record of events that is not there, and counts it.
func (c *Change) putRecord(id uint64, record []byte) error {
	c.countEvents(sumOf(record))
	c.key = EventKey(c.key[:0], id)
	return c.tx.Put(c.key, record)
}

// dropRecord removes a record of events.
func (c *Change) dropRecord(id uint64, record []byte) error {
	c.countEvents(sumOf(record).negative())
	c.key = EventKey(c.key[:0], id)
	return c.tx.Delete(c.key)
}

// countEvents adds to what is stored of events.
func (c *Change) countEvents(n EventSum) {
	c.added.add(n)
	c.index.events.add(n)
}

// LeaveEvents notes what is left of events, of which the change has removed the others.
func (c *Change) LeaveEvents(left EventSum) {
	left.add(c.index.events.negative())
	c.countEvents(left)
}

// PutEvent writes an event of another store, as a record of its own, under an id that is free. Two that share a record,
// and between which it comes, part: they could not be read in the order of ids.
func (c *Change) PutEvent(id uint64, event []byte) error {
	next, err := c.recordAt(id)
	if err != nil {
		return err
	}
	if taken := ipam.TakenIn(next.Value); taken != 0 && taken < id {
		if err := c.part(next, 0); err != nil {
			return err
		}
	}
	return c.putRecord(id, event)
}

// DropEvent removes an event. Another one that shares its record stays.
func (c *Change) DropEvent(id uint64) error {
	rec, err := c.recordAt(id)
	if err != nil || eventIn(rec, id) == nil {
		return err
	}
	return c.part(rec, id)
}

// part replaces a record of events by those of each of them, less one.
func (c *Change) part(rec store.Record, less uint64) error {
	if err := c.dropRecord(EventID(rec.Key), rec.Value); err != nil {
		return err
	}
	all, n := eventsIn(rec)
	for _, e := range all[:n] {
		if e.ID == less {
			continue
		}
		alone, err := e.Alone()
		if err != nil {
			return err
		}
		if err := c.putRecord(e.ID, alone); err != nil {
			return err
		}
	}
	return nil
}

// EventAlone reads an event as a record of its own; nil where there is none of that id.
func (c *Change) EventAlone(id uint64) ([]byte, error) {
	rec, err := c.recordAt(id)
	if err != nil {
		return nil, err
	}
	return eventIn(rec, id).Alone()
}

// recordAt is the record of the event of an id; in a host's own store, where there is none, the next one, which may have
// it. In a shared store each event has its own record, and a range that is read there is compared with what others write.
func (c *Change) recordAt(id uint64) (store.Record, error) {
	key := EventKey(nil, id)
	if c.member == nil {
		return recordFrom(c.tx, key)
	}
	value, err := c.tx.Get(key)
	if err != nil || value == nil {
		return store.Record{}, err
	}
	return store.Record{Key: key, Value: value}, nil
}

// recordFrom is the first record of events from a key on; the zero one where there is none.
func recordFrom(tx store.Tx, key []byte) (store.Record, error) {
	for rec, err := range tx.Scan(store.Range{From: key, To: KindRange(EventKeys).To, Limit: 1}) {
		return rec, err
	}
	return store.Record{}, nil
}
