package compare

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"berth/internal/ipam"
)

// owned finds the differences of reservations and external addresses in a network. An owner has a slot for each
// address, and the address in a slot may move.
func (c *comparison) owned(n, is *network) {
	c.unexcluded(n, is)
	wanted, was := byOwner{}, byOwner{}
	for _, r := range n.Reservations {
		if !r.Until.IsZero() && !r.Until.After(c.opt.Now) {
			continue
		}
		if !r.Address.IsValid() && !isDynamic(n, is) {
			c.Add(r.Line, "the reservation of %s has no address; only networks of the type dynamic allow "+
				"that", r.Owner)
			continue
		}
		r.Terms = r.Stored()
		wanted.add(r)
	}
	for _, r := range is.Reservations {
		was.add(r)
	}
	now, next := was.holders(), wanted.holders()
	c.each(wanted, was, func(name string) {
		of := Change{Kind: "reservation", Name: name, Network: n.Name}
		o := &owner{comparison: c, Change: of, subnets: is.Subnets, now: now, next: next}
		o.reservations(wanted[name], was[name])
	})
	wanted, was = byOwner{}, byOwner{}
	for i := range n.Addresses {
		wanted.add(n.Addresses[i].Reserved())
	}
	for i := range is.Addresses {
		was.add(is.Addresses[i].Reserved())
	}
	c.each(wanted, was, func(name string) {
		of := Change{Kind: "address", Name: name, Network: n.Name}
		o := &owner{comparison: c, Change: of, subnets: is.Subnets}
		o.addresses(wanted[name], was[name])
	})
}

// byOwner has what owners have or should have.
type byOwner map[string][]ipam.PlannedReservation

func (all byOwner) add(r ipam.PlannedReservation) {
	name := ipam.CanonicalOwner(r.Owner)
	all[name] = append(all[name], r)
}

// holders returns for whom addresses are reserved. If a document reserves one twice, it returns the last owner by name.
func (all byOwner) holders() map[netip.Addr]string {
	of := map[netip.Addr]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, r := range all[name] {
			if r.Address.IsValid() {
				of[r.Address] = name
			}
		}
	}
	return of
}

// each calls look for the owners that may differ, by name.
func (c *comparison) each(wanted, was byOwner, look func(name string)) {
	names := slices.Collect(maps.Keys(wanted))
	for name := range was {
		if c.opt.Prune && wanted[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		look(name)
	}
}

func isDynamic(n, is *network) bool { return cmp.Or(is.Type, n.Type) == ipam.Dynamic.String() }

// unexcluded removes exclusions until their addresses are reserved, and adds the rest again. A forced reservation would
// also ignore a holder.
func (c *comparison) unexcluded(n, is *network) {
	if c.opt.Adds {
		return
	}
	had := map[netip.Addr]string{}
	for _, r := range is.Reservations {
		had[r.Address] = r.Owner
	}
	for _, x := range is.Exclusions {
		r := x.Range
		in := slices.ContainsFunc(n.Reservations, func(one ipam.PlannedReservation) bool {
			return one.Address.IsValid() && r.Contains(one.Address) &&
				had[one.Address] != ipam.CanonicalOwner(one.Owner)
		})
		ends := slices.ContainsFunc(c.draft[goes], func(e Edit) bool {
			gone, is := e.Edit.(*ipam.RemoveExclusion)
			return is && gone.Range == r
		})
		if in && !ends {
			c.edit(goes, 0, &ipam.RemoveExclusion{Network: n.Name, Range: r})
			c.edit(excluded, 0, &ipam.AddExclusion{Network: n.Name, Range: r, Note: x.Note})
		}
	}
}

// owner is an owner being compared. Its Change has its kind, name and network.
type owner struct {
	*comparison
	Change
	subnets   []ipam.PlannedSubnet  // the present ones
	now, next map[netip.Addr]string // for whom addresses are reserved, before and after
}

// slot is an owner's interface and the number of an address there.
type slot struct{ nic, number int }

func slotOf(r *ipam.PlannedReservation) slot { return slot{r.Interface, r.Slot} }

func (s slot) compare(t slot) int {
	return cmp.Or(cmp.Compare(s.nic, t.nic), cmp.Compare(s.number, t.number))
}

// held is what an owner has: by slot, and replaced reservations.
type held struct {
	at       map[slot]ipam.PlannedReservation
	replaced []ipam.PlannedReservation
	alone    *ipam.PlannedReservation // in a dynamic network: no address at all
}

func (h *held) slots() []slot { return slices.SortedFunc(maps.Keys(h.at), slot.compare) }

// each yields the contents of the slots, in their order.
func (h *held) each() iter.Seq2[slot, ipam.PlannedReservation] {
	return func(yield func(slot, ipam.PlannedReservation) bool) {
		for _, at := range h.slots() {
			if !yield(at, h.at[at]) {
				return
			}
		}
	}
}

// has reports whether an owner has an address, replaced or not.
func (h *held) has(a netip.Addr) bool {
	for _, r := range h.at {
		if r.Address == a {
			return true
		}
	}
	return find(h.replaced, a) != nil
}

func heldOf(all []ipam.PlannedReservation) *held {
	h := &held{at: map[slot]ipam.PlannedReservation{}}
	for i, r := range all {
		switch {
		case !r.Address.IsValid():
			h.alone = &all[i]
		case r.Replaced:
			h.replaced = append(h.replaced, r)
		default:
			h.at[slotOf(&r)] = r
		}
	}
	return h
}

// wants returns what an owner should have: what the document says, each in its slot, and what stays.
func (o *owner) wants(all []ipam.PlannedReservation, was *held) *held {
	h := &held{at: map[slot]ipam.PlannedReservation{}}
	var unplaced []ipam.PlannedReservation
	for i, r := range all {
		r.Replaced = r.Replaced || o.opt.Adds && find(was.replaced, r.Address) != nil
		switch {
		case !r.Address.IsValid() && h.alone != nil:
			o.Add(r.Line, "%s is planned twice in network %s", o.Name, o.Network)
		case !r.Address.IsValid():
			h.alone = &all[i]
		case r.Unplaced:
			unplaced = append(unplaced, r)
		default:
			o.put(h, slotOf(&r), r)
		}
	}
	for _, find := range []func(ipam.PlannedReservation) (slot, bool){
		func(r ipam.PlannedReservation) (slot, bool) { return o.sameAddress(h, was, r) },
		func(r ipam.PlannedReservation) (slot, bool) { return o.sameSubnet(h, was, r) },
		func(r ipam.PlannedReservation) (slot, bool) { return o.nextFree(h, was, r), true },
	} {
		unplaced = slices.DeleteFunc(unplaced, func(r ipam.PlannedReservation) bool {
			at, found := find(r)
			if found {
				r.Interface, r.Slot, r.Unplaced = at.nic, at.number, false
				o.put(h, at, r)
			}
			return found
		})
	}
	o.keep(h, was)
	return h
}

// put adds an address to a slot. A slot may have several replaced ones.
func (o *owner) put(h *held, at slot, r ipam.PlannedReservation) {
	if r.Replaced {
		h.replaced = append(h.replaced, r)
		return
	}
	if other, taken := h.at[at]; taken {
		o.Add(r.Line, "%s would have %s and %s, both as %d:ip%d; give one of them another slot", o.Name, other.Address,
			r.Address, at.nic, at.number)
	}
	h.at[at] = r
}

// sameAddress returns the slot in which the owner has the address.
func (o *owner) sameAddress(h, was *held, r ipam.PlannedReservation) (slot, bool) {
	for at, old := range was.each() {
		if _, taken := h.at[at]; !taken && old.Address == r.Address {
			return at, true
		}
	}
	for i := range was.replaced {
		if r.Replaced && was.replaced[i].Address == r.Address {
			return slotOf(&was.replaced[i]), true
		}
	}
	return slot{}, false
}

// sameSubnet returns the first slot whose address is in the same subnet, or else of the same family: that address has
// moved.
func (o *owner) sameSubnet(h, was *held, r ipam.PlannedReservation) (slot, bool) {
	if o.opt.Adds {
		return slot{}, false
	}
	place := func(a netip.Addr) netip.Prefix {
		for i := range o.subnets {
			if o.subnets[i].CIDR.Contains(a) {
				return o.subnets[i].CIDR
			}
		}
		return netip.Prefix{}
	}
	for _, like := range []func(a netip.Addr) bool{
		func(a netip.Addr) bool { return place(a).IsValid() && place(a) == place(r.Address) },
		func(a netip.Addr) bool { return a.Is4() == r.Address.Is4() },
	} {
		for at, old := range was.each() {
			if _, taken := h.at[at]; !taken && like(old.Address) {
				return at, true
			}
		}
	}
	return slot{}, false
}

// nextFree returns the next slot of the first interface that is and stays empty.
func (o *owner) nextFree(h, was *held, r ipam.PlannedReservation) slot {
	for number := 0; ; number++ {
		at := slot{0, number}
		_, taken := h.at[at]
		_, stays := was.at[at]
		if !taken && (o.opt.Prune || !stays) || r.Replaced || number == ipam.MaxSlots {
			return at
		}
	}
}

// keep adds what stays without being named, and fills fields that the document leaves out.
func (o *owner) keep(h, was *held) {
	if o.opt.Prune {
		return
	}
	for at, old := range was.each() {
		r, there := h.at[at]
		if !there && !h.has(old.Address) {
			h.at[at] = old
		}
		if there {
			h.at[at] = o.inherit(r, old)
		}
	}
	for _, old := range was.replaced {
		if r := find(h.replaced, old.Address); r != nil {
			*r = o.inherit(*r, old)
		} else if !h.has(old.Address) {
			h.replaced = append(h.replaced, old)
		}
	}
	if h.alone != nil && was.alone != nil {
		merged := o.inherit(*h.alone, *was.alone)
		h.alone = &merged
	}
	if h.alone != nil && len(h.at) > 0 {
		h.alone = nil // it has an address, which the document leaves open
	}
}

// inherit fills fields that the document leaves out with the old ones.
func (o *owner) inherit(r, old ipam.PlannedReservation) ipam.PlannedReservation {
	stays(o.comparison, "note", &r.Note, old.Note, r.Cleared)
	stays(o.comparison, "until", &r.Until, old.Until, r.Cleared)
	stays(o.comparison, "automatic", &r.Automatic, old.Automatic, r.Cleared)
	return r
}

// termNames names the terms of an address, in the order of termsOf.
var termNames = [...]string{"automatic", "until", "note"}

// termsOf returns the terms of an address as texts.
func termsOf(r *ipam.PlannedReservation) [len(termNames)]string {
	until := ""
	if !r.Until.IsZero() {
		until = r.Until.UTC().Format(time.RFC3339Nano)
	}
	return [...]string{strconv.FormatBool(r.Automatic), until, r.Note}
}

// lines notes the differences of an owner, by slot.
func (o *owner) lines(h, was *held) {
	slots := slices.Concat(h.slots(), was.slots())
	slices.SortFunc(slots, slot.compare)
	for _, at := range slices.Compact(slots) {
		r, wanted := h.at[at]
		old, there := was.at[at]
		of := o.Change
		of.Line = r.Line
		switch {
		case !wanted:
			o.found("-", of, old.Address.String(), "")
		case !there:
			o.found("+", of, "", r.Address.String())
		default:
			if old.Address != r.Address {
				o.found("~", of, old.Address.String(), r.Address.String())
			}
			o.termLines(&r, &old)
		}
	}
	o.replacedLines(h, was)
	of := o.Change
	switch {
	case h.alone != nil && was.alone != nil:
		o.termLines(h.alone, was.alone)
	case h.alone != nil:
		of.Line = h.alone.Line
		o.found("+", of, "", "")
	case was.alone != nil && len(h.at) == 0:
		o.found("-", of, "", "")
	}
}

// termLines notes the differences of an address's terms. Terms that the document leaves out were filled in before.
func (o *owner) termLines(r, old *ipam.PlannedReservation) {
	of := o.Change
	of.Line = r.Line
	was, is := termsOf(old), termsOf(r)
	for i, name := range termNames {
		if of.Field = name; was[i] != is[i] {
			o.found("~", of, was[i], is[i])
		}
	}
}

func find(in []ipam.PlannedReservation, a netip.Addr) *ipam.PlannedReservation {
	if i := slices.IndexFunc(in, func(r ipam.PlannedReservation) bool { return r.Address == a }); i >= 0 {
		return &in[i]
	}
	return nil
}

func (o *owner) replacedLines(h, was *held) {
	for i := range h.replaced {
		r, of := &h.replaced[i], o.Change
		if old := find(was.replaced, r.Address); old != nil {
			o.termLines(r, old)
			continue
		}
		of.Line = r.Line
		o.found("+", of, "", r.Address.String()+" (replaced)")
	}
	for _, old := range was.replaced {
		if find(h.replaced, old.Address) == nil {
			o.found("-", o.Change, old.Address.String()+" (replaced)", "")
		}
	}
}
