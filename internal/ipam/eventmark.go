package ipam

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// EventMark is a position in a host's events: one in its own store and one in the cluster's. The zero mark is before
// all events. Its text lets a client continue later, but only on the host that made it.
type EventMark struct {
	Host        [4]byte // a hash of the host's name; zero: any host
	Own, Shared StoreMark
}

// StoreMark is a position in the events of one store. A single id is enough if the store belongs to one host. In a
// shared store, events do not appear in the order of their ids. Of two independent changes, the later one may have the
// lower id. The events of one host do appear in order, and an id tells its host (ledger.membership.own).
type StoreMark struct {
	After   uint64           // events up to this id were sent, or are not wanted
	Told    [MaxHosts]uint64 // in a shared store: the last id sent for each host, by slot
	AtReach bool             // start at the moment the store is reached; earlier events are not new
}

// Passed reports whether the mark is at or after an event.
func (m *StoreMark) Passed(id uint64) bool { return id <= max(m.Told[id%MaxHosts], m.After) }

// Pass moves the mark past an event, and reports whether it was before it. The events of one host must come in order.
func (m *StoreMark) Pass(id uint64) bool {
	if m.Passed(id) {
		return false
	}
	m.Told[id%MaxHosts] = id
	return true
}

// markVersion is the first byte of an encoded mark.
const markVersion = 1

// HostMark returns the hash of a host's name for its marks.
func HostMark(host string) (m [4]byte) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	return [4]byte(h.Sum(nil))
}

// CheckHost refuses a mark from another host, because this host does not know the other's own store.
func (m *EventMark) CheckHost(host string) error {
	if m.Host == HostMark(host) || m.Host == ([4]byte{}) {
		return nil
	}
	return Refuse(ErrInvalid, "the mark comes from another host, and each host has events of its own: request events "+
		"from this host without a mark, and continue from the mark that it returns")
}

// MarshalText writes a mark as letters, digits, - and _ (RFC 4648, base64url).
func (m EventMark) MarshalText() ([]byte, error) {
	raw := append([]byte{markVersion}, m.Host[:]...)
	raw = m.Shared.append(m.Own.append(raw))
	return base64.RawURLEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText reads what MarshalText wrote. Any other text is ErrInvalid.
func (m *EventMark) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.AppendDecode(nil, text)
	d := decoder{B: raw}
	version := d.Byte()
	*m = EventMark{}
	d.Copy(m.Host[:])
	m.Own, m.Shared = d.storeMark(), d.storeMark()
	again, _ := m.MarshalText()
	if err != nil || version != markVersion || d.Failed || len(d.B) != 0 || !bytes.Equal(again, text) {
		return fmt.Errorf("%w: %q is not an event mark; each list of events contains one", ErrInvalid, text)
	}
	return nil
}

// append writes After and, for each slot beyond it, the difference.
func (m *StoreMark) append(b []byte) []byte {
	var slots []byte
	for slot, id := range m.Told {
		if id > m.After {
			slots = append(slots, byte(slot))
		}
	}
	reach := byte(0)
	if m.AtReach {
		reach = 1
	}
	b = binary.AppendUvarint(append(b, reach), m.After)
	b = binary.AppendUvarint(b, uint64(len(slots)))
	for _, slot := range slots {
		b = binary.AppendUvarint(append(b, slot), m.Told[slot]-m.After)
	}
	return b
}

func (d *decoder) storeMark() (m StoreMark) {
	m.AtReach = d.Byte() == 1
	m.After = d.uvarint()
	for n := d.uvarint(); n > 0 && !d.Failed; n-- {
		slot := d.Byte()
		m.Told[slot] = m.After + d.uvarint()
	}
	return m
}

// EventPage is a batch of events, and the mark after the last one.
type EventPage struct {
	Events []Event
	Next   EventMark
	More   bool // EventsBehind: more events follow the mark
}
