package bulk

import (
	"net/netip"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
)

// wanted is an address of the plan that is to be reserved for, or taken by, an owner.
type wanted struct {
	owner    string
	addr     netip.Addr // none: of an owner in a dynamic network
	slot     ipam.Slot
	unplaced bool // its slot is the next free one
	terms         // of a reservation
	line     int
	sub      *draftSubnet
	skip     bool // it is there already, or refused
}

// terms are those on which an address is reserved.
type terms struct {
	automatic bool
	force     bool
	ipam.Terms
}

// draftOwners are the reservations of a network, or its taken addresses.
type draftOwners struct {
	wanted []*wanted
	byAddr map[netip.Addr]*wanted
	slots  map[string][]slotUse // by owner: those of the plan and those that are there
}

// slotUse is an address in an owner's slot.
type slotUse struct {
	ipam.Slot
	addr netip.Addr
	line int // 0: it is there, or the line is not known
}

// owners takes the reservations and addresses of a network of the plan into the drafts of those that hold them.
func (ck *importCheck) owners(p *ipam.PlannedNetwork, d *draftNetwork) error {
	for i := range p.Reservations {
		r := &p.Reservations[i]
		if view.Over(r.Until, ck.began) {
			continue // an old export is no mistake
		}
		ck.refuse(r.Line, ipam.CheckNote(r.Note))
		w := &wanted{owner: r.Owner, addr: r.Address, unplaced: r.Unplaced, line: r.Line,
			terms: terms{r.Automatic, r.Force, r.Terms.Stored()}}
		if !w.addr.IsValid() && d != nil && d.n.Type == ipam.Dynamic {
			ck.wantOwner(d, w)
			continue
		}
		if err := ck.want(p, d, w, r.Interface, r.Slot); err != nil {
			return err
		}
		if w.sub != nil {
			ck.addOwned(&w.sub.in.reserved, "reserved", w)
		}
	}
	for i := range p.Addresses {
		a := &p.Addresses[i]
		ck.refuse(a.Line, ipam.CheckNote(a.Note))
		w := &wanted{owner: a.Owner, addr: a.Address, unplaced: a.Unplaced, line: a.Line,
			terms: terms{Terms: a.Reserved().Terms}}
		if err := ck.want(p, d, w, a.Interface, a.Slot); err != nil {
			return err
		}
		if w.sub != nil {
			ck.addOwned(&w.sub.in.taken, "taken", w)
		}
	}
	return nil
}

// want looks at what can be said of one without the others, and finds its subnet; where that is nil, it is refused.
func (ck *importCheck) want(p *ipam.PlannedNetwork, d *draftNetwork, w *wanted, nic, slot int) error {
	switch {
	case !w.addr.IsValid():
		ck.refuse(w.line, ipam.RefuseAs(ipam.IPMissing, ipam.ErrInvalid,
			"the address of %s is missing; only a network of the type dynamic has owners without one", w.owner))
		return nil
	case w.addr.Is4In6():
		ck.Add(w.line, "%s is an IPv4 address mapped into IPv6; write %s", w.addr, w.addr.Unmap())
		return nil
	case nic < 0 || nic >= ipam.MaxSlots || slot < 0 || slot >= ipam.MaxSlots:
		ck.Add(w.line, "%s is to be at interface %d, slot %d; there are 0 to %d of both", w.addr, nic, slot,
			ipam.MaxSlots-1)
		return nil
	}
	if err := ipam.CheckOwner(w.owner); err != nil {
		ck.refuse(w.line, err)
		return nil
	}
	w.owner, w.slot = ipam.CanonicalOwner(w.owner), ipam.Slot{Interface: uint8(nic), Number: uint8(slot)}
	sub, err := ck.holding(p, d, w.addr, w.line)
	if err != nil {
		return err
	}
	if sub == nil {
		return nil
	}
	switch why := allocator.NotHost(sub.sub.CIDR, w.addr); {
	case why != "":
		ck.Add(w.line, "%s is %s", w.addr, why)
	case w.addr == sub.sub.Gateway:
		ck.Add(w.line, "%s is the gateway of the subnet %s, and can be nobody else's", w.addr, sub.sub.CIDR)
	default:
		w.sub = sub
	}
	if d != nil {
		ck.refuse(w.line, ck.names.Clash(ck.Known(), d.n, w.owner))
	}
	return nil
}

// about has the slots that an owner has already looked up.
func (o *draftOwners) about(owner string) {
	if o.byAddr == nil {
		o.byAddr, o.slots = map[netip.Addr]*wanted{}, map[string][]slotUse{}
	}
	if _, known := o.slots[owner]; !known {
		o.slots[owner] = nil
	}
}

func (ck *importCheck) addOwned(o *draftOwners, how string, w *wanted) {
	o.about(w.owner)
	if before := o.byAddr[w.addr]; before != nil {
		ck.Add(w.line, "%s is to be %s for %s and for %s%s", w.addr, how, before.owner, w.owner,
			lineBefore(before.line))
		return
	}
	o.byAddr[w.addr] = w
	o.wanted = append(o.wanted, w)
}

// checkOwners holds the reservations and addresses of a network against one another and against what is there.
func (ck *importCheck) checkOwners(d *draftNetwork) error {
	if d.old {
		if err := ck.presentSlots(d); err != nil {
			return err
		}
	}
	for _, w := range d.reserved.wanted {
		if other := d.taken.byAddr[w.addr]; other != nil && other.owner != w.owner && !w.force {
			ck.Add(w.line, "%s is to be reserved for %s and taken by %s%s; it is one owner's, or reserved for after "+
				"its release (force)",
				w.addr, w.owner, other.owner, lineBefore(other.line))
		}
		if err := ck.checkReserved(w); err != nil {
			return err
		}
		if !w.skip {
			ck.checkLock(w)
			ck.refuse(w.line, checkKind(d.n, w.owner, w.sub.sub, w.addr, w.automatic))
		}
	}
	for _, w := range d.taken.wanted {
		if err := ck.checkTaken(w); err != nil {
			return err
		}
	}
	if err := ck.checkKnown(d); err != nil {
		return err
	}
	ck.place(&d.reserved)
	ck.place(&d.taken)
	ck.checkGaps(&d.taken)
	return nil
}

// checkKind refuses a kind of reservation that the network's type, or a static band, does not allow (BO-8, BO-10). What
// somebody else has chosen lies where it lies.
func checkKind(n *ipam.Network, owner string, sub *ipam.Subnet, addr netip.Addr, automatic bool) error {
	switch {
	case !automatic:
		return n.CheckStatic()
	case n.Type == ipam.Dynamic:
		return nil
	}
	return n.CheckAutomaticAt(owner, sub, addr)
}

// presentLease reads the record of an address of the plan; nil where it has none.
func (ck *importCheck) presentLease(w *wanted) (*ipam.Lease, error) {
	if !w.sub.old {
		return nil, nil
	}
	raw, err := ck.tx.Get(ledger.LeaseKey(nil, w.sub.sub.ID, w.addr))
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, nil
	}
	return ipam.DecodeLease(w.addr, raw)
}

// checkReserved compares a reservation with what is there.
func (ck *importCheck) checkReserved(w *wanted) error {
	l, err := ck.presentLease(w)
	if err != nil {
		return err
	}
	if l == nil {
		return nil
	}
	end := ipam.Advise(ipam.DoEndReservation).OrLeaveOut()
	r := ck.reservation(l)
	is, wanted := "", ""
	if r != nil {
		is, wanted = w.Against(r.Terms)
	}
	switch {
	case r != nil && r.Owner != w.owner:
		ck.AddHelp(end, w.line, "%s is reserved for %s already, and not for %s", w.addr, r.Owner, w.owner)
		w.skip = true
	case r != nil && !w.unplaced && r.Slot != w.slot:
		ck.AddHelp(end, w.line, "%s is reserved for %s as %s already, and not as %s", w.addr, w.owner, r.Slot, w.slot)
		w.skip = true
	case r != nil && w.Replaced && !r.Replaced:
		ck.AddHelp(end, w.line, "%s is reserved for %s already, and nothing replaces it", w.addr, w.owner)
		w.skip = true
	case wanted != "":
		ck.AddHelp(end, w.line, "%s is reserved for %s already, %s, and not %s", w.addr, w.owner, is, wanted)
		w.skip = true
	case r != nil:
		ck.unchanged.Reservations++
		w.skip = true
	case edit.Bars(w.sub.in.n, l, w.owner, w.force):
		ck.Add(w.line, "%s is held by %s, and cannot be reserved for %s", w.addr, l.Holder(), w.owner)
		w.skip = true
	}
	return nil
}

// reservation is that of an address, unless its time is over: then the first change of the import ends it.
func (ck *importCheck) reservation(l *ipam.Lease) *ipam.Reservation {
	if r := l.Reservation; r != nil && !view.Over(r.Until, ck.began) {
		return r
	}
	return nil
}

// checkTaken compares a taken address with what is there.
func (ck *importCheck) checkTaken(w *wanted) error {
	l, err := ck.presentLease(w)
	if err != nil {
		return err
	}
	if l == nil {
		return nil
	}
	own := l.Held() && l.Kind == ipam.External && l.Name == w.owner
	is, wanted := w.Against(ipam.Terms{Note: l.Note})
	switch r := ck.reservation(l); {
	case own && !w.unplaced && l.Slot != w.slot:
		ck.AddHelp(ipam.Advise(ipam.DoRetakeAddress).OrLeaveOut(), w.line, "%s has %s as %s already, and not as %s",
			w.owner,
			w.addr, l.Slot, w.slot)
		w.skip = true
	case own && wanted != "":
		ck.AddHelp(ipam.Advise(ipam.DoRetakeAddress).OrLeaveOut(), w.line, "%s has %s already, %s, and not %s", w.owner,
			w.addr, is, wanted)
		w.skip = true
	case own:
		ck.unchanged.Addresses++
		w.skip = true
	case l.Held():
		ck.Add(w.line, "%s is held by %s, and cannot be taken for %s", w.addr, l.Holder(), w.owner)
		w.skip = true
	case r != nil && r.Owner != w.owner:
		ck.Add(w.line, "%s is reserved for %s, and cannot be taken for %s", w.addr, r.Owner, w.owner)
		w.skip = true
	}
	return nil
}

// counts says what is to be added in a network.
func (d *draftNetwork) counts() (n ipam.Counts) {
	if !d.old {
		n.Networks = 1
	}
	for _, sub := range d.subnets {
		if !sub.old {
			n.Subnets++
		}
		n.Pools += len(sub.pools)
		n.Exclusions += len(sub.exclusions)
	}
	n.Reservations, n.Addresses = added(d.reserved.wanted)+added(d.known), added(d.taken.wanted)
	return n
}

// added counts those that are to be added.
func added(all []*wanted) (n int) {
	for _, w := range all {
		if !w.skip {
			n++
		}
	}
	return n
}

// plus is the sum of both.
func plus(n ipam.Counts, m ipam.Counts) ipam.Counts {
	return ipam.Counts{Networks: n.Networks + m.Networks, Subnets: n.Subnets + m.Subnets, Pools: n.Pools + m.Pools,
		Exclusions:   n.Exclusions + m.Exclusions,
		Reservations: n.Reservations + m.Reservations, Addresses: n.Addresses + m.Addresses,
		Accounts: n.Accounts + m.Accounts, Ranges: n.Ranges + m.Ranges, Elastic: n.Elastic + m.Elastic,
		Associations: n.Associations + m.Associations}
}
