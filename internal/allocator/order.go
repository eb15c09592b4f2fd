package allocator

import (
	"net/netip"
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
	exists func(name, id string) bool) (netip.Addr, bool) {
	if addr, ok := sx.NeverUsed(p, slot, kept); ok {
		return addr, true
	}
	addr, _, ok := sx.LongestReleased(p, now, kept, exists)
	return addr, ok
}
