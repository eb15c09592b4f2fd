package ledger

import (
	"cmp"
	"iter"
	"math"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// EventSum is the number of stored events and their size in bytes.
type EventSum struct {
	Count int
	Bytes int64
	Ahead int // records whose ids are ahead of their times
}

// eventOverhead is the number of bytes that a record of events takes in a file besides its value: its key, its seal,
// and its entry in the page.
const eventOverhead = 9 + 5 + 16

// sumOf is the sum of one record.
func sumOf(record []byte) EventSum {
	sum := EventSum{Count: ipam.RecordEvents(record), Bytes: int64(len(record)) + eventOverhead}
	if ipam.EventsAhead(record) > 0 {
		sum.Ahead = 1
	}
	return sum
}

func (s *EventSum) add(other EventSum) {
	s.Count, s.Bytes, s.Ahead = s.Count+other.Count, s.Bytes+other.Bytes, s.Ahead+other.Ahead
}

func (s EventSum) negative() EventSum { return EventSum{-s.Count, -s.Bytes, -s.Ahead} }

// Without is the sum minus one record.
func (s EventSum) Without(record []byte) EventSum {
	s.add(sumOf(record).negative())
	return s
}

// Over reports whether the sum exceeds the retention.
func (s EventSum) Over(keep ipam.Retention) bool { return s.Count > keep.Count || s.Bytes > keep.Bytes }

// largestRecord is the largest possible sum of one record.
var largestRecord = EventSum{Count: ipam.MaxRecordEvents, Bytes: store.MaxValue + eventOverhead}

// Few reports whether the sum plus a largest record is within the retention. Then no event was removed for the number
// or the bytes.
func (s EventSum) Few(keep ipam.Retention) bool {
	s.add(largestRecord)
	return s.Count <= keep.Count && s.Bytes <= keep.Bytes
}

// StoredEvent is an event from the store, which may not be decoded yet.
type StoredEvent struct {
	ID     uint64
	record []byte      // its own record, not yet decoded; nil: it shares a record
	event  *ipam.Event // decoded from a shared record
	err    error       // the shared record does not decode
}

// eventsIn returns the events of a record, in order. If a shared record cannot be decoded, it returns one element with
// the error.
func eventsIn(rec store.Record) []StoredEvent {
	id := EventID(rec.Key)
	if ipam.RecordEvents(rec.Value) == 1 {
		return []StoredEvent{{ID: id, record: rec.Value}}
	}
	events, err := ipam.DecodeEvents(id, rec.Value)
	if err != nil {
		return []StoredEvent{{ID: id, err: err}}
	}
	all := make([]StoredEvent, len(events))
	for i := range events {
		all[i] = StoredEvent{ID: events[i].ID, event: &events[i]}
	}
	return all
}

// Time is when the event was written.
func (e *StoredEvent) Time() time.Time {
	if e.event != nil {
		return e.event.Time
	}
	return ipam.EventTime(e.ID - ipam.EventsAhead(e.record))
}

// Decode returns the event, or an error if its record is damaged.
func (e *StoredEvent) Decode() (*ipam.Event, error) {
	if e.record == nil {
		return e.event, e.err
	}
	return ipam.DecodeEvent(e.ID, e.record)
}

// Address reads only the address of the event. It returns false if the address cannot be read alone.
func (e *StoredEvent) Address() (netip.Addr, bool) {
	if e.event != nil {
		return e.event.Address, true
	}
	return ipam.EventAddress(e.record)
}

// Alone returns the event encoded as its own record.
func (e *StoredEvent) Alone() ([]byte, error) {
	if e.event == nil {
		return e.record, e.err
	}
	return ipam.EncodeEvent(nil, e.event), nil
}

// EventRange selects the events from From (included) to To (excluded; 0: to the last one).
type EventRange struct {
	From, To uint64
	Reverse  bool // newest first
}

// EventsIn yields the events of a range in order. An error ends the sequence.
func EventsIn(tx store.Tx, r EventRange) iter.Seq2[StoredEvent, error] {
	to := cmp.Or(r.To, math.MaxUint64)
	return func(yield func(StoredEvent, error) bool) {
		for _, keys := range r.keys() {
			for rec, err := range tx.Scan(keys) {
				if err != nil {
					yield(StoredEvent{}, err)
					return
				}
				all := eventsIn(rec)
				if r.Reverse {
					slices.Reverse(all)
				}
				for _, e := range all {
					if e.ID >= r.From && e.ID < to && !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}

// keys are the key ranges of an event range's records, in reading order. A record has the id of its last event. So the
// first record after the range may also hold events of the range.
func (r EventRange) keys() []store.Range {
	all := KindRange(EventKeys)
	all.From, all.Reverse = EventKey(nil, r.From), r.Reverse
	if r.To == 0 {
		return []store.Range{all}
	}
	last := store.Range{From: EventKey(nil, r.To), To: all.To, Limit: 1}
	all.To = last.From
	if r.Reverse {
		return []store.Range{last, all}
	}
	return []store.Range{all, last}
}

// FindEvent reads an event. It returns nil if no event has the id.
func FindEvent(tx store.Tx, id uint64) (*ipam.Event, error) {
	rec, err := recordFrom(tx, EventKey(nil, id))
	if e := eventIn(rec, id); err == nil && e != nil {
		return e.Decode()
	}
	return nil, err
}

// EventAlone reads an event, encoded as its own record. It returns nil if no event has the id.
func EventAlone(tx store.Tx, id uint64) ([]byte, error) {
	rec, err := recordFrom(tx, EventKey(nil, id))
	if e := eventIn(rec, id); err == nil && e != nil {
		return e.Alone()
	}
	return nil, err
}

// eventIn returns the event of an id in a record, or nil.
func eventIn(rec store.Record, id uint64) *StoredEvent {
	all := eventsIn(rec)
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// recordFrom is the first record of events at or after a key, or the zero record.
func recordFrom(tx store.Tx, key []byte) (store.Record, error) {
	return firstRecord(tx, store.Range{From: key, To: KindRange(EventKeys).To})
}

// recordBefore is the last record of events before a key, or the zero record.
func recordBefore(tx store.Tx, key []byte) (store.Record, error) {
	return firstRecord(tx, store.Range{From: KindRange(EventKeys).From, To: key, Reverse: true})
}

func firstRecord(tx store.Tx, r store.Range) (store.Record, error) {
	r.Limit = 1
	for rec, err := range tx.Scan(r) {
		return rec, err
	}
	return store.Record{}, nil
}
