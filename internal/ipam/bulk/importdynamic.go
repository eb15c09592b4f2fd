package bulk

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
)

// An owner in a network of which somebody else chooses the addresses is imported by name alone (BO-8).

// wantOwner takes an owner without an address into the draft of its network.
func (ck *importCheck) wantOwner(d *draftNetwork, w *wanted) {
	if err := ipam.CheckOwner(w.owner); err != nil {
		ck.refuse(w.line, err)
		return
	}
	w.owner = ipam.CanonicalOwner(w.owner)
	d.known = append(d.known, w)
	d.reserved.about(w.owner)
}

// checkKnown holds the owners without an address against one another, those that have one, and what is there.
func (ck *importCheck) checkKnown(d *draftNetwork) error {
	if len(d.known) == 0 {
		return nil
	}
	before := map[string]*wanted{}
	for _, w := range d.reserved.wanted {
		if !w.Replaced {
			before[w.owner] = w
		}
	}
	for _, w := range d.known {
		if other := before[w.owner]; other != nil {
			ck.Add(w.line, "%s is planned twice in network %s%s; it is known there once, with its address or "+
				"without one", w.owner, d.n.Name, lineBefore(other.line))
			w.skip = true
			continue
		}
		before[w.owner] = w
		if err := ck.presentOwner(d, w); err != nil {
			return err
		}
		if !w.skip {
			ck.checkLock(w)
		}
	}
	return nil
}

// presentOwner compares an owner with what is there. One that has an address is known by that.
func (ck *importCheck) presentOwner(d *draftNetwork, w *wanted) error {
	known := len(d.reserved.slots[w.owner]) > 0
	raw, err := ck.tx.Get(ledger.OwnerKey(d.n.ID, w.owner))
	if err != nil {
		return err
	}
	if raw != nil {
		var record ledger.DynamicOwner
		if err := ipam.DecodeJSON("an owner", raw, &record); err != nil {
			return err
		}
		known = known || !view.Over(record.Until, ck.began)
		if is, wanted := w.Against(record.Terms.Stored()); known && wanted != "" {
			ck.AddHelp(ipam.Advise(ipam.DoEndReservation).OrLeaveOut(), w.line,
				"%s is known in network %s already, %s, "+
					"and not %s", w.owner, d.n.Name, is, wanted)
			w.skip = true
			return nil
		}
	}
	if w.skip = known; known {
		ck.unchanged.Reservations++
	}
	return nil
}

// know makes an owner known.
func (s *stepper) know(w *wanted) error {
	if view.Over(w.Until, s.Now()) {
		return nil
	}
	_, err := s.p.RecordOwner(w.owner, false, w.Terms.Over)
	return err
}
