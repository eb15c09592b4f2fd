package ipam

import (
	"bytes"
	"fmt"
	"net/netip"
)

// A container that is thrown away leaves two events, one right after the other, and both say the same of the same lease.
// They share a record, which is that of the release: before it stands what only the taking says.

// pairVersion leads the record of a release that has its taking with it.
const pairVersion = 2

// EncodePair appends the record of a release together with the event right before it, the taking of the same lease, of
// which taken is the record. False: the taking says more than the release does, and keeps its own record.
func EncodePair(b, taken []byte, release *Event) ([]byte, bool) {
	t, err := DecodeEvent(release.Lease, taken)
	if err != nil || !bytes.Equal(EncodeEvent(nil, release.taking(t.Actor, t.Detail)), taken) {
		return b, false
	}
	b = append(b, pairVersion)
	b = AppendString(b, t.Actor)
	b = AppendString(b, t.Detail)
	return EncodeEvent(b, release), true
}

// taking is the event that began what a release ends, with what only that one says.
func (e *Event) taking(actor, detail string) *Event {
	t := *e
	t.ID, t.Time, t.Verb, t.Actor, t.Detail = e.Lease, EventTime(e.Lease), LeaseTaken, actor, detail
	return &t
}

// DecodeEvents reads the record of an id: the event of that id and, where the two share the record, the taking before
// it; else nil.
func DecodeEvents(id uint64, b []byte) (taken, e *Event, err error) {
	actor, detail, alone, paired := cutPair(b)
	if e, err = DecodeEvent(id, alone); err != nil || !paired {
		return nil, e, err
	}
	if e.Verb != LeaseReleased || e.Lease == 0 || e.Lease >= id {
		return nil, nil, fmt.Errorf("%w: event %d is not the end of the lease that its record has with it", ErrDamaged, id)
	}
	return e.taking(actor, detail), e, nil
}

// cutPair takes a record apart: what a taking says that shares it, and the record of the other event alone.
func cutPair(b []byte) (actor, detail string, alone []byte, paired bool) {
	if len(b) == 0 || b[0] != pairVersion {
		return "", "", b, false
	}
	d := Decoder{B: b[1:]}
	actor, detail = d.String(), d.String()
	if d.Failed {
		return "", "", nil, true // which does not decode
	}
	return actor, detail, d.B, true
}

// TakenIn is the id of the taking in a record; 0 where the record is of one event.
func TakenIn(b []byte) uint64 {
	if len(b) == 0 || b[0] != pairVersion {
		return 0
	}
	_, lease, _ := eventSubject(b)
	return lease
}

// EventAddress reads the address of an event out of its record, and nothing else of it; false where that cannot be read
// so, which DecodeEvents says why. The events of one record have one address.
func EventAddress(b []byte) (addr netip.Addr, ok bool) {
	addr, _, ok = eventSubject(b)
	return addr, ok
}

// eventSubject reads of which address and lease a record is.
func eventSubject(b []byte) (addr netip.Addr, lease uint64, ok bool) {
	d := Decoder{B: b}
	if len(b) > 0 && b[0] == pairVersion {
		d.Byte()
		d.skipString() // who took it
		d.skipString() // and how
	}
	if d.Byte() != eventVersion {
		return addr, 0, false
	}
	d.Byte()       // the verb
	d.skipString() // actor
	d.skipString() // space
	d.prefix()
	addr, lease = d.Addr(), d.uvarint()
	return addr, lease, !d.Failed
}

// skipString passes over a text.
func (d *Decoder) skipString() { d.take(int(min(d.uvarint(), uint64(len(d.B))+1))) }
