package ipam

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// EventMark is a place in the events of a host: behind so many of its own store, and of the cluster's. The zero one is
// before all. As text it is for those who go on from there later; it means something only on the host that made it.
type EventMark struct {
	Host        [4]byte // of the host's name; zero: any
	Own, Shared StoreMark
}

// StoreMark is a place in the events of one store. One id tells it where the store is a host's own. The events of
// hosts that share a store do not become part of it in the order of their ids: of two changes that touch nothing in
// common the later one may have the lower id. Those of one host do, and an id tells whose it is
// (ledger.membership.own).
type StoreMark struct {
	After   uint64           // what has no greater id was told, or is not wanted
	Told    [MaxHosts]uint64 // of a shared store: the last id of each host, by its slot
	AtReach bool             // it is where the store is reached: what was there before is not new
}

// Passed tells whether the mark is behind an event.
func (m *StoreMark) Passed(id uint64) bool { return id <= max(m.Told[id%MaxHosts], m.After) }

// Pass tells whether an event was not told yet, and that it is now. Those of one host come in order.
func (m *StoreMark) Pass(id uint64) bool {
	if m.Passed(id) {
		return false
	}
	m.Told[id%MaxHosts] = id
	return true
}

// markVersion leads the text of a mark.
const markVersion = 1

// HostMark is what a mark says of the host that made it.
func HostMark(host string) (m [4]byte) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(host))
	return [4]byte(h.Sum(nil))
}

// CheckHost refuses a mark that another host has made: of its own store this one knows nothing.
func (m *EventMark) CheckHost(host string) error {
	if m.Host == HostMark(host) || m.Host == ([4]byte{}) {
		return nil
	}
	return Refuse(ErrInvalid, "the mark is one of another host's events, and each host has some of its own: "+
		"ask this host for events without a mark, and go on from the one that it answers with")
}

// MarshalText makes a mark a word of letters, digits, - and _.
func (m EventMark) MarshalText() ([]byte, error) {
	raw := append([]byte{markVersion}, m.Host[:]...)
	raw = m.Shared.append(m.Own.append(raw))
	return base64.RawURLEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText reads what MarshalText wrote; anything else is ErrInvalid.
func (m *EventMark) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.AppendDecode(nil, text)
	d := Decoder{B: raw}
	version := d.Byte()
	*m = EventMark{}
	d.Copy(m.Host[:])
	m.Own, m.Shared = d.storeMark(), d.storeMark()
	again, _ := m.MarshalText()
	if err != nil || version != markVersion || d.Failed || len(d.B) != 0 || !bytes.Equal(again, text) {
		return fmt.Errorf("%w: %q is no mark of events; one is in each list of them", ErrInvalid, text)
	}
	return nil
}

// append writes a mark: what it is behind, and the slots that have told more than that.
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

func (d *Decoder) storeMark() (m StoreMark) {
	m.AtReach = d.Byte() == 1
	m.After = d.uvarint()
	for n := d.uvarint(); n > 0 && !d.Failed; n-- {
		slot := d.Byte()
		m.Told[slot] = m.After + d.uvarint()
	}
	return m
}

// EventPage is events that came together, and the mark behind them.
type EventPage struct {
	Events []Event
	Next   EventMark
	More   bool // EventsBehind: there are more behind the mark
}
