package compare

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"berth/internal/ipam"
)

// owned finds what is otherwise of what owners have in a network: what is reserved for them, and what was taken for
// what is no container. An owner has a slot for each address, and what is in a slot may move.
func (c *comparison) owned(n, is *network) {
	c.unexcluded(n, is)
	wanted, was := byOwner{}, byOwner{}
	for _, r := range n.Reservations {
		if !r.Until.IsZero() && !r.Until.After(c.opt.Now) {
			continue
		}
		if !r.Address.IsValid() && !isDynamic(n, is) {
			c.Add(r.Line, "the reservation of %s has no address, which only a network of the type dynamic leaves to "+
				"others", r.Owner)
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

// byOwner is what owners have, or are to have.
type byOwner map[string][]ipam.PlannedReservation

func (all byOwner) add(r ipam.PlannedReservation) {
	name := ipam.CanonicalOwner(r.Owner)
	all[name] = append(all[name], r)
}

// holders are whom addresses are reserved for.
func (all byOwner) holders() map[netip.Addr]string {
	of := map[netip.Addr]string{}
	for name, addresses := range all {
		for _, r := range addresses {
			if r.Address.IsValid() {
				of[r.Address] = name
			}
		}
	}
	return of
}

// each goes over the owners of which something may be otherwise, by name.
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

// unexcluded takes exclusions away, until the rest is there, in which something comes to be reserved: so nothing is
// reserved by force, which would go over who holds it, too.
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

// owner is one that is compared. Its Change has its kind, name and network.
type owner struct {
	*comparison
	Change
	subnets   []ipam.PlannedSubnet  // that there are
	now, next map[netip.Addr]string // whom addresses are reserved for, and are to be
}

// slot is a place of an owner.
type slot struct{ nic, number int }

func slotOf(r *ipam.PlannedReservation) slot { return slot{r.Interface, r.Slot} }

func (s slot) compare(t slot) int {
	return cmp.Or(cmp.Compare(s.nic, t.nic), cmp.Compare(s.number, t.number))
}

// held is what an owner has: by slot, and what was replaced.
type held struct {
	at       map[slot]ipam.PlannedReservation
	replaced []ipam.PlannedReservation
	alone    *ipam.PlannedReservation // in a dynamic network: no address at all
}

func (h *held) slots() []slot { return slices.SortedFunc(maps.Keys(h.at), slot.compare) }

// has tells whether an address is among what an owner has, replaced or not.
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

// wants is what an owner is to have: what the document says, each in its slot, and beside it what stays.
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

// put gives an address its slot; of those that were replaced a slot may have had several.
func (o *owner) put(h *held, at slot, r ipam.PlannedReservation) {
	if r.Replaced {
		h.replaced = append(h.replaced, r)
		return
	}
	if other, taken := h.at[at]; taken {
		o.Add(r.Line, "%s is to have %s and %s, both as %d:ip%d; say another slot of one", o.Name, other.Address,
			r.Address, at.nic, at.number)
	}
	h.at[at] = r
}

// sameAddress is the slot in which the owner has the address.
func (o *owner) sameAddress(h, was *held, r ipam.PlannedReservation) (slot, bool) {
	for _, at := range was.slots() {
		if _, taken := h.at[at]; !taken && was.at[at].Address == r.Address {
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

// sameSubnet is the first slot of which the address is in the same subnet, or else of the same family: it has moved.
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
		for _, at := range was.slots() {
			if _, taken := h.at[at]; !taken && like(was.at[at].Address) {
				return at, true
			}
		}
	}
	return slot{}, false
}

// nextFree is the next slot of the first interface in which nothing is, nor stays.
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

// keep adds what stays although the document does not name it, and what it does not say of what it names.
func (o *owner) keep(h, was *held) {
	if o.opt.Prune {
		return
	}
	for at, old := range was.at {
		r, there := h.at[at]
		if !there && !h.has(old.Address) {
			h.at[at] = old
		}
		if there {
			h.at[at] = inherit(r, old)
		}
	}
	for _, old := range was.replaced {
		if r := find(h.replaced, old.Address); r != nil {
			*r = inherit(*r, old)
		} else if !h.has(old.Address) {
			h.replaced = append(h.replaced, old)
		}
	}
	if h.alone != nil && was.alone != nil {
		merged := inherit(*h.alone, *was.alone)
		h.alone = &merged
	}
	if h.alone != nil && len(h.at) > 0 {
		h.alone = nil // it has an address, which the document leaves open
	}
}

// inherit is what a document says with what it does not say.
func inherit(r, old ipam.PlannedReservation) ipam.PlannedReservation {
	r.Note = cmp.Or(r.Note, old.Note)
	if r.Until.IsZero() {
		r.Until = old.Until
	}
	r.Automatic = r.Automatic || old.Automatic
	return r
}

// termNames are what is said of an address, in the order of termsOf.
var termNames = [...]string{"automatic", "until", "note"}

// termsOf is what is said of an address.
func termsOf(r *ipam.PlannedReservation) [len(termNames)]string {
	until := ""
	if !r.Until.IsZero() {
		until = r.Until.UTC().Format(time.RFC3339Nano)
	}
	return [...]string{strconv.FormatBool(r.Automatic), until, r.Note}
}

// lines notes what is otherwise of an owner, by slot.
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

// termLines notes what is otherwise of what is said of an address. What stays unsaid was filled in before.
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
