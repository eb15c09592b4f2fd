package ipam

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// This file has what an owner has: reserved addresses, and external addresses held by non-containers. Both have one
// form each in records, edits, lists and documents. Terms come first, because all of these have them.

// Terms are the terms of a reservation, or of an owner known in a dynamic network: all except the owner and the
// address. Records, events, lists, documents and import journals share this struct.
//
// To add a term, add a field here and a line in each function of this file. Then add it to the columns and flags of
// internal/cli/owner.
type Terms struct {
	// another address replaces it; it is kept until the owner runs with that one
	Replaced bool      `json:"replaced,omitempty"`
	Until    time.Time `json:"until,omitzero"`              // the end of the owner's life; zero: none
	Note     string    `json:"note,omitempty" plan:",last"` // its purpose, in a person's words
}

// WantedTerms are the terms that an edit sets. Zero fields leave a term unchanged.
type WantedTerms struct {
	// For is how long the owner lives. Its reservations end then. Zero leaves the end as it is.
	For Duration `json:"for,omitempty"`
	// Until is the end as a time, as in documents. At most one of For and Until may be set.
	Until time.Time `json:"until,omitzero"`
	Note  *string   `json:"note,omitempty"` // empty: remove it; nil: keep it
}

// Check refuses terms that are invalid for any owner.
func (w *WantedTerms) Check(owner string) error {
	if w.For < 0 {
		return Refuse(ErrInvalid, "%s cannot live for %s; give a positive time, or none", owner, time.Duration(w.For))
	}
	if w.For > 0 && !w.Until.IsZero() {
		return Refuse(ErrInvalid, "%s has two lifetimes, for %s and until %s; give one of them", owner,
			time.Duration(w.For), w.Until.Format(time.RFC3339))
	}
	if w.Note != nil {
		return CheckNote(*w.Note)
	}
	return nil
}

// Over returns t with the wanted terms applied.
func (w *WantedTerms) Over(t Terms, now time.Time) Terms {
	if w.For > 0 {
		t.Until = now.Add(time.Duration(w.For))
	}
	if !w.Until.IsZero() {
		t.Until = w.Until.UTC().Truncate(time.Microsecond)
	}
	if w.Note != nil {
		t.Note = *w.Note
	}
	return t
}

// Anew returns the terms of a replaced address that is wanted again. Its old end no longer applies.
func (t Terms) Anew() Terms {
	t.Replaced, t.Until = false, time.Time{}
	return t
}

// Stored returns the terms as a record keeps them, with times in microseconds.
func (t Terms) Stored() Terms {
	t.Until = t.Until.UTC().Truncate(time.Microsecond)
	return t
}

// The flags of compact terms. A record without a note, as most are, has no byte for one.
const (
	replacedFlag = 1 << iota
	notedFlag
)

// Append adds the terms to a compact record.
func (t Terms) Append(b []byte) []byte {
	flags := byte(0)
	if t.Replaced {
		flags |= replacedFlag
	}
	if t.Note == "" {
		return appendTime(append(b, flags), t.Until)
	}
	return appendString(appendTime(append(b, flags|notedFlag), t.Until), t.Note)
}

// terms reads what Append wrote.
func (d *decoder) terms() Terms {
	flags := d.Byte()
	d.Failed = d.Failed || flags > replacedFlag|notedFlag
	t := Terms{Replaced: flags&replacedFlag != 0, Until: d.time()}
	if flags&notedFlag != 0 {
		t.Note = d.String()
	}
	return t
}

// Reservation gives an address to an owner. Nobody else gets the address, even after its release.
type Reservation struct {
	ID    uint64 // of the event that made it
	Owner string
	Kind  Kind // Static: asked for by address; Automatic: Berth chose it
	Slot  Slot
	Terms

	Ahead time.Duration // how far its id was ahead of the clock
}

// Since returns when the reservation was made.
func (r *Reservation) Since() time.Time { return EventTime(r.ID).Add(-r.Ahead) }

// AddReservation reserves addresses for an owner: given ones (static), or ones that Berth chooses (automatic). An
// existing reservation of the owner stays if it satisfies a wish. Force ignores exclusions. It also reserves an
// address with another holder, for the time after its release.
type AddReservation struct {
	Network string `json:"network"`
	Owner   string `json:"owner"`
	Number  int    `json:"interface,omitempty"` // the number of the owner's interface
	Wishes  []Wish `json:"wishes,omitempty"`    // none: one address from any pool
	Force   bool   `json:"force,omitempty"`

	// Automatic makes given addresses automatic. Addresses in a static band cannot be.
	Automatic bool `json:"automatic,omitempty"`
	// Replace keeps an address that is no longer wanted until its owner runs with the new one.
	Replace bool `json:"replace,omitempty"`
	// Only lists, with Replace, the further networks on which the owner is to have addresses, by name or id.
	// Reservations on all other networks are replaced: the owner keeps them until it runs with its new addresses.
	// Nil leaves other networks unchanged.
	Only []string `json:"only,omitempty"`
	// Moves replaces, with Replace, an automatic address that Berth may no longer choose: it is excluded, or
	// outside every pool. Without Moves the owner keeps it.
	Moves bool `json:"moves,omitempty"`
	WantedTerms

	// Planned reserves a document's addresses even if they are excluded. Replaced marks them as already replaced.
	// Clients cannot set either.
	Planned, Replaced bool `json:"-"`
}

// BindReservations changes the reservations of owners to the wanted ones, as a deploy does. First it binds reservations
// that already fit. Then it reserves static addresses, then automatic ones. An owner keeps its other
// reservations until it runs with the new ones.
type BindReservations struct {
	Wanted []AddReservation `json:"wanted"` // at most MaxEdits; one for each owner and network
}

// ReleaseOwner ends all reservations of an owner, on all networks and on those that no longer exist. It
// also releases the owner's external addresses. Addresses that endpoints hold stay in use.
type ReleaseOwner struct {
	Owner string `json:"owner"`
	Under bool   `json:"under,omitempty"` // also owners below this path: shop includes shop/web
	// only replaced reservations whose owner runs with its new address
	Replaced bool `json:"replaced,omitempty"`
}

// RemoveReservation ends an owner's reservation of one address, or of all with the zero Address. Addresses in use stay
// in use.
type RemoveReservation struct {
	Network string     `json:"network"`
	Owner   string     `json:"owner"`
	Address netip.Addr `json:"address,omitzero"`
}

// TakeAddress takes addresses for an interface of a non-container, such as a router, a VM or a printer.
type TakeAddress struct {
	Network   string    `json:"network"`
	Subnet    string    `json:"subnet,omitempty"` // only from this subnet
	Owner     string    `json:"owner"`
	Interface Interface `json:"interface"`
	Force     bool      `json:"force,omitempty"` // ignore exclusions
	Note      *string   `json:"note,omitempty"`  // for all of its addresses; empty: remove it; nil: keep it
	Planned   bool      `json:"-"`               // as in AddReservation
}

// ReleaseAddress releases one external address of an owner, or all with the zero Address.
type ReleaseAddress struct {
	Network string     `json:"network"`
	Owner   string     `json:"owner"`
	Address netip.Addr `json:"address,omitzero"`
}

// ReservationInfo is a reserved address as shown to users.
type ReservationInfo struct {
	Owner     string       `json:"owner"`
	Address   netip.Addr   `json:"address"`         // zero in a dynamic network until one is recorded
	Leased    netip.Addr   `json:"leased,omitzero"` // in a dynamic network: the owner's address from its DHCP server
	Kind      Kind         `json:"kind"`            // static or automatic
	InUse     bool         `json:"in_use"`
	Endpoint  string       `json:"endpoint"`        // who holds it
	Taken     bool         `json:"taken,omitempty"` // the holder is not the owner
	Host      string       `json:"host"`
	Space     string       `json:"space"`
	Network   string       `json:"network"` // its name; empty: the network no longer exists
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet"`
	Interface int          `json:"interface"`
	Slot      int          `json:"slot"`
	// the owner's MAC, if the network has a prefix for them: `berth compose`, `deploy` and `pin` give it
	MAC   string    `json:"mac,omitempty"`
	Since time.Time `json:"since"`
	Terms
	// the owner is known in a dynamic network, whatever its address
	Dynamic bool `json:"-"`
}

// TakenAddress is an external address: one that a non-container holds.
type TakenAddress struct {
	Owner     string       `json:"owner"`
	Address   netip.Addr   `json:"address"`
	Space     string       `json:"space"`
	Network   string       `json:"network"` // its name; empty: the network no longer exists
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet"`
	Interface int          `json:"interface"`
	Slot      int          `json:"slot"`
	Since     time.Time    `json:"since"`
	Note      string       `json:"note,omitempty"`
}

// PlannedReservation is one reserved address in a document. In a dynamic network it is only an owner.
type PlannedReservation struct {
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address,omitzero"`
	Unplaced  bool       `json:"unplaced,omitempty" plan:"-"` // use the next free slot of the owner's interface 0
	Interface int        `json:"interface,omitempty" plan:",with=Slot"`
	Slot      int        `json:"slot,omitempty" plan:",with=Interface"`
	Automatic bool       `json:"automatic,omitempty"` // Berth chose it
	Terms                // not imported if Until has passed
	Force     bool       `json:"force,omitempty"` // another holder has it: reserve it for the time after its release
	Line      int        `json:"line,omitempty"`
	Cleared   Cleared    `json:"cleared,omitempty" plan:"-"`
}

// Taken returns the address without the fields that only reservations have.
func (r *PlannedReservation) Taken() PlannedAddress {
	return PlannedAddress{Owner: r.Owner, Address: r.Address, Unplaced: r.Unplaced, Interface: r.Interface,
		Slot: r.Slot, Note: r.Note, Line: r.Line, Cleared: r.Cleared}
}

// Reserved returns the address as a reservation for its holder.
func (a *PlannedAddress) Reserved() PlannedReservation {
	return PlannedReservation{Owner: a.Owner, Address: a.Address, Unplaced: a.Unplaced, Interface: a.Interface,
		Slot: a.Slot, Terms: Terms{Note: a.Note}, Line: a.Line, Cleared: a.Cleared}
}

// PlannedAddress is one address in a document that a non-container holds.
type PlannedAddress struct {
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address"`
	Unplaced  bool       `json:"unplaced,omitempty" plan:"-"` // use the next free slot of the owner's interface 0
	Interface int        `json:"interface,omitempty" plan:",with=Slot"`
	Slot      int        `json:"slot,omitempty" plan:",with=Interface"`
	Note      string     `json:"note,omitempty"`
	Line      int        `json:"line,omitempty"`
	Cleared   Cleared    `json:"cleared,omitempty" plan:"-"`
}

// TakenAddress returns an external lease as shown to users, without its space, network and subnet.
func (l *Lease) TakenAddress() TakenAddress {
	return TakenAddress{Owner: l.Name, Address: l.Address, Interface: int(l.Slot.Interface), Slot: int(l.Slot.Number),
		Since: l.Since, Note: l.Note}
}

// PlannedAddress returns an external lease in the form of a document.
func (l *Lease) PlannedAddress() PlannedAddress {
	return PlannedAddress{Owner: l.Name, Address: l.Address, Interface: int(l.Slot.Interface),
		Slot: int(l.Slot.Number), Note: l.Note}
}

// aheadKind is set in the kind of a reservation that was made while ids were ahead of the clock.
const aheadKind = 1 << 7

// append adds the reservation to the record of its address. A nil reservation becomes the kind 0.
func (r *Reservation) append(b []byte) []byte {
	if r == nil {
		return append(b, 0)
	}
	kind := byte(r.Kind)
	if r.Ahead > 0 {
		kind |= aheadKind
	}
	b = append(b, kind, r.Slot.Interface, r.Slot.Number)
	if r.Ahead > 0 {
		b = binary.AppendUvarint(b, uint64(r.Ahead/time.Microsecond))
	}
	return r.Terms.Append(appendString(binary.AppendUvarint(b, r.ID), r.Owner))
}

// reservation reads what append wrote, nil for the kind 0.
func (d *decoder) reservation() *Reservation {
	kind := d.Byte()
	if kind == 0 {
		return nil
	}
	r := &Reservation{Kind: Kind(kind &^ aheadKind), Slot: d.slot()}
	if kind&aheadKind != 0 {
		r.Ahead = time.Duration(d.uvarint()) * time.Microsecond
	}
	r.ID, r.Owner, r.Terms = d.uvarint(), d.String(), d.terms()
	return r
}
