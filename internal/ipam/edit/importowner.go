package edit

import (
	"cmp"
	"net/netip"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// importOwned is an address of a plan that is to be reserved for, or taken by, an owner.
type importOwned struct {
	ipam.PlannedReservation
	at       ipam.Slot
	unplaced bool // its slot is the next free one
	sub      *importSubnet
	done     bool // it is added, in the draft
}

// importOwners are the reservations of a network, or its taken addresses.
type importOwners struct {
	wanted []*importOwned
	slots  map[string][]slotUse // by owner of the plan: those of the plan and those that are there
}

// slotUse is an address in an owner's slot.
type slotUse struct {
	ipam.Slot
	addr netip.Addr
	line int // 0: it is there, or the line is not known
}

// over tells whether an end has come; the zero time is none.
func over(end, now time.Time) bool { return !end.IsZero() && !end.After(now) }

// owners takes the reservations and addresses of a network of the plan to the subnets that hold them.
func (d *importDraft) owners(p *ipam.PlannedNetwork, n *importNetwork) {
	for i := range p.Reservations {
		r := &p.Reservations[i]
		if over(r.Until, d.Now()) {
			continue // an old export is no mistake
		}
		d.refuse(r.Line, ipam.CheckNote(r.Note))
		w := &importOwned{PlannedReservation: *r, unplaced: r.Unplaced}
		w.Terms = r.Stored()
		if !w.Address.IsValid() && n != nil && n.n.Type == ipam.Dynamic {
			if err := ipam.CheckOwner(w.Owner); err != nil {
				d.refuse(w.Line, err)
				continue
			}
			w.Owner = ipam.CanonicalOwner(w.Owner)
			n.known = append(n.known, w)
			n.reserved.about(w.Owner)
		} else if d.want(p, n, w) && d.once(w.Line, "the reservation of %s in the space %s", w.Address, w.sub.sub.Space) {
			w.sub.in.reserved.add(w)
		}
	}
	for i := range p.Addresses {
		a := &p.Addresses[i]
		d.refuse(a.Line, ipam.CheckNote(a.Note))
		w := &importOwned{PlannedReservation: a.Reserved(), unplaced: a.Unplaced}
		if d.want(p, n, w) && d.once(w.Line, "the address %s in the space %s", w.Address, w.sub.sub.Space) {
			w.sub.in.taken.add(w)
		}
	}
}

// want looks at what can be said of one without the others, and finds its subnet; false: it is refused.
func (d *importDraft) want(p *ipam.PlannedNetwork, n *importNetwork, w *importOwned) bool {
	switch {
	case !w.Address.IsValid():
		d.refuse(w.Line, ipam.RefuseAs(ipam.IPMissing, ipam.ErrInvalid,
			"the address of %s is missing; only a network of the type dynamic has owners without one", w.Owner))
		return false
	case w.Address.Is4In6():
		d.Add(w.Line, "%s is an IPv4 address mapped into IPv6; write %s", w.Address, w.Address.Unmap())
		return false
	case w.Interface < 0 || w.Interface >= ipam.MaxSlots || w.Slot < 0 || w.Slot >= ipam.MaxSlots:
		d.Add(w.Line, "%s is to be at interface %d, slot %d; there are 0 to %d of both", w.Address, w.Interface, w.Slot,
			ipam.MaxSlots-1)
		return false
	}
	if err := ipam.CheckOwner(w.Owner); err != nil {
		d.refuse(w.Line, err)
		return false
	}
	w.Owner, w.at = ipam.CanonicalOwner(w.Owner), ipam.Slot{Interface: uint8(w.Interface), Number: uint8(w.Slot)}
	if w.sub = d.holding(n, cmp.Or(p.Space, ipam.LocalSpace), w.Address, w.Line); w.sub == nil {
		return false
	}
	if n != nil {
		d.refuse(w.Line, d.names.Clash(d.Known(), n.n, w.Owner))
	}
	return true
}

func (o *importOwners) add(w *importOwned) {
	o.about(w.Owner)
	o.wanted = append(o.wanted, w)
}

// about has the slots that an owner has already looked up.
func (o *importOwners) about(owner string) {
	if o.slots == nil {
		o.slots = map[string][]slotUse{}
	}
	if _, known := o.slots[owner]; !known {
		o.slots[owner] = nil
	}
}

// tryOwners tries all that owners are to have: of each kind first what says its slot.
func (d *importDraft) tryOwners() {
	try := func(n *importNetwork, kind importKind, w *importOwned, same ipam.Counts,
		make func(*stepper, *importOwned) (ipam.Counts, error)) {
		t := importTrial{of: n, sub: w.sub, kind: kind, same: same, importStep: importStep{network: n.n.ID, line: w.Line,
			writes: 3, make: func(s *stepper) (ipam.Counts, error) { return make(s, w) }}}
		if w.sub != nil {
			t.subnet = w.sub.sub.ID
		}
		d.queue = append(d.queue, t)
	}
	for _, n := range d.networks {
		for _, unplaced := range []bool{false, true} {
			for _, w := range n.taken.wanted {
				if w.unplaced == unplaced {
					try(n, takes, w, ipam.Counts{Addresses: 1}, (*stepper).take)
				}
			}
		}
		for _, unplaced := range []bool{false, true} {
			for _, w := range n.reserved.wanted {
				if w.unplaced == unplaced {
					try(n, reserves, w, ipam.Counts{Reservations: 1}, (*stepper).reserve)
				}
			}
		}
		for _, w := range n.reserved.wanted {
			if len(n.known) > 0 && !w.Replaced {
				d.lines["the owner "+w.Owner+" of network "+n.n.Name] = w.Line
			}
		}
		for _, w := range n.known {
			if d.once(w.Line, "the owner %s of network %s", w.Owner, n.n.Name) {
				try(n, knows, w, ipam.Counts{Reservations: 1}, (*stepper).know)
			}
		}
	}
}

// reserved is that of an address, unless its time is over: then the first change of the import ends it.
func (d *importDraft) reserved(l *ipam.Lease) *ipam.Reservation {
	if r := l.Reserved(); r != nil && !over(r.Until, d.Now()) {
		return r
	}
	return nil
}

// bring brings what there is at an address to the draft.
func (s *stepper) bring(w *importOwned) error {
	if s.draft == nil || w.sub.fresh {
		return nil
	}
	raw, err := s.draft.tx.Get(ledger.LeaseKey(nil, w.sub.sub.ID, w.Address))
	if err != nil || raw == nil || s.Index().Subnet(w.sub.sub.ID).HasRecord(w.Address) {
		return err
	}
	l, err := ipam.DecodeLease(w.Address, raw)
	if err != nil {
		return err
	}
	if l.Reservation != nil && s.draft.reserved(l) == nil {
		l = l.WithReservation(w.Address, nil)
	}
	if l == nil {
		return nil
	}
	return s.SetLease(w.sub.sub.ID, w.Address, nil, l)
}

// at reads what there is at the address of w.
func (s *stepper) at(w *importOwned) (ledger.Picked, error) {
	if why := allocator.NotHost(s.sub.CIDR, w.Address); why != "" {
		return ledger.Picked{}, ipam.Refuse(ipam.ErrInvalid, "%s is %s", w.Address, why)
	}
	if err := s.bring(w); err != nil {
		return ledger.Picked{}, err
	}
	l, err := s.Lease(s.sub.ID, w.Address)
	return ledger.Picked{Sub: s.sub, Addr: w.Address, Record: l}, err
}

// reserve reserves an address, be it excluded or not: an import is an admin's word.
func (s *stepper) reserve(w *importOwned) (ipam.Counts, error) {
	at, err := s.at(w)
	if err != nil {
		return ipam.Counts{}, err
	}
	if r := at.Record.Reserved(); r != nil {
		return ipam.Counts{}, w.differs(r)
	}
	if Bars(s.p.N, at.Record, w.Owner, w.Force) {
		return ipam.Counts{}, allocator.HeldError(s.Change, s.sub, at.Record)
	}
	if err := s.unlocked(w); err != nil {
		return ipam.Counts{}, err
	}
	r := &ipam.Reservation{Owner: w.Owner, Kind: ipam.Static, Terms: w.Terms}
	if w.Automatic {
		r.Kind = ipam.Automatic
	}
	if err := checkKind(s.p.N, w.Owner, s.sub, w.Address, w.Automatic); err != nil {
		return ipam.Counts{}, err
	}
	if !w.Replaced {
		if _, err := allocator.ForgetOwner(&s.p.NetworkPlan, w.Owner, ""); err != nil {
			return ipam.Counts{}, err
		}
		err := s.place(w, &w.sub.in.reserved, func(owner string) (map[ipam.Slot]ledger.Picked, error) {
			owned, err := s.p.Owned(owner)
			return owned.Wanted, err
		})
		if err != nil {
			return ipam.Counts{}, err
		}
	}
	r.Slot = w.at
	if err := s.p.WriteReservation(at, r); err != nil {
		return ipam.Counts{}, err
	}
	return ipam.Counts{Reservations: 1}, s.p.Keep()
}

// differs refuses what a plan wants of a reservation otherwise than it is.
func (w *importOwned) differs(r *ipam.Reservation) error {
	refuse := func(format string, args ...any) error {
		return ipam.Help(ipam.Refuse(ipam.ErrInUse, format, args...), ipam.Advise(ipam.DoEndReservation).OrLeaveOut()...)
	}
	is, wanted := w.Against(r.Terms)
	switch {
	case r.Owner != w.Owner:
		return refuse("%s is reserved for %s already, and not for %s", w.Address, r.Owner, w.Owner)
	case !w.unplaced && r.Slot != w.at:
		return refuse("%s is reserved for %s as %s already, and not as %s", w.Address, w.Owner, r.Slot, w.at)
	case w.Replaced && !r.Replaced:
		return refuse("%s is reserved for %s already, and nothing replaces it", w.Address, w.Owner)
	case wanted != "":
		return refuse("%s is reserved for %s already, %s, and not %s", w.Address, w.Owner, is, wanted)
	}
	return nil
}

// take takes an address for what is no container.
func (s *stepper) take(w *importOwned) (ipam.Counts, error) {
	at, err := s.at(w)
	if err != nil {
		return ipam.Counts{}, err
	}
	l := at.Record
	if l.Held() && l.Kind == ipam.External && l.Name == w.Owner {
		is, wanted := w.Against(ipam.Terms{Note: l.Note})
		help := ipam.Advise(ipam.DoRetakeAddress).OrLeaveOut()
		switch {
		case !w.unplaced && l.Slot != w.at:
			return ipam.Counts{}, ipam.Help(ipam.Refuse(ipam.ErrInUse, "%s has %s as %s already, and not as %s", w.Owner,
				w.Address, l.Slot, w.at), help...)
		case wanted != "":
			return ipam.Counts{}, ipam.Help(ipam.Refuse(ipam.ErrInUse, "%s has %s already, %s, and not %s", w.Owner,
				w.Address, is, wanted), help...)
		}
		return ipam.Counts{}, nil
	}
	switch r := l.Reserved(); {
	case l.Held():
		return ipam.Counts{}, allocator.HeldError(s.Change, s.sub, l)
	case r != nil && r.Owner != w.Owner:
		return ipam.Counts{}, allocator.ReservedError(s.Change, w.Address, r)
	}
	if err := s.place(w, &w.sub.in.taken, func(owner string) (map[ipam.Slot]ledger.Picked, error) {
		return s.p.Taken(owner)
	}); err != nil {
		return ipam.Counts{}, err
	}
	if err := s.p.WriteTaken(at, w.Owner, w.at, w.Note); err != nil {
		return ipam.Counts{}, err
	}
	w.done = true
	return ipam.Counts{Addresses: 1}, s.p.Keep()
}

// know makes an owner known in a network of which somebody else chooses the addresses (BO-8).
func (s *stepper) know(w *importOwned) (ipam.Counts, error) {
	if over(w.Until, s.Now()) {
		return ipam.Counts{}, nil
	}
	if s.draft != nil {
		if there, err := s.known(w); there || err != nil {
			return ipam.Counts{}, err
		}
	}
	if err := s.unlocked(w); err != nil {
		return ipam.Counts{}, err
	}
	_, err := s.p.RecordOwner(w.Owner, false, w.Terms.Over)
	return ipam.Counts{Reservations: 1}, err
}

// known tells whether an owner is known already, as the plan has it. One that has an address is known by that.
func (s *stepper) known(w *importOwned) (bool, error) {
	known := len(s.draft.byID[s.p.N.ID].reserved.slots[w.Owner]) > 0
	raw, err := s.Tx().Get(ledger.OwnerKey(s.p.N.ID, w.Owner))
	if err != nil || raw == nil {
		return known, err
	}
	var record ledger.DynamicOwner
	if err := ipam.DecodeJSON("an owner", raw, &record); err != nil {
		return false, err
	}
	known = known || !over(record.Until, s.Now())
	if is, wanted := w.Against(record.Terms.Stored()); known && wanted != "" {
		return false, ipam.Help(ipam.Refuse(ipam.ErrInUse, "%s is known in network %s already, %s, and not %s", w.Owner,
			s.p.Called(), is, wanted), ipam.Advise(ipam.DoEndReservation).OrLeaveOut()...)
	}
	return known, nil
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

// unlocked refuses to reserve for a project that is being deployed, as for every edit (BD-1), while the plan is tried.
// What an import has begun it goes on with: a deploy that begins meanwhile finds what was added.
func (s *stepper) unlocked(w *importOwned) error {
	if s.draft == nil {
		return nil
	}
	s.draft.reserves = append(s.draft.reserves, w.Owner)
	return lockedFor(s.draft.locks, w.Owner)
}

func lockedFor(locks []*ipam.DeployLock, owner string) error {
	for _, lock := range locks {
		if lock.Of(owner) {
			return LockRefusal(lock)
		}
	}
	return nil
}
