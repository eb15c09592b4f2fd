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
	id := c.NextID()
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

// oneRecord is the longest time, in microseconds, between short leases that share a record. When the last event of a
// record is too old, the whole record is removed.
const oneRecord = uint64(time.Minute / time.Microsecond)

// putRelease writes the release of a lease that was taken by the event directly before. Both events become one record,
// and join the record of the previous short lease. So containers that run one after another need a sixth of the bytes.
// The record has the id of its last event, but each event keeps its own id, so a reader can continue anywhere.
//
// In a shared store each event has its own record. There, two consecutive events are seldom of one host, and the first
// would have to be removed from what its transaction wrote as a whole.
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

// putRecord writes a new record of events and counts it.
func (c *Change) putRecord(id uint64, record []byte) error {
	c.countEvents(sumOf(record))
	c.key = EventKey(c.key[:0], id)
	return c.tx.Put(c.key, record)
}

// dropRecord removes a record of events and its count.
func (c *Change) dropRecord(id uint64, record []byte) error {
	c.countEvents(sumOf(record).negative())
	c.key = EventKey(c.key[:0], id)
	return c.tx.Delete(c.key)
}

// countEvents adds n to the sum of stored events.
func (c *Change) countEvents(n EventSum) {
	c.added.add(n)
	c.index.events.add(n)
}

// LeaveEvents sets the sum of stored events, after the change has removed the others without counting.
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

// DropEvent removes an event. The other events of its record get their own records.
func (c *Change) DropEvent(id uint64) error {
	rec, err := c.recordAt(id)
	if err != nil || eventIn(rec, id) == nil {
		return err
	}
	return c.part(rec, id)
}

// part splits a record into one record per event, without the event less.
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

// EventAlone reads an event, encoded as its own record. It returns nil if no event has the id.
func (c *Change) EventAlone(id uint64) ([]byte, error) {
	rec, err := c.recordAt(id)
	if e := eventIn(rec, id); err == nil && e != nil {
		return e.Alone()
	}
	return nil, err
}

// recordAt is the record of an event. In a host's own store it is the first record at or after the id, which may hold
// the event. In a shared store it is the exact record: there each event has its own, and reading a range would conflict
// with others' writes.
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
