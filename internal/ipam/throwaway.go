package ipam

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
)

// A throwaway container leaves two events that are nearly the same: the lease of its address, and the release right
// after it. If such containers run one after another, so do their events. They share one record, which stores the
// common part once and then each lease's own part. The record has the id of its last event.

// throwAwayVersion is the first byte of a record of several events.
const throwAwayVersion = 2

// maxThrowAway is the maximum size, in bytes, of a record of several leases. Six of them fill a page of bbolt.
const maxThrowAway = 576

// MaxRecordEvents is the maximum number of events in one record.
const MaxRecordEvents = 2 * math.MaxUint8

// EncodeThrowAway appends the record of a lease that was released right after it was taken. taken is the record of the
// taking. It returns false if the taking has data that the release lacks; then both keep their own records.
func EncodeThrowAway(b, taken []byte, id uint64, release *Event) ([]byte, bool) {
	t, err := DecodeEvent(release.Lease, taken)
	if err != nil || !bytes.Equal(EncodeEvent(nil, release.taking(t.Actor, t.Detail)), taken) {
		return b, false
	}
	all := *release // its id and time give the offset between them
	all.Lease, all.Address, all.MAC, all.Name = 0, netip.Addr{}, MAC{}, ""
	same := EncodeEvent(appendString(appendString(nil, t.Actor), t.Detail), &all)
	b = append(b, throwAwayVersion, 1)
	b = appendString(b, string(same))
	b = append(b, 0) // no lease comes before it
	b = binary.AppendUvarint(b, id-release.Lease)
	b = appendSized(b, release.Address)
	b = append(b, release.MAC[:]...)
	return appendString(b, release.Name), true
}

// JoinThrowAway adds the lease in the record one to the record before. last is the id of before's last event, and taken
// the id of the new lease's first. It returns false if the record would be too large, or the leases differ too much.
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

// cutThrowAway splits a record into the number of its leases, their common part, and their own parts.
func cutThrowAway(b []byte) (n int, same, own []byte, ok bool) {
	d := decoder{B: b}
	if d.Byte() != throwAwayVersion {
		return 0, nil, nil, false
	}
	n = int(d.Byte())
	same = d.take(int(min(d.uvarint(), uint64(len(b)))))
	return n, same, d.B, !d.Failed
}

// taking returns the event that began the lease which a release ended. actor and detail are the taking's own.
func (e *Event) taking(actor, detail string) *Event {
	t := *e
	t.ID, t.Time, t.Verb, t.Actor, t.Detail = e.Lease, e.Time.Add(EventTime(e.Lease).Sub(EventTime(e.ID))), LeaseTaken,
		actor, detail
	return &t
}

// RecordEvents returns the number of events in a record.
func RecordEvents(b []byte) int {
	if len(b) > 1 && b[0] == throwAwayVersion {
		return 2 * int(b[1])
	}
	return 1
}

// DecodeEvents reads the events of a record, in order. The last one has the record's id. Its errors wrap ErrDamaged.
func DecodeEvents(id uint64, b []byte) ([]Event, error) {
	if len(b) == 0 || b[0] != throwAwayVersion {
		e, err := DecodeEvent(id, b)
		if err != nil {
			return nil, err
		}
		return []Event{*e}, nil
	}
	n, same, own, ok := cutThrowAway(b)
	s := decoder{B: same}
	actor, detail := s.String(), s.String()
	release, err := DecodeEvent(id, s.B)
	if err != nil {
		return nil, err
	}
	all := make([]Event, 0, 2*n)
	d, at := decoder{B: own}, uint64(0) // relative to the first event
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
		return nil, fmt.Errorf("%w: the events up to %d cannot be decoded", ErrDamaged, id)
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
