package ipam

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
)

// A container that is thrown away leaves two events, the taking of its address and the release right behind it, which say
// nearly the same; and where such containers come one after the other, so do their events. They share a record: what all
// of them say stands in it once, and then of each lease what is its own. The record is that of the last of its events.

// throwAwayVersion leads a record of leases that were thrown away.
const throwAwayVersion = 2

// maxThrowAway is how many bytes a record of several leases has at most: six of these fill a page of bbolt.
const maxThrowAway = 576

// MaxRecordEvents is how many events one record has at most.
const MaxRecordEvents = 2 * math.MaxUint8

// EncodeThrowAway appends the record of a lease that was released right behind its taking, of which taken is the record.
// False: the taking says more than the release does, and both keep records of their own.
func EncodeThrowAway(b, taken []byte, id uint64, release *Event) ([]byte, bool) {
	t, err := DecodeEvent(release.Lease, taken)
	if err != nil || !bytes.Equal(EncodeEvent(nil, release.taking(t.Actor, t.Detail)), taken) {
		return b, false
	}
	all := *release // its id and time tell how far the one is ahead of the other
	all.Lease, all.Address, all.MAC, all.Name = 0, netip.Addr{}, MAC{}, ""
	same := EncodeEvent(appendString(appendString(nil, t.Actor), t.Detail), &all)
	b = append(b, throwAwayVersion, 1)
	b = appendString(b, string(same))
	b = append(b, 0) // it is behind no other
	b = binary.AppendUvarint(b, id-release.Lease)
	b = appendSized(b, release.Address)
	b = append(b, release.MAC[:]...)
	return appendString(b, release.Name), true
}

// JoinThrowAway is a record of leases that were thrown away, of which the last event has the id last, with one more, of
// which one is the record, and taken the id of its taking. False: they are too many for a record, or too different.
func JoinThrowAway(before []byte, last uint64, one []byte, taken uint64) ([]byte, bool) {
	n, same, _, ok := cutThrowAway(before)
	_, sameHere, own, okHere := cutThrowAway(one)
	if !ok || !okHere || n == math.MaxUint8 || !bytes.Equal(same, sameHere) {
		return nil, false
	}
	b := append(make([]byte, 0, len(before)+len(own)+binary.MaxVarintLen64), before...)
	b[1]++
	b = binary.AppendUvarint(b, taken-last)
	b = append(b, own[1:]...)
	return b, len(b) <= maxThrowAway
}

// cutThrowAway takes a record apart: the number of its leases, what all of them say, and what each says.
func cutThrowAway(b []byte) (n int, same, own []byte, ok bool) {
	d := Decoder{B: b}
	if d.Byte() != throwAwayVersion {
		return 0, nil, nil, false
	}
	n = int(d.Byte())
	same = d.take(int(min(d.uvarint(), uint64(len(b)))))
	return n, same, d.B, !d.Failed
}

// taking is the event that began what a release ends, with what only that one says.
func (e *Event) taking(actor, detail string) *Event {
	t := *e
	t.ID, t.Time, t.Verb, t.Actor, t.Detail = e.Lease, e.Time.Add(EventTime(e.Lease).Sub(EventTime(e.ID))), LeaseTaken,
		actor, detail
	return &t
}

// RecordEvents is how many events a record has.
func RecordEvents(b []byte) int {
	if len(b) > 1 && b[0] == throwAwayVersion {
		return 2 * int(b[1])
	}
	return 1
}

// DecodeEvents reads the events of a record, in order, of which the last one has the record's id.
func DecodeEvents(id uint64, b []byte) ([]Event, error) {
	if len(b) == 0 || b[0] != throwAwayVersion {
		e, err := DecodeEvent(id, b)
		if err != nil {
			return nil, err
		}
		return []Event{*e}, nil
	}
	n, same, own, ok := cutThrowAway(b)
	s := Decoder{B: same}
	actor, detail := s.String(), s.String()
	release, err := DecodeEvent(id, s.B)
	if err != nil {
		return nil, err
	}
	all := make([]Event, 0, 2*n)
	d, at := Decoder{B: own}, uint64(0) // behind the first event
	for range n {
		e := *release
		e.Lease = at + d.uvarint()
		e.ID = e.Lease + d.uvarint()
		e.Address = d.Addr()
		d.Copy(e.MAC[:])
		e.Name = d.String()
		d.Failed = d.Failed || e.Lease < at || e.Lease == at && at > 0 || e.ID <= e.Lease || e.ID >= id
		at = e.ID
		all = append(all, *e.taking(actor, detail), e)
	}
	if !ok || s.Failed || d.Failed || len(d.B) != 0 || n == 0 || all[0].ID != 0 || release.Verb != LeaseReleased {
		return nil, fmt.Errorf("%w: the events up to %d do not decode", ErrDamaged, id)
	}
	ahead := release.aheadOf()
	for i := range all {
		e := &all[i]
		e.ID += id - at
		e.Lease += id - at
		e.Time = EventTime(e.ID - ahead)
	}
	return all, nil
}
