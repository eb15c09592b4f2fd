package allocator

import (
	"iter"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Reading reads the record of an address; nil: it has none. What an index says of one is advice.
type Reading func(netip.Addr) (*ipam.Lease, error)

// LastHad is the memory that the container of who asks, by its short id, else its name, else its MAC, has left last,
// of those that may be given: a container that was renamed is the same one, and what a name had is of whoever has the
// name, once nobody else has it again. The quarantine does not bind it.
func LastHad(sx *ledger.SubnetIndex, req *ipam.AddressRequest, container string, read Reading,
	may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	own, err := latest(sx.SawContainer(container), read, func(m *ipam.Lease) bool {
		return isMemory(m) && m.Container == container && may(m)
	})
	if err != nil || own != nil {
		return own, err
	}
	name := ipam.RememberedName(req.Name)
	byName, err := latest(sx.SawName(name), read, func(m *ipam.Lease) bool {
		return isMemory(m) && ipam.RememberedName(m.Name) == name && may(m)
	})
	if err != nil || byName != nil {
		return byName, err
	}
	return latest(sx.SawMAC(req.MAC), read, func(m *ipam.Lease) bool {
		return isMemory(m) && m.MAC == req.MAC && may(m)
	})
}

func isMemory(l *ipam.Lease) bool { return l.Remembered() && l.Reservation == nil }

// latest is the record among the places that was in use last, the lower one of two; nil where none is of those that
// are looked for. The order of the places says not which: a change that was taken back has put them in another.
func latest(places iter.Seq[netip.Addr], read Reading, is func(*ipam.Lease) bool) (last *ipam.Lease, err error) {
	for addr := range places {
		l, err := read(addr)
		if err != nil {
			return nil, err
		}
		if l != nil && is(l) && (last == nil || isLater(l, last)) {
			last = l
		}
	}
	return last, nil
}

func isLater(l, than *ipam.Lease) bool {
	at, other := l.LastUsed(), than.LastUsed()
	return at.After(other) || at.Equal(other) && l.Address.Less(than.Address)
}
