package ipam

import (
	"iter"
	"net/netip"
	"slices"
)

// place gives each its slot: first those that say theirs, then the others the lowest that is left of interface 0. What is
// replaced shares the slot of what replaces it.
func (ck *importCheck) place(o *draftOwners) {
	for _, w := range o.wanted {
		if w.skip || w.unplaced || w.replaced {
			continue
		}
		if use := slotIn(o.slots[w.owner], w.slot); use != nil {
			ck.Add(w.line, "%s has %s as %s%s, and cannot have %s there", w.owner, use.addr, w.slot, lineBefore(use.line), w.addr)
			w.skip = true
			continue
		}
		o.slots[w.owner] = append(o.slots[w.owner], slotUse{w.slot, w.addr, w.line})
	}
	for _, w := range o.wanted {
		if w.skip || !w.unplaced || w.replaced {
			continue
		}
		for w.slot = (Slot{}); slotIn(o.slots[w.owner], w.slot) != nil; w.slot.Number++ {
		}
		if w.slot.Number >= maxSlots {
			ck.Add(w.line, "%s has %d addresses at interface 0, and cannot have more; say another interface for %s", w.owner, maxSlots, w.addr)
			w.skip = true
			continue
		}
		o.slots[w.owner] = append(o.slots[w.owner], slotUse{w.slot, w.addr, w.line})
	}
}

func slotIn(all []slotUse, slot Slot) *slotUse {
	i := slices.IndexFunc(all, func(use slotUse) bool { return use.Slot == slot })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// checkGaps refuses interfaces whose addresses are not numbered from ip0 on (GA-24).
func (ck *importCheck) checkGaps(o *draftOwners) {
	for _, w := range o.wanted {
		if w.skip || w.slot.Number == 0 || slotIn(o.slots[w.owner], Slot{w.slot.Interface, w.slot.Number - 1}) != nil {
			continue
		}
		ck.Add(w.line, "interface %d of %s would have ip%d (%s) and no ip%d: the addresses of an interface are numbered without gaps",
			w.slot.Interface, w.owner, w.slot.Number, w.addr, w.slot.Number-1)
	}
}

// presentSlots finds the slots that the owners of the plan have already.
func (ck *importCheck) presentSlots(d *draftNetwork) error {
	if len(d.reserved.slots)+len(d.taken.slots) == 0 {
		return nil
	}
	for _, id := range ck.subnetsOf(d.n.ID) {
		for _, addr := range ck.addressesOf(id, d) {
			raw, err := ck.tx.Get(leaseKey(nil, id, addr))
			if err != nil {
				return err
			}
			if raw == nil {
				continue
			}
			l, err := decodeLease(addr, raw)
			if err != nil {
				return err
			}
			d.noteSlots(l, ck.reservation(l))
		}
	}
	return nil
}

// noteSlots takes what an address is into the slots; r is its reservation, where it has one.
func (d *draftNetwork) noteSlots(l *Lease, r *Reservation) {
	if r != nil && !r.Replaced {
		d.reserved.noteSlot(r.Owner, r.Slot, l.Address)
	}
	if l.Held() && l.Kind == External {
		d.taken.noteSlot(l.Name, l.Slot, l.Address)
	}
}

func (o *draftOwners) noteSlot(owner string, slot Slot, addr netip.Addr) {
	if uses, wanted := o.slots[owner]; wanted && slotIn(uses, slot) == nil {
		o.slots[owner] = append(uses, slotUse{slot, addr, 0})
	}
}

func (ck *importCheck) subnetsOf(network ID) []ID {
	ck.mu.Lock()
	defer ck.mu.Unlock()
	if nx := ck.ix.networks[network]; nx != nil {
		return slices.Clone(nx.subnets)
	}
	return nil
}

// addressesOf are the addresses of a subnet at which the index has seen an owner of the plan.
func (ck *importCheck) addressesOf(subnet ID, d *draftNetwork) (all []netip.Addr) {
	ck.mu.Lock()
	defer ck.mu.Unlock()
	sx := ck.ix.subnets[subnet]
	if sx == nil {
		return nil
	}
	for owner, addr := range sx.byOwner.all() {
		if _, wanted := d.reserved.slots[owner]; wanted {
			all = append(all, addr)
		}
	}
	taken := map[string]bool{}
	for owner := range d.taken.slots {
		taken[rememberedName(owner)] = true
	}
	for name, addr := range sx.byName.all() {
		if taken[name] {
			all = append(all, addr)
		}
	}
	return all
}

// all yields each place with what was seen there.
func (p *places[K]) all() iter.Seq2[K, netip.Addr] {
	return func(yield func(K, netip.Addr) bool) {
		for k, addr := range p.latest {
			if !yield(k, addr) {
				return
			}
		}
		for k, addrs := range p.older {
			for _, addr := range addrs {
				if !yield(k, addr) {
					return
				}
			}
		}
	}
}
