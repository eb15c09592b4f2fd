package compare

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// reservations changes an owner's reservations. An address that moves gets its new value in place, and the old
// reservation ends after that. If the owner gives an address to another owner or gets another's, all of its
// reservations end first and are made again in the same part. So owners can swap addresses, and a holder still prevents
// it.
func (o *owner) reservations(wanted, there []ipam.PlannedReservation) {
	was := heldOf(there)
	h := o.wants(wanted, was)
	o.lines(h, was)
	switch {
	case o.opt.Adds:
		o.adds(h, was, func(at slot, r *ipam.PlannedReservation) {
			e := o.reservation(r)
			e.Number, e.Replace, e.Planned, e.Replaced = at.nic, false, true, r.Replaced
			if r.Address.IsValid() {
				e.Wishes = []ipam.Wish{{Slot: at.number, Address: r.Address}}
			}
			o.edit(owned, r.Line, e)
		})
	case len(h.at)+len(h.replaced) == 0 && h.alone == nil:
		o.ends(goes, 0, netip.Addr{})
	case h.alone != nil && (was.alone == nil || endsEarlier(h.alone, was.alone)):
		if len(there) > 0 {
			o.ends(goes, h.alone.Line, netip.Addr{})
		}
		o.edit(owned, h.alone.Line, o.reservation(h.alone))
	case h.alone != nil:
		if termsOf(h.alone) != termsOf(was.alone) {
			o.edit(owned, h.alone.Line, o.reservation(h.alone))
		}
	case len(was.replaced)+len(h.replaced) == 0 && o.first(h, was):
		o.ends(goes, lineOf(h), netip.Addr{})
		o.fill(h, &held{})
	default:
		o.inPlace(h, was)
	}
}

// ends ends the reservation of an address, or all of them with the zero address.
func (o *owner) ends(when phase, line int, addr netip.Addr) {
	o.edit(when, line, &ipam.RemoveReservation{Network: o.Network, Owner: o.Name, Address: addr})
}

// adds goes through the new addresses, one by one.
func (o *owner) adds(h, was *held, add func(slot, *ipam.PlannedReservation)) {
	for i := range h.replaced {
		if r := &h.replaced[i]; find(was.replaced, r.Address) == nil {
			add(slotOf(r), r)
		}
	}
	for at, r := range h.each() {
		if _, there := was.at[at]; !there {
			add(at, &r)
		}
	}
	if h.alone != nil && was.alone == nil {
		add(slot{}, h.alone)
	}
}

// gaps refuses an interface whose addresses are not numbered from ip0 on.
func (o *owner) gaps(h *held) {
	for at, r := range h.each() {
		if _, before := h.at[slot{at.nic, at.number - 1}]; at.number > 0 && at.number < ipam.MaxSlots && !before {
			o.Add(r.Line, "interface %d of %s would have ip%d (%s) and no ip%d: the addresses of an interface are "+
				"numbered without gaps", at.nic, o.Name, at.number, r.Address, at.number-1)
		}
	}
}

// first reports whether an owner's reservations must end before they are made again.
func (o *owner) first(h, was *held) bool {
	for at, r := range h.at {
		old, there := was.at[at]
		if there && endsEarlier(&r, &old) {
			return true
		}
		if now := o.now[r.Address]; now != "" && now != o.Name && len(was.at) > 0 {
			return true
		}
	}
	for _, old := range was.at {
		if next := o.next[old.Address]; next != "" && next != o.Name {
			return true
		}
	}
	return false
}

// endsEarlier reports whether an end time is removed, which no edit does.
func endsEarlier(r, old *ipam.PlannedReservation) bool {
	return r.Until.IsZero() && !old.Until.IsZero()
}

// inPlace moves what moves, and then ends what the owner should no longer have.
func (o *owner) inPlace(h, was *held) {
	o.stayReplaced(h, was)
	for _, old := range was.replaced {
		if !h.has(old.Address) {
			o.ends(goes, 0, old.Address)
		}
	}
	when := goes
	if o.fill(h, was) {
		when = owned
	}
	for _, at := range slices.Backward(was.slots()) {
		if old := was.at[at]; !h.has(old.Address) {
			o.ends(when, 0, old.Address)
		}
	}
}

// stayReplaced refuses changes of a replaced reservation, which no edit makes: it ends, or stays as it is.
func (o *owner) stayReplaced(h, was *held) {
	for _, r := range h.replaced {
		old := find(was.replaced, r.Address)
		_, had := was.at[slotOf(&r)]
		_, instead := h.at[slotOf(&r)]
		switch {
		case old == nil:
			o.Add(r.Line, "%s is not a replaced address of %s; only Berth marks addresses as replaced: leave out "+
				"replaced, or the line", r.Address, o.Name)
		case termsOf(&r) != termsOf(old):
			o.Add(r.Line, "%s was replaced for %s; its settings cannot change until %s runs with the new address: "+
				"write them unchanged, or leave out the line", r.Address, o.Name, o.Name)
		case had && !instead: // else it was replaced by an address on another network, or by none
			o.Add(r.Line, "%s was replaced, but the plan gives %s no other address in its place; leave out "+
				"replaced, or the line", r.Address, o.Name)
		}
	}
	for at, r := range h.each() {
		if old, there := was.at[at]; there && endsEarlier(&r, &old) {
			o.Add(r.Line, "%s ends at %s and has replaced addresses, so its end cannot be removed; give it a later "+
				"end", o.Name, old.Until)
		}
	}
}

// fill makes changed reservations, and reports whether there are any. An edit has all addresses of an interface from
// the first on, with the same terms. So it starts from the last one that changes, and goes on to earlier ones with
// other terms.
func (o *owner) fill(h, was *held) bool {
	slots := h.slots()
	var said, nothing [len(termNames)]string
	for i := len(slots) - 1; i >= 0; i-- {
		r := h.at[slots[i]]
		old, there := was.at[slots[i]]
		terms := termsOf(&r)
		if said == nothing && there && old.Address == r.Address && terms == termsOf(&old) || said == terms {
			continue
		}
		said = terms
		e := o.reservation(&r)
		e.Number = slots[i].nic
		for _, at := range slots[:i+1] {
			one := h.at[at]
			e.Wishes = append(e.Wishes, ipam.Wish{Slot: at.number, Address: one.Address})
			e.Force = e.Force || one.Force
			if endsEarlier(&one, &r) {
				o.Add(r.Line, "%s of %s would end at %s, but %s of the same owner would not end; give all "+
					"addresses of an owner the same end",
					r.Address, o.Name, r.Until, one.Address)
			}
		}
		o.edit(owned, r.Line, e)
	}
	return said != nothing
}

// lineOf returns the first line of what an owner should have.
func lineOf(h *held) (line int) {
	for _, r := range h.at {
		if r.Line > 0 && (line == 0 || r.Line < line) {
			line = r.Line
		}
	}
	return line
}

// reservation returns the edit with the terms of r.
func (o *owner) reservation(r *ipam.PlannedReservation) *ipam.AddReservation {
	return &ipam.AddReservation{Network: o.Network, Owner: o.Name, Automatic: r.Automatic, Replace: true,
		Force: r.Force, WantedTerms: ipam.WantedTerms{Note: &r.Note, Until: r.Until}}
}

// addresses makes what was taken for what is no container what it is to be. Where one moves all are given back first,
// in the same part.
func (o *owner) addresses(wanted, there []ipam.PlannedReservation) {
	was := heldOf(there)
	h := o.wants(wanted, was)
	o.lines(h, was)
	if o.opt.Adds {
		o.gaps(h)
		o.adds(h, was, func(at slot, r *ipam.PlannedReservation) { // before a reservation by force
			o.edit(comes, r.Line, &ipam.TakeAddress{Network: o.Network, Owner: o.Name, Force: true, Note: &r.Note,
				Planned: true, Interface: ipam.Interface{Number: at.nic,
					Wishes: []ipam.Wish{{Slot: at.number, Address: r.Address}}}})
		})
		return
	}
	if !grown(h, was) {
		o.edit(goes, lineOf(h), &ipam.ReleaseAddress{Network: o.Network, Owner: o.Name})
		was = &held{}
	}
	slots := h.slots()
	for i := len(slots) - 1; i >= 0; i-- {
		r := h.at[slots[i]]
		old, there := was.at[slots[i]]
		if there && old.Note == r.Note {
			continue
		}
		e := &ipam.TakeAddress{Network: o.Network, Owner: o.Name, Force: true, Note: &r.Note,
			Interface: ipam.Interface{Number: slots[i].nic}}
		for j, at := range slots[:i+1] {
			if at.nic != slots[i].nic {
				continue
			}
			one := h.at[at]
			e.Interface.Wishes = append(e.Interface.Wishes, ipam.Wish{Slot: at.number, Address: one.Address})
			if j < i && one.Note != r.Note {
				delete(was.at, at) // it is said again
			}
		}
		o.edit(owned, r.Line, e)
	}
}

// grown tells whether all that there is stays where it is.
func grown(h, was *held) bool {
	for at, old := range was.at {
		if r, stays := h.at[at]; !stays || r.Address != old.Address {
			return false
		}
	}
	return true
}
