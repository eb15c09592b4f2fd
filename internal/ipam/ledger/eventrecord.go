package ledger

import (
	"cmp"
	"iter"
	"math"
	"net/netip"

	"berth/internal/ipam"
	"berth/store"
)

// EventSum is how many events are stored, and how many bytes of the store they take.
type EventSum struct {
	Count int
	Bytes int64
}

// eventOverhead is what a record of events takes of a file besides its value: its key, its seal, and its entry in the
// page.
const eventOverhead = 9 + 5 + 16

// sumOf is what one record adds to a sum.
func sumOf(record []byte) EventSum {
	sum := EventSum{1, int64(len(record)) + eventOverhead}
	if ipam.TakenIn(record) != 0 {
		sum.Count++
	}
	return sum
}

func (s *EventSum) add(other EventSum) { s.Count, s.Bytes = s.Count+other.Count, s.Bytes+other.Bytes }

func (s EventSum) negative() EventSum { return EventSum{-s.Count, -s.Bytes} }

// Without is the sum less that of a record.
func (s EventSum) Without(record []byte) EventSum {
	s.add(sumOf(record).negative())
	return s
}

// Over tells whether it is more than is to be kept.
func (s EventSum) Over(keep ipam.Retention) bool { return s.Count > keep.Count || s.Bytes > keep.Bytes }

// largestRecord is what one record takes at most, which is a release with its taking, or one event of any size.
var largestRecord = EventSum{2, store.MaxValue + eventOverhead}

// Few tells whether so few are left that none was removed because there were more than are to be kept.
func (s EventSum) Few(keep ipam.Retention) bool {
	s.add(largestRecord)
	return s.Count <= keep.Count && s.Bytes <= keep.Bytes
}

// StoredEvent is an event as it lies in the store, of which nothing but its id was read yet.
type StoredEvent struct {
	ID     uint64
	record uint64 // the id of the record's key
	value  []byte
}

// eventsIn are the events of a record, in order.
func eventsIn(rec store.Record) (all [2]StoredEvent, n int) {
	id := EventID(rec.Key)
	if taken := ipam.TakenIn(rec.Value); taken != 0 {
		all[0], n = StoredEvent{taken, id, rec.Value}, 1
	}
	all[n] = StoredEvent{id, id, rec.Value}
	return all, n + 1
}

// Decode reads the event; nil: there is none.
func (e *StoredEvent) Decode() (*ipam.Event, error) {
	if e == nil {
		return nil, nil
	}
	taken, last, err := ipam.DecodeEvents(e.record, e.value)
	if err == nil && e.ID != e.record {
		return taken, nil
	}
	return last, err
}

// Address reads the address of the event, and nothing else of it; false where that cannot be read so.
func (e *StoredEvent) Address() (netip.Addr, bool) { return ipam.EventAddress(e.value) }

// Alone is the event as a record of its own; nil: there is none.
func (e *StoredEvent) Alone() ([]byte, error) {
	if e == nil {
		return nil, nil
	}
	if ipam.TakenIn(e.value) == 0 {
		return e.value, nil
	}
	ev, err := e.Decode()
	if err != nil {
		return nil, err
	}
	return ipam.EncodeEvent(nil, ev), nil
}

// EventRange selects the events from From (included) to To (excluded; 0: to the last one).
type EventRange struct {
	From, To uint64
	Reverse  bool // the last one first
}

// EventsIn yields the events of a range in order. What shares its record with one behind the range is in it.
func EventsIn(tx store.Tx, r EventRange) iter.Seq2[StoredEvent, error] {
	to := cmp.Or(r.To, math.MaxUint64)
	return func(yield func(StoredEvent, error) bool) {
		show := func(rec store.Record) bool {
			all, n := eventsIn(rec)
			if r.Reverse && n == 2 {
				all[0], all[1] = all[1], all[0]
			}
			for _, e := range all[:n] {
				if e.ID >= r.From && e.ID < to && !yield(e, nil) {
					return false
				}
			}
			return true
		}
		for _, keys := range r.keys() {
			for rec, err := range tx.Scan(keys) {
				if err != nil {
					yield(StoredEvent{}, err)
					return
				}
				if !show(rec) {
					return
				}
			}
		}
	}
}

// keys are where the records of a range are, in the order in which they are read: the last one may have a key behind it.
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

// FindEvent reads an event; nil where there is none of that id.
func FindEvent(tx store.Tx, id uint64) (*ipam.Event, error) {
	rec, err := recordFrom(tx, EventKey(nil, id))
	if err != nil {
		return nil, err
	}
	return eventIn(rec, id).Decode()
}

// EventAlone reads an event as a record of its own; nil where there is none of that id.
func EventAlone(tx store.Tx, id uint64) ([]byte, error) {
	rec, err := recordFrom(tx, EventKey(nil, id))
	if err != nil {
		return nil, err
	}
	return eventIn(rec, id).Alone()
}

// eventIn is the event of an id in a record; nil where that has none.
func eventIn(rec store.Record, id uint64) *StoredEvent {
	all, n := eventsIn(rec)
	for i := range all[:n] {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}
