package bulk

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// place gives each its slot: first those that say theirs, then the others the lowest that is left of interface 0. What
// is replaced shares the slot of what replaces it.
func (ck *importCheck) place(o *draftOwners) {
	for _, w := range o.wanted {
		if w.skip || w.unplaced || w.Replaced {
			continue
		}
		if use := slotIn(o.slots[w.owner], w.slot); use != nil {
			ck.Add(w.line, "%s has %s as %s%s, and cannot have %s there", w.owner, use.addr, w.slot,
				lineBefore(use.line), w.addr)
			w.skip = true
			continue
		}
		o.slots[w.owner] = append(o.slots[w.owner], slotUse{w.slot, w.addr, w.line})
	}
	for _, w := range o.wanted {
		if w.skip || !w.unplaced || w.Replaced {
			continue
		}
		for w.slot = (ipam.Slot{}); slotIn(o.slots[w.owner], w.slot) != nil; w.slot.Number++ {
		}
		if w.slot.Number >= ipam.MaxSlots {
			ck.Add(w.line, "%s has %d addresses at interface 0, and cannot have more; say another interface for %s",
				w.owner, ipam.MaxSlots, w.addr)
			w.skip = true
			continue
		}
		o.slots[w.owner] = append(o.slots[w.owner], slotUse{w.slot, w.addr, w.line})
	}
}

func slotIn(all []slotUse, slot ipam.Slot) *slotUse {
	i := slices.IndexFunc(all, func(use slotUse) bool { return use.Slot == slot })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// checkGaps refuses interfaces whose addresses are not numbered from ip0 on (GA-24).
func (ck *importCheck) checkGaps(o *draftOwners) {
	for _, w := range o.wanted {
		if w.skip || w.slot.Number == 0 ||
			slotIn(o.slots[w.owner], ipam.Slot{Interface: w.slot.Interface, Number: w.slot.Number - 1}) != nil {
			continue
		}
		ck.Add(w.line, "interface %d of %s would have ip%d (%s) and no ip%d: the addresses of an interface are "+
			"numbered without gaps",
			w.slot.Interface, w.owner, w.slot.Number, w.addr, w.slot.Number-1)
	}
}

// presentSlots finds the slots that the owners of the plan have already.
func (ck *importCheck) presentSlots(d *draftNetwork) error {
	if len(d.reserved.slots)+len(d.taken.slots) == 0 {
		return nil
	}
	for _, id := range ck.SubnetsOf(d.n.ID) {
		for _, addr := range ck.addressesOf(id, d) {
			raw, err := ck.tx.Get(ledger.LeaseKey(nil, id, addr))
			if err != nil {
				return err
			}
			if raw == nil {
				continue
			}
			l, err := ipam.DecodeLease(addr, raw)
			if err != nil {
				return err
			}
			d.noteSlots(l, ck.reservation(l))
		}
	}
	return nil
}

// noteSlots takes what an address is into the slots; r is its reservation, where it has one.
func (d *draftNetwork) noteSlots(l *ipam.Lease, r *ipam.Reservation) {
	if r != nil && !r.Replaced {
		d.reserved.noteSlot(r.Owner, r.Slot, l.Address)
	}
	if l.Held() && l.Kind == ipam.External {
		d.taken.noteSlot(l.Name, l.Slot, l.Address)
	}
}

func (o *draftOwners) noteSlot(owner string, slot ipam.Slot, addr netip.Addr) {
	if uses, wanted := o.slots[owner]; wanted && slotIn(uses, slot) == nil {
		o.slots[owner] = append(uses, slotUse{slot, addr, 0})
	}
}

// addressesOf are the addresses of a subnet at which the index has seen an owner of the plan.
func (ck *importCheck) addressesOf(subnet ipam.ID, d *draftNetwork) []netip.Addr {
	return ledger.Ask(ck.Ledger, func(ix *ledger.Index) (all []netip.Addr) {
		sx := ix.Subnet(subnet)
		if sx == nil {
			return nil
		}
		for owner, addr := range sx.ByOwner().All() {
			if _, wanted := d.reserved.slots[owner]; wanted {
				all = append(all, addr)
			}
		}
		taken := map[string]bool{}
		for owner := range d.taken.slots {
			taken[ipam.RememberedName(owner)] = true
		}
		for name, addr := range sx.ByTaken().All() {
			if taken[name] {
				all = append(all, addr)
			}
		}
		return all
	})
}
