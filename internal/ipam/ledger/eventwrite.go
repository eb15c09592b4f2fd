package ledger

import (
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// Event writes an entry of the audit trail and returns its id. The id is the time in microseconds, made strictly
// increasing. So ids stay unique and in order even if the clock is set back. Hosts that share a store each make their
// own ids (membership.own).
func (c *Change) Event(e *ipam.Event) (uint64, error) {
	last := c.index.lastEvent
	id := c.nextID()
	e.ID, e.Time, e.Actor, e.Host = id, c.TimeOf(id), c.actor, c.host
	c.tellNetwork(e)
	if (e.Verb == ipam.LeaseTaken || e.Verb == ipam.HeadroomClaimed) && e.Lease == 0 {
		e.Lease = id // a lease has the id of the event that made it
	}
	c.verbs = append(c.verbs, e.Verb)
	if c.collects {
		c.events = append(c.events, *e)
	}
	if e.Verb == ipam.LeaseReleased && e.Lease == last && c.member == nil {
		return id, c.putRelease(id, e)
	}
	c.value = ipam.EncodeEvent(c.value[:0], e)
	return id, c.putRecord(id, c.value)
}

// oneRecord is within what time leases are thrown away that share a record: all of it is removed together when its last
// event is too old.
const oneRecord = uint64(time.Minute / time.Microsecond)

// putRelease writes the release of a lease whose taking is the event right before. The two become one record, which those
// join that were thrown away right before: so containers that come one after the other leave a sixth of the bytes. It is
// the record of the last of these events, and each of them has its place in the order of ids still, for a reader who is
// before them, between them, or behind.
//
// In a shared store each event has its own record: two of one host seldom come one after the other, and the taking would
// have to be taken out of what its transaction has put as a whole.
func (c *Change) putRelease(id uint64, e *ipam.Event) error {
	key := EventKey(nil, e.Lease)
	taken, err := c.tx.Get(key)
	if err != nil {
		return err
	}
	record, is := ipam.EncodeThrowAway(c.value[:0], taken, id, e)
	if !is {
		c.value = ipam.EncodeEvent(c.value[:0], e)
		return c.putRecord(id, c.value)
	}
	c.value = record
	before, err := recordBefore(c.tx, key)
	if err != nil {
		return err
	}
	last := EventID(before.Key)
	if joined, fit := ipam.JoinThrowAway(before.Value, last, record, e.Lease); fit && id-last <= oneRecord {
		record = joined
		if err := c.dropRecord(last, before.Value); err != nil {
			return err
		}
	}
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

// PutEvent writes an event of another store as its own record, under a free id. If the id lies between events of one
// record, that record is split to keep the order of ids.
func (c *Change) PutEvent(id uint64, event []byte) error {
	next, err := c.recordAt(id)
	if err != nil {
		return err
	}
	if next.Key != nil && eventsIn(next)[0].ID < id {
		if err := c.part(next, 0); err != nil {
			return err
		}
	}
	return c.putRecord(id, event)
}

// DropEvent removes an event. Other events of its record are stored separately.
func (c *Change) DropEvent(id uint64) error {
	rec, err := c.recordAt(id)
	if err != nil || eventIn(rec, id) == nil {
		return err
	}
	return c.part(rec, id)
}

// part replaces a record of events by one of each of them, less one.
func (c *Change) part(rec store.Record, less uint64) error {
	if err := c.dropRecord(EventID(rec.Key), rec.Value); err != nil {
		return err
	}
	for _, e := range eventsIn(rec) {
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
	if e := eventIn(rec, id); err == nil && e != nil {
		return e.Alone()
	}
	return nil, err
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
