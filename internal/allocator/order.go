package allocator

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Source holds what one subnet offers to a requester.
type Source interface {
	// Reserved returns the address that is reserved for the requester, or nil.
	Reserved() (*ipam.Lease, error)
	// Open returns an error if only reserved addresses may be given.
	Open() error
	// Remembered returns the free address that the requester had last, or nil.
	Remembered() (*ipam.Lease, error)
	// Any returns an address that anybody may have, with its record. It returns the zero address if there is none.
	Any() (netip.Addr, *ipam.Lease, error)
}

// First applies the rule of which address a requester gets: its reservation, else its last address. Else it is an
// address from the pools of the first source that has one (Next). First also returns the address's record (a memory, a
// reservation or nil) and its source. It returns the zero address if there is none.
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

// Next chooses an address of a pool for a requester without a claim to one. It is the lowest address that was never
// used; hosts that share the pool start at different places. Otherwise it is the address released longest ago and past
// its quarantine. Addresses of removed containers come before those of existing ones.
func Next(sx *ledger.SubnetIndex, p ledger.OpenPool, slot int, now time.Time, kept ipam.Wants,
	exists func(name, id string) bool) (netip.Addr, bool) {
	if addr, ok := sx.NeverUsed(p, slot, kept); ok {
		return addr, true
	}
	addr, _, ok := sx.LongestReleased(p, now, kept, exists)
	return addr, ok
}
