package choose

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Source is what one subnet has for one who asks.
type Source interface {
	// Reserved is the address that is his by a reservation, nil where there is none.
	Reserved() (*ipam.Lease, error)
	// Open refuses where nothing is given but what is reserved.
	Open() error
	// Remembered is the free address that he had last, nil where there is none.
	Remembered() (*ipam.Lease, error)
	// Any is an address that anybody may have, with its record; the zero one where there is none.
	Any() (netip.Addr, *ipam.Lease, error)
}

// First is the rule of which address is chosen, for whoever asks: what is reserved for him, else what he had last,
// else of the first source that has any what its pools give (Next). It comes with its record, a memory, a reservation
// or nil, and with the source; the zero address where there is none.
func First[S Source](sources ...S) (from S, addr netip.Addr, record *ipam.Lease, err error) {
	for _, from = range sources {
		if record, err = from.Reserved(); err != nil || record != nil {
			return from, AddressOf(record), record, err
		}
	}
	for _, from = range sources {
		if err := from.Open(); err != nil {
			return from, netip.Addr{}, nil, err
		}
	}
	for _, from = range sources {
		if record, err = from.Remembered(); err != nil || record != nil {
			return from, AddressOf(record), record, err
		}
	}
	for _, from = range sources { // LN-13, GA-16
		if addr, record, err = from.Any(); err != nil || addr.IsValid() {
			return from, addr, record, err
		}
	}
	return from, netip.Addr{}, nil, nil
}

// Next is what a pool gives to whom nothing in it belongs: the lowest address that nobody ever had, on a host that
// shares the pool with others from its own place in it on, else the one that was released longest ago and is past its
// quarantine, of one who is gone before that of one who exists.
func Next(sx *ledger.SubnetIndex, p ledger.OpenPool, slot int, now time.Time, kept ipam.Wants,
	exists func(name string) bool) (netip.Addr, bool) {
	if addr, ok := sx.NeverUsed(p, slot, kept); ok {
		return addr, true
	}
	addr, _, ok := sx.LongestReleased(p, now, kept, exists)
	return addr, ok
}

// Reading reads the record of an address; nil: it has none. What an index says of one is advice.
type Reading func(netip.Addr) (*ipam.Lease, error)

// LastHad is the memory that the name of who asks, else its MAC, has left last, of those that may be given. The
// quarantine does not bind it.
func LastHad(sx *ledger.SubnetIndex, req *ipam.AddressRequest, read Reading,
	may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	name := ipam.RememberedName(req.Name)
	byName, err := latest(sx.ByName().Of(name), read, func(m *ipam.Lease) bool {
		return isMemory(m) && ipam.RememberedName(m.Name) == name && may(m)
	})
	if err != nil || byName != nil {
		return byName, err
	}
	return latest(sx.ByMAC().Of(req.MAC), read, func(m *ipam.Lease) bool {
		return isMemory(m) && m.MAC == req.MAC && may(m)
	})
}

func isMemory(l *ipam.Lease) bool { return l.Remembered() && l.Reservation == nil }

// Repeated is the lease of which req is a repetition: one that somebody has, and whose endpoint has lost it, as is
// tells. Where an address is asked for it can be no other one.
func Repeated(sx *ledger.SubnetIndex, req *ipam.AddressRequest, read Reading,
	is func(*ipam.Lease) bool) (*ipam.Lease, error) {
	places := sx.ByMAC().Of(req.MAC)
	switch {
	case req.Preferred.IsValid():
		places = slices.Values([]netip.Addr{req.Preferred})
	case req.MAC == (ipam.MAC{}):
		places = sx.ByName().Of(ipam.RememberedName(req.Name))
	}
	return latest(places, read, func(l *ipam.Lease) bool { return l.Held() && is(l) })
}

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

// SameEndpoint tells whether req says what the endpoint of a lease said: the MAC, and the name where one is sent. An
// address alone identifies nobody.
func SameEndpoint(req *ipam.AddressRequest, mac ipam.MAC, name string) bool {
	if req.MAC == (ipam.MAC{}) && req.Name == "" {
		return false
	}
	return mac == req.MAC && (req.Name == "" || name == req.Name)
}
