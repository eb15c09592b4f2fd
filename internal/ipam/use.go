package ipam

import (
	"math/big"
	"net/netip"
)

// PoolUse is how the addresses of one pool of a subnet are used, or those of the subnet that are in no pool.
type PoolUse struct {
	Space   string
	Network string // its name
	Subnet  netip.Prefix
	Pool    string // its name, else its range; empty: in no pool
	StateCounts
}

// AddressState is how one address is used: the first that fits of those below, in their order.
type AddressState string

// The states of an address.
const (
	AddressLeased      AddressState = "leased"      // in somebody's hands
	AddressQuarantined AddressState = "quarantined" // given back, and not to be given to others yet
	AddressReserved    AddressState = "reserved"    // for an owner that does not hold it
	AddressExcluded    AddressState = "excluded"    // not given automatically, whichever pool it is in
	AddressFree        AddressState = "free"        // in a pool: the next one may be given it
	AddressOutside     AddressState = "outside"     // in no pool: only who asks for it is given it
)

// AddressStates are all of them, in their order.
func AddressStates() []AddressState {
	return []AddressState{AddressLeased, AddressQuarantined, AddressReserved, AddressExcluded, AddressFree,
		AddressOutside}
}

// LayoutFilter chooses a part of a subnet.
type LayoutFilter struct {
	Within netip.Prefix // zero: all of it
	From   netip.Addr   // rows from this address on; zero: from the first
	Limit  int          // at most so many rows; 0: all
}

// Layout is how the addresses of a part of a subnet lie.
type Layout struct {
	Subnet SubnetInfo
	Within netip.Prefix
	Sum    StateCounts
	// Parts are the blocks of Within that are looked at one by one: where it has more than MaxParts addresses, MaxParts
	// equal ones; of IPv6 those alone in which an address has a record, as small as MaxParts of them allow. None where
	// it has no more addresses than that: the rows tell each.
	Parts []LayoutPart
	Rows  []LayoutRow // cover Within from the first row on, in the order of addresses
	Next  netip.Addr  // where the rows go on; zero: they do not
}

// MaxParts is how many parts a Layout has at most.
const MaxParts = 256

// StateCounts is how many addresses are in which state. Each is counted once, in the first that fits.
type StateCounts struct {
	Leased      uint64 `json:"leased"`
	Quarantined uint64 `json:"quarantined"`
	Reserved    uint64 `json:"reserved"`
	Excluded    Count  `json:"excluded"`
	Free        Count  `json:"free"`
	Outside     Count  `json:"outside"`
}

// Of is how many are in a state.
func (n *StateCounts) Of(state AddressState) Count {
	exact := func(n uint64) Count { return Count{new(big.Int).SetUint64(n)} }
	switch state {
	case AddressLeased:
		return exact(n.Leased)
	case AddressQuarantined:
		return exact(n.Quarantined)
	case AddressReserved:
		return exact(n.Reserved)
	case AddressExcluded:
		return n.Excluded.plus(Count{})
	case AddressFree:
		return n.Free.plus(Count{})
	}
	return n.Outside.plus(Count{})
}

// Add counts those of other addresses, too.
func (n *StateCounts) Add(other *StateCounts) {
	n.Leased, n.Quarantined = n.Leased+other.Leased, n.Quarantined+other.Quarantined
	n.Reserved, n.Excluded = n.Reserved+other.Reserved, n.Excluded.plus(other.Excluded)
	n.Free, n.Outside = n.Free.plus(other.Free), n.Outside.plus(other.Outside)
}

// Percent is how much of what can be given is leased, reserved or in quarantine; excluded addresses cannot be given. It
// is rounded to the nearest whole number: 100 only where none is free, 0 only where all are. It is false where nothing
// can be given at all.
func (n *StateCounts) Percent() (percent int, ok bool) {
	used := new(big.Int).SetUint64(n.Leased)
	used.Add(used, new(big.Int).SetUint64(n.Quarantined)).Add(used, new(big.Int).SetUint64(n.Reserved))
	all := Count{Int: used}.plus(n.Free).Int
	switch {
	case all.Sign() == 0:
		return 0, false
	case used.Sign() == 0:
		return 0, true
	case used.Cmp(all) == 0:
		return whole, true
	}
	rounded := used.Mul(used, big.NewInt(2*whole)) // to the nearest: (200 used + all) / (2 all)
	rounded.Add(rounded, all).Div(rounded, new(big.Int).Lsh(all, 1))
	return min(max(int(rounded.Int64()), 1), whole-1), true
}

const whole = 100

// LayoutPart is a block of addresses.
type LayoutPart struct {
	Prefix netip.Prefix
	StateCounts
}

// LayoutRow is one address that somebody has, or that is kept for somebody, or a range of addresses of one state for
// which nothing else is to be said.
type LayoutRow struct {
	Range Range
	State AddressState
	Pool  string // its name, of what is free
	Note  string // of an exclusion

	Lease       *LeaseInfo       // who has it, or had it last
	Reservation *ReservationInfo // whose it is
}

// ElasticUse is how elastic addresses are used.
type ElasticUse struct {
	Host      string // this one
	Ranges    []RangeUse
	Unapplied int // associations that are to be in force here, and of which this host's edge does not say so
}

// RangeUse is how the addresses of one range are used: free are those that no account has.
type RangeUse struct {
	Range                Range
	Allocated, Releasing uint64
	Free                 Count
}

// FreeFilter chooses free addresses of a network. Zero fields choose all.
type FreeFilter struct {
	Subnet netip.Prefix `query:"subnet" doc:"Only this subnet." example:"192.0.2.0/24"`
	Pool   string       `query:"pool" doc:"Only pools with this name." example:"web"`
	After  netip.Addr   // only those behind it
	Limit  int          // only so many ranges
}

// FreeRange is a range of addresses of one pool of which each could be given to anybody now, and of which neither
// neighbour could. It may be one address.
type FreeRange struct {
	Space     string       `json:"space"`
	Network   string       `json:"network"` // its name
	NetworkID ID           `json:"network_id"`
	Subnet    netip.Prefix `json:"subnet"`
	Pool      string       `json:"pool,omitempty"` // its name
	Start     netip.Addr   `json:"start"`
	End       netip.Addr   `json:"end"`
	Addresses Count        `json:"addresses"`
}

// String is START-END, or the one address.
func (r *FreeRange) String() string {
	if r.Start == r.End {
		return r.Start.String()
	}
	return r.Start.String() + "-" + r.End.String()
}

// Use is how the addresses of a subnet or a network are used: the counts are of all of them, in pools or not. It is as
// full as the pools of its fullest subnet: the addresses of one family do not help who needs one of the other.
type Use struct {
	StateCounts
	Fullest Fullest `json:"fullest,omitzero"` // zero: nothing can be given
}

// Fullest is the subnet of which the greatest part is used.
type Fullest struct {
	Subnet  netip.Prefix `json:"subnet"`
	Percent int          `json:"percent"`
}

// FreeText is how many addresses are free, as people read it.
func (u *Use) FreeText() string {
	used := new(big.Int).SetUint64(u.Leased + u.Reserved + u.Quarantined)
	return u.Free.TextOf(u.Free.plus(u.Excluded).plus(Count{used}))
}

// SubnetUse is the use of a subnet, of its parts.
func SubnetUse(cidr netip.Prefix, parts []PoolUse) (u Use) {
	var pools StateCounts
	for i := range parts {
		u.Add(&parts[i].StateCounts)
		if parts[i].Pool != "" {
			pools.Add(&parts[i].StateCounts)
		}
	}
	if percent, ok := pools.Percent(); ok {
		u.Fullest = Fullest{cidr, percent}
	}
	return u
}

// And counts another subnet, too.
func (u *Use) And(other *Use) {
	u.Add(&other.StateCounts)
	if percent, ok := other.Percent(); ok && (!u.Fullest.Subnet.IsValid() || percent > u.Fullest.Percent) {
		u.Fullest = other.Fullest
	}
}

// Percent is how much of the fullest subnet's pools is used.
func (u *Use) Percent() (percent int, ok bool) { return u.Fullest.Percent, u.Fullest.Subnet.IsValid() }

// Cells is how many of the cells of a bar are filled at a percentage: all only at 100, and none only at 0.
func Cells(percent, cells int) int {
	filled := (2*percent*cells + whole) / (2 * whole)
	switch percent {
	case 0, whole:
		return filled
	}
	return min(max(filled, 1), cells-1)
}

// The percentages from which on somebody should look, and has to, as the alerts do.
const (
	HighUse = 80
	FullUse = 90
)
