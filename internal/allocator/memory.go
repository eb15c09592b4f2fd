package allocator

import (
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Reading reads the record of an address, or nil if it has none. An index alone is only a hint.
type Reading func(netip.Addr) (*ipam.Lease, error)

// LastHad returns the latest memory of a container, by its short id, else its name, else its MAC, that may be given. A
// renamed container is the same container. The address of a name belongs to whoever has the name, once its old holder
// is gone. The quarantine does not apply.
func LastHad(sx *ledger.SubnetIndex, container, name string, mac ipam.MAC, read Reading,
	may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	own, err := latest(sx.SawContainer(container), read, func(m *ipam.Lease) bool {
		return isMemory(m) && m.Container == container && may(m)
	})
	if err != nil || own != nil {
		return own, err
	}
	name = ipam.RememberedName(name)
	byName, err := latest(sx.SawName(name), read, func(m *ipam.Lease) bool {
		return isMemory(m) && ipam.RememberedName(m.Name) == name && may(m)
	})
	if err != nil || byName != nil {
		return byName, err
	}
	return latest(sx.SawMAC(mac), read, func(m *ipam.Lease) bool {
		return isMemory(m) && m.MAC == mac && may(m)
	})
}

func isMemory(l *ipam.Lease) bool { return l.Remembered() && l.Reservation == nil }

// latest returns the record that was in use last, of those that is selects. Of two it takes the lower address; it
// returns nil if there is none. The order of places does not help, because a rolled-back change can alter it.
func latest(places []netip.Addr, read Reading, is func(*ipam.Lease) bool) (last *ipam.Lease, err error) {
	for _, addr := range places {
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
