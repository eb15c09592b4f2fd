package ipam

import "fmt"

// An owner in a network of which somebody else chooses the addresses is imported by name alone (BO-8).

// wantOwner takes an owner without an address into the draft of its network.
func (ck *importCheck) wantOwner(d *draftNetwork, w *wanted) {
	if err := CheckOwner(w.owner); err != nil {
		ck.refuse(w.line, err)
		return
	}
	w.owner = canonicalOwner(w.owner)
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
		if !w.replaced {
			before[w.owner] = w
		}
	}
	for _, w := range d.known {
		if other := before[w.owner]; other != nil {
			ck.Add(w.line, "%s is planned twice in network %s%s; it is known there once, with its address or without one", w.owner, d.n.Name, lineBefore(other.line))
			w.skip = true
			continue
		}
		before[w.owner] = w
		if err := ck.presentOwner(d, w); err != nil {
			return err
		}
	}
	return nil
}

// presentOwner compares an owner with what is there. One that has an address is known by that.
func (ck *importCheck) presentOwner(d *draftNetwork, w *wanted) error {
	known := len(d.reserved.slots[w.owner]) > 0
	raw, err := ck.tx.Get(ownerKey(d.n.ID, w.owner))
	if err != nil {
		return err
	}
	if raw != nil {
		var record dynamicOwner
		if err := decodeJSON("an owner", raw, &record); err != nil {
			return err
		}
		known = known || !over(record.Until, ck.began)
		if until := stored(record.Until); known && !w.until.IsZero() && !w.until.Equal(until) {
			ck.Add(w.line, "%s is known in network %s already, %s, and not %s; end that with `berth reservation rm`, or leave it out", w.owner, d.n.Name, endText(until), endText(w.until))
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
func (s *stepper) know(st *step) error {
	if over(st.until, s.now) {
		return nil
	}
	e := &AddReservation{Owner: st.owner}
	if !st.until.IsZero() {
		e.For = Duration(st.until.Sub(s.now))
	}
	_, err := s.p.recordOwner(e)
	return err
}

// forget takes that back.
func (s *stepper) forget(st *step) (Counts, error) {
	known, err := s.p.forgetOwner(st.owner, "an import is taken back")
	if err != nil || !known {
		return Counts{}, err
	}
	return Counts{Reservations: 1}, nil
}

// noneKnown refuses a dynamic network in which an owner was made known after a moment.
func (s *stepper) noneKnown(since uint64) error {
	if s.p.n.Type != Dynamic {
		return nil
	}
	known, err := s.p.dynamicOwners()
	if err != nil {
		return err
	}
	for _, one := range known {
		if one.ID > since {
			return &refusal{ErrInUse, fmt.Sprintf("network %s is in use: %s has a reservation in it; end that with `berth reservation rm`", s.p.n.Name, one.owner)}
		}
	}
	return nil
}
