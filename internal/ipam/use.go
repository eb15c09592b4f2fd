package ipam

import (
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"time"
)

// PoolUse is the usage of one pool of a subnet, or of the subnet's addresses outside all pools.
type PoolUse struct {
	Space   string
	Network string // its name
	Subnet  netip.Prefix
	Pool    string // its name, otherwise its range; empty: in no pool
	StateCounts
}

// AddressState is how one address is used. If several states apply, the first in the order below counts.
type AddressState string

// The states of an address.
const (
	AddressLeased      AddressState = "leased"      // held
	AddressQuarantined AddressState = "quarantined" // released, and kept for its last holder
	AddressReserved    AddressState = "reserved"    // reserved for an owner that does not hold it
	AddressExcluded    AddressState = "excluded"    // never chosen, even if it is in a pool
	AddressFree        AddressState = "free"        // in a pool, available to anyone
	AddressOutside     AddressState = "outside"     // in no pool, given only on request
)

// StateLegend is how a state is shown to people, on the page and by the command line.
type StateLegend struct {
	State AddressState
	Word  string
	Sign  string // of one address on the page's map
	Mark  byte   // of one address on a pool's map (MarkTaken and so on); 0: no pool has it
}

// The marks of a pool's map. The map in JSON has only X and a dot.
const (
	MarkTaken    = 'X'
	MarkExcluded = '-'
	MarkFree     = '.'
)

// Legend returns how all states are shown, in their order. Page, command line and help take words, signs and order from
// here.
func Legend() []StateLegend {
	return []StateLegend{
		{AddressLeased, "held", "H", MarkTaken},
		{AddressQuarantined, "quarantined", "Q", MarkTaken},
		{AddressReserved, "idle", "I", MarkTaken}, // "reserved" also means those that are held
		{AddressExcluded, "excluded", "-", MarkExcluded},
		{AddressFree, "free", ".", MarkFree},
		{AddressOutside, "in no pool", "o", 0},
	}
}

// Legend returns how the state is shown.
func (s AddressState) Legend() StateLegend {
	for _, l := range Legend() {
		if l.State == s {
			return l
		}
	}
	return StateLegend{State: s, Word: string(s)}
}

// MarkWords returns the words of the states that share a mark on a pool's map: "held, quarantined or idle".
func MarkWords(mark byte) string {
	var words []string
	for _, l := range Legend() {
		if l.Mark == mark {
			words = append(words, l.Word)
		}
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// AddressStates returns all states in their order.
func AddressStates() (all []AddressState) {
	for _, l := range Legend() {
		all = append(all, l.State)
	}
	return all
}

// Claim is what keeps an address for somebody. The zero Claim keeps it for nobody.
type Claim struct {
	Held          bool      // somebody has it now
	Reserved      bool      // it has an owner
	ReservedUntil time.Time // when the reservation ends; zero: never
	Quarantine    time.Time // when its quarantine ends; zero: none
}

// State returns the state of an address, which is planned if nobody has a claim. This is the only place that decides
// whether an address is free. The choice of an address, `network free`, counts, maps, the page and metrics use it.
//
// Two rules are about who gets a free address, so they are elsewhere. An address that a container requests by its own
// configuration is chosen for nobody else (Wants). A quarantine limits choice only: the last holder gets its address
// back (allocator.LastHad), and so does anybody who asks for it by address (Target.takePreferred in the allocator).
func (c Claim) State(planned AddressState, now time.Time) AddressState {
	switch {
	case c.Held:
		return AddressLeased
	case Quarantined(c.Quarantine, now):
		return AddressQuarantined
	case c.Reserved && (c.ReservedUntil.IsZero() || c.ReservedUntil.After(now)):
		return AddressReserved
	}
	return planned
}

// LayoutFilter selects part of a subnet.
type LayoutFilter struct {
	Within netip.Prefix // zero: all of it
	From   netip.Addr   // rows from this address on; zero: all
	Limit  int          // at most this many rows; 0: all
}

// Layout is the usage of part of a subnet, address by address.
type Layout struct {
	Subnet SubnetInfo
	Within netip.Prefix
	Sum    StateCounts
	// Parts divides Within into blocks if it has more than MaxParts addresses. IPv4 has MaxParts equal blocks. IPv6
	// has only blocks that contain a record, as small as a limit of MaxParts allows. For fewer addresses there are
	// no parts, because the rows show each.
	Parts []LayoutPart
	Rows  []LayoutRow // in address order; they cover Within from the first row on
	Next  netip.Addr  // where the next rows start; zero: there are none
}

// MaxParts is the maximum number of parts in a Layout.
const MaxParts = 256

// StateCounts is the number of addresses in each state. Each address counts once, in the first state that applies.
type StateCounts struct {
	Leased      uint64 `json:"leased"`
	Quarantined uint64 `json:"quarantined"`
	Reserved    uint64 `json:"reserved"`
	Excluded    Count  `json:"excluded"`
	Free        Count  `json:"free"`
	Outside     Count  `json:"outside"`
}

// Of returns the number of addresses in a state.
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

// Add adds the counts of other addresses.
func (n *StateCounts) Add(other *StateCounts) {
	n.Leased, n.Quarantined = n.Leased+other.Leased, n.Quarantined+other.Quarantined
	n.Reserved, n.Excluded = n.Reserved+other.Reserved, n.Excluded.plus(other.Excluded)
	n.Free, n.Outside = n.Free.plus(other.Free), n.Outside.plus(other.Outside)
}

// Percent returns how much of the usable addresses is leased, reserved or in quarantine. Excluded addresses are not
// usable. It is rounded to the nearest whole number, but is 100 only if none is free and 0 only if all are. ok is false
// if there are no usable addresses.
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
	rounded := used.Mul(used, big.NewInt(2*whole)) // round to the nearest: (200 used + all) / (2 all)
	rounded.Add(rounded, all).Div(rounded, new(big.Int).Lsh(all, 1))
	return min(max(int(rounded.Int64()), 1), whole-1), true
}

const whole = 100

// LayoutPart is a block of addresses.
type LayoutPart struct {
	Prefix netip.Prefix
	StateCounts
}

// LayoutRow is one address that is held or kept for somebody, or a range of addresses with the same state and no other
// data.
type LayoutRow struct {
	Range Range
	State AddressState
	Pool  string // its name, for free addresses
	Note  string // of an exclusion

	Lease       *LeaseInfo       // the present or last holder
	Reservation *ReservationInfo // the owner
}

// ElasticUse is the usage of elastic addresses.
type ElasticUse struct {
	Host      string // this host
	Ranges    []RangeUse
	Unapplied int // associations due on this host that its edge has not confirmed
}

// RangeUse is the usage of one elastic range. Free addresses belong to no account.
type RangeUse struct {
	Range                Range
	Allocated, Releasing uint64
	Free                 Count
}

// FreeFilter selects free addresses of a network. The zero filter selects all.
type FreeFilter struct {
	Subnet netip.Prefix `query:"subnet" doc:"Only this subnet." example:"192.0.2.0/24"`
	Pool   string       `query:"pool" doc:"Only pools with this name." example:"web"`
	After  netip.Addr   // only addresses after this one
	Limit  int          // at most this many ranges
}

// FreeRange is a maximal range of addresses in one pool that could all be given now. It may be a single address.
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

// String returns START-END, or the single address.
func (r *FreeRange) String() string {
	if r.Start == r.End {
		return r.Start.String()
	}
	return r.Start.String() + "-" + r.End.String()
}

// Use is the usage of a subnet or a network. The counts cover all addresses, in pools or not. The percentage is that of
// the pools of the fullest subnet, because free addresses of one family do not help the other.
type Use struct {
	StateCounts
	Reservations uint64  `json:"reservations"`     // all, also those whose address is held; Reserved counts the others
	Fullest      Fullest `json:"fullest,omitzero"` // zero: there are no usable addresses
	Pools        int     `json:"-"`                // how many pools there are, for the page
}

// Fullest is the subnet with the highest percentage.
type Fullest struct {
	Subnet  netip.Prefix `json:"subnet"`
	Percent int          `json:"percent"`
}

// ReservedText counts the reservations for people, and those without a holder.
func (u *Use) ReservedText() string { return ReservedText(u.Reservations, u.Reserved) }

// ReservedText counts reservations for people: all, and those without a holder.
func ReservedText(all, idle uint64) string {
	if all == 0 {
		return "0 reserved"
	}
	return fmt.Sprintf("%d reserved (%d idle)", all, idle)
}

// ReservationCounts is the number of reservations with a holder, and without.
type ReservationCounts struct{ Held, Idle uint64 }

// FreeText returns the number of free addresses for people.
func (u *Use) FreeText() string {
	used := new(big.Int).SetUint64(u.Leased + u.Reserved + u.Quarantined)
	return u.Free.TextOf(u.Free.plus(u.Excluded).plus(Count{used}))
}

// SubnetUse sums the usage of a subnet's parts.
func SubnetUse(cidr netip.Prefix, parts []PoolUse) (u Use) {
	var pools StateCounts
	for i := range parts {
		u.Add(&parts[i].StateCounts)
		if parts[i].Pool != "" {
			u.Pools++
			pools.Add(&parts[i].StateCounts)
		}
	}
	if percent, ok := pools.Percent(); ok {
		u.Fullest = Fullest{cidr, percent}
	}
	return u
}

// And adds the usage of another subnet.
func (u *Use) And(other *Use) {
	u.Add(&other.StateCounts)
	u.Reservations += other.Reservations
	u.Pools += other.Pools
	if percent, ok := other.Percent(); ok && (!u.Fullest.Subnet.IsValid() || percent > u.Fullest.Percent) {
		u.Fullest = other.Fullest
	}
}

// Percent returns the usage of the fullest subnet's pools.
func (u *Use) Percent() (percent int, ok bool) { return u.Fullest.Percent, u.Fullest.Subnet.IsValid() }

// Cells returns how many cells of a bar are filled at a percentage. It is all only at 100, and none only at 0.
func Cells(percent, cells int) int {
	filled := (2*percent*cells + whole) / (2 * whole)
	switch percent {
	case 0, whole:
		return filled
	}
	return min(max(filled, 1), cells-1)
}

// The percentages of a warning and of an alarm, as in the alert rules.
const (
	HighUse = 80
	FullUse = 90
)
