package ipam

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// This file is about what an owner has: addresses that are reserved for it, and addresses that are taken for what is no
// container. Both are here in each of their forms: as records keep them, edits ask for them, lists show them and
// documents plan them. Terms come first, because they are in all of these.

// Terms are those on which an address is reserved, or an owner known: what is said of it besides whose it is and where.
// It is said alike by records, events, lists, documents and the journals of imports, and all of them have this struct.
// One more term is a field here, with its line in each function of this file, and in the columns and flags of
// internal/cli/owner.
type Terms struct {
	// another address is wanted in its place; it is kept until the owner runs with that one (BO-13)
	Replaced bool      `json:"replaced,omitempty"`
	Until    time.Time `json:"until,omitzero"`              // the owner's end; zero: none (BO-11)
	Note     string    `json:"note,omitempty" plan:",last"` // what it is for, in a person's words
}

// WantedTerms are what an edit says of them. What it does not say stays as it is.
type WantedTerms struct {
	// For is how long the owner lives; then what is reserved for it is nobody's (BO-11). Zero: without an end.
	For Duration `json:"for,omitempty"`
	// Until is the same as a moment, as documents say it; not both of them.
	Until time.Time `json:"until,omitzero"`
	Note  *string   `json:"note,omitempty"` // empty: none any more; nil: as it is
}

// Check refuses what makes no sense for any owner.
func (w *WantedTerms) Check(owner string) error {
	if w.For < 0 {
		return Refuse(ErrInvalid, "%s cannot live for %s; give a time that is not negative, or none", owner,
			time.Duration(w.For))
	}
	if w.For > 0 && !w.Until.IsZero() {
		return Refuse(ErrInvalid, "%s is to live for %s and until %s; say one of them", owner, time.Duration(w.For),
			w.Until.Format(time.RFC3339))
	}
	if w.Note != nil {
		return CheckNote(*w.Note)
	}
	return nil
}

// Over are the terms that come of others when these are wanted.
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

// Anew are the terms of an address that was replaced and is wanted again: what was said of its end counts no longer.
func (t Terms) Anew() Terms {
	t.Replaced, t.Until = false, time.Time{}
	return t
}

// Stored are the terms as the record of an address keeps them: times in microseconds.
func (t Terms) Stored() Terms {
	t.Until = t.Until.UTC().Truncate(time.Microsecond)
	return t
}

// The flags of terms in their compact form. Most have no note, and no byte for it.
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
func (d *Decoder) terms() Terms {
	flags := d.Byte()
	d.Failed = d.Failed || flags > replacedFlag|notedFlag
	t := Terms{Replaced: flags&replacedFlag != 0, Until: d.Time()}
	if flags&notedFlag != 0 {
		t.Note = d.String()
	}
	return t
}

// Reservation is what makes an address somebody's: it is given to nobody else, and stays when the address is released.
type Reservation struct {
	ID    uint64 // of the event that made it
	Owner string
	Kind  Kind // Static: asked for by address; Automatic: Berth chose it
	Slot  Slot
	Terms

	Ahead time.Duration // how far its id is ahead of what the clock said then
}

// Since is when it was made.
func (r *Reservation) Since() time.Time { return EventTime(r.ID).Add(-r.Ahead) }

// AddReservation reserves addresses for an owner: given ones (static), or such as Berth chooses (automatic). What the
// owner has reserved already stays, if the wish can mean it (BO-5). Force goes over exclusions, and reserves what
// somebody holds, for after its release.
type AddReservation struct {
	Network string `json:"network"`
	Owner   string `json:"owner"`
	Number  int    `json:"interface,omitempty"` // of the owner's interface
	Wishes  []Wish `json:"wishes,omitempty"`    // none: one address out of any pool
	Force   bool   `json:"force,omitempty"`

	// Automatic makes given addresses automatic ones, which those of a static band cannot be.
	Automatic bool `json:"automatic,omitempty"`
	// Replace keeps an address that is not wished for any more until its owner runs with the new one (BO-13).
	Replace bool `json:"replace,omitempty"`
	// Only lists, with Replace, the networks besides this one on which the owner is to have anything, by name or id:
	// what it has on others is kept until it runs with what it is to have (BO-13). Nil: what it has on others stays as
	// it is.
	Only []string `json:"only,omitempty"`
	// Moves gives, with Replace, another address in the place of an automatic one that may not be given automatically
	// any more: it is excluded, or outside of every pool (BO-9). Otherwise it stays its owner's.
	Moves bool `json:"moves,omitempty"`
	WantedTerms

	// Planned has a document's word count: its addresses are reserved be they excluded or not. Replaced says that
	// something has taken their place already. No client can say so.
	Planned, Replaced bool `json:"-"`
}

// BindReservations makes what is reserved for owners what is wanted, as a deploy does: what is there and fits is bound
// first (BO-9), then static addresses are reserved, then automatic ones (BO-10). What an owner has elsewhere, or has
// otherwise, is kept until it runs with the new one (BO-13).
type BindReservations struct {
	Wanted []AddReservation `json:"wanted"` // at most MaxEdits, one for each owner and network (BO-6)
}

// ReleaseOwner ends all that is reserved for an owner, on all networks and where there is none any more (BO-3, BO-12),
// and what it has in hand by TakeAddress. What an endpoint has in use stays in use.
type ReleaseOwner struct {
	Owner string `json:"owner"`
	Under bool   `json:"under,omitempty"` // and of all owners whose path begins with it: shop, shop/web
	// only what was replaced, where the owner has its new address in use (BO-13)
	Replaced bool `json:"replaced,omitempty"`
}

// RemoveReservation ends the reservation of one address of an owner, or with the zero Address of all. What is in use
// stays in use.
type RemoveReservation struct {
	Network string     `json:"network"`
	Owner   string     `json:"owner"`
	Address netip.Addr `json:"address,omitzero"`
}

// TakeAddress takes addresses for an interface of what is no container: a router, a VM, a printer (GA-24).
type TakeAddress struct {
	Network   string    `json:"network"`
	Subnet    string    `json:"subnet,omitempty"` // only out of this one
	Owner     string    `json:"owner"`
	Interface Interface `json:"interface"`
	Force     bool      `json:"force,omitempty"` // over exclusions (GA-9)
	Note      *string   `json:"note,omitempty"`  // of all of them; empty: none any more; nil: as it is
	Planned   bool      `json:"-"`               // as of AddReservation
}

// ReleaseAddress gives back one address that was taken for an owner by TakeAddress, or with the zero Address all.
type ReleaseAddress struct {
	Network string     `json:"network"`
	Owner   string     `json:"owner"`
	Address netip.Addr `json:"address,omitzero"`
}

// ReservationInfo is a reserved address as it is shown.
type ReservationInfo struct {
	Owner     string       `json:"owner"`
	Address   netip.Addr   `json:"address"`         // zero in a dynamic network, until one is recorded
	Leased    netip.Addr   `json:"leased,omitzero"` // there: what its DHCP server gave the owner
	Kind      Kind         `json:"kind"`            // static or automatic
	InUse     bool         `json:"in_use"`
	Endpoint  string       `json:"endpoint"`        // who has it in use
	Taken     bool         `json:"taken,omitempty"` // that is somebody else than the owner
	Host      string       `json:"host"`
	Space     string       `json:"space"`
	Network   string       `json:"network"` // its name; empty: there is none any more
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet"`
	Interface int          `json:"interface"`
	Slot      int          `json:"slot"`
	Since     time.Time    `json:"since"`
	Terms
	// the owner is known in a dynamic network, whatever its address is
	Dynamic bool `json:"-"`
}

// TakenAddress is an address that was taken for what is no container.
type TakenAddress struct {
	Owner     string       `json:"owner"`
	Address   netip.Addr   `json:"address"`
	Space     string       `json:"space"`
	Network   string       `json:"network"` // its name; empty: there is none any more
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet"`
	Interface int          `json:"interface"`
	Slot      int          `json:"slot"`
	Since     time.Time    `json:"since"`
	Note      string       `json:"note,omitempty"`
}

// PlannedReservation is one address that belongs to an owner; in a dynamic network it is an owner alone.
type PlannedReservation struct {
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address,omitzero"`
	Unplaced  bool       `json:"unplaced,omitempty" plan:"-"` // at the next free slot of the owner's interface 0
	Interface int        `json:"interface,omitempty" plan:",with=Slot"`
	Slot      int        `json:"slot,omitempty" plan:",with=Interface"`
	Automatic bool       `json:"automatic,omitempty"` // Berth chose it
	Terms                // one of which Until is over is not imported
	Force     bool       `json:"force,omitempty"` // somebody else holds it: for after its release
	Line      int        `json:"line,omitempty"`
}

// Taken is the address without what is said of reservations alone.
func (r *PlannedReservation) Taken() PlannedAddress {
	return PlannedAddress{Owner: r.Owner, Address: r.Address, Unplaced: r.Unplaced, Interface: r.Interface,
		Slot: r.Slot, Note: r.Note, Line: r.Line}
}

// Reserved is the address as if it were reserved for who has taken it.
func (a *PlannedAddress) Reserved() PlannedReservation {
	return PlannedReservation{Owner: a.Owner, Address: a.Address, Unplaced: a.Unplaced, Interface: a.Interface,
		Slot: a.Slot, Terms: Terms{Note: a.Note}, Line: a.Line}
}

// PlannedAddress is one address that is in use by what is no container.
type PlannedAddress struct {
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address"`
	Unplaced  bool       `json:"unplaced,omitempty" plan:"-"` // at the next free slot of the owner's interface 0
	Interface int        `json:"interface,omitempty" plan:",with=Slot"`
	Slot      int        `json:"slot,omitempty" plan:",with=Interface"`
	Note      string     `json:"note,omitempty"`
	Line      int        `json:"line,omitempty"`
}

// TakenAddress is how a lease of what is no container is shown, without where its address lies.
func (l *Lease) TakenAddress() TakenAddress {
	return TakenAddress{Owner: l.Name, Address: l.Address, Interface: int(l.Slot.Interface), Slot: int(l.Slot.Number),
		Since: l.Since, Note: l.Note}
}

// PlannedAddress is how a document plans what such a lease has.
func (l *Lease) PlannedAddress() PlannedAddress {
	return PlannedAddress{Owner: l.Name, Address: l.Address, Interface: int(l.Slot.Interface),
		Slot: int(l.Slot.Number), Note: l.Note}
}

// aheadKind marks the kind of a reservation that was made while ids were ahead of the clock.
const aheadKind = 1 << 7

// append adds the reservation to the record of its address; nil is a kind of 0.
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

// reservation reads one, nil where its kind is 0.
func (d *Decoder) reservation() *Reservation {
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
