package edit

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// fewSubnets is how many subnets a network may have for an owner's slots to be looked up in all of them again. The
// trial has done so; between it and the step another admin may have filled the same slot, which then has two addresses.
const fewSubnets = 64

// place gives an address its slot in the draft: the one that is said, or the lowest that is left of interface 0. Later
// it sees to it that the slot is free still.
func (s *stepper) place(w *importOwned, o *importOwners,
	all func(owner string) (map[ipam.Slot]ledger.Picked, error)) error {
	if s.draft != nil {
		return o.place(w)
	}
	if s.p.N.Stage != "" || len(s.Index().NetworkIndex(s.p.N.ID).Subnets()) > fewSubnets {
		return nil // nobody else writes in it, or too many to ask
	}
	has, err := all(w.Owner)
	if one, taken := has[w.at]; err == nil && taken {
		err = ipam.Refuse(ipam.ErrInUse, "%s has %s as %s in network %s meanwhile, and cannot have %s there", w.Owner,
			one.Addr, w.at, s.p.Called(), w.Address)
	}
	return err
}

func (o *importOwners) place(w *importOwned) error {
	if w.unplaced {
		for w.at = (ipam.Slot{}); slotIn(o.slots[w.Owner], w.at) != nil; w.at.Number++ {
		}
		if w.at.Number >= ipam.MaxSlots {
			return ipam.Refuse(ipam.ErrExhausted, "%s has %d addresses at interface 0, and cannot have more; say another "+
				"interface for %s", w.Owner, ipam.MaxSlots, w.Address)
		}
	} else if use := slotIn(o.slots[w.Owner], w.at); use != nil {
		return ipam.Refuse(ipam.ErrInUse, "%s has %s as %s%s, and cannot have %s there", w.Owner, use.addr, w.at,
			lineBefore(use.line), w.Address)
	}
	o.slots[w.Owner] = append(o.slots[w.Owner], slotUse{w.at, w.Address, w.Line})
	return nil
}

func slotIn(all []slotUse, slot ipam.Slot) *slotUse {
	i := slices.IndexFunc(all, func(use slotUse) bool { return use.Slot == slot })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// checkGaps refuses interfaces whose addresses are not numbered from ip0 on (GA-24).
func (d *importDraft) checkGaps() {
	for _, n := range d.networks {
		for _, w := range n.taken.wanted {
			below := ipam.Slot{Interface: w.at.Interface, Number: w.at.Number - 1}
			if w.done && w.at.Number > 0 && slotIn(n.taken.slots[w.Owner], below) == nil {
				d.Add(w.Line, "interface %d of %s would have ip%d (%s) and no ip%d: the addresses of an interface are "+
					"numbered without gaps", w.at.Interface, w.Owner, w.at.Number, w.Address, below.Number)
			}
		}
	}
}

// presentSlots finds the slots that the owners of the plan have already.
func (d *importDraft) presentSlots() error {
	for _, n := range d.networks {
		if n.fresh || len(n.reserved.slots)+len(n.taken.slots) == 0 {
			continue
		}
		for _, id := range d.SubnetsOf(n.n.ID) {
			for _, addr := range d.addressesOf(id, n) {
				raw, err := d.tx.Get(ledger.LeaseKey(nil, id, addr))
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
				if r := d.reserved(l); r != nil && !r.Replaced {
					n.reserved.noteSlot(r.Owner, slotUse{r.Slot, addr, 0})
				}
				if l.Held() && l.Kind == ipam.External {
					n.taken.noteSlot(l.Name, slotUse{l.Slot, addr, 0})
				}
			}
		}
	}
	return nil
}

func (o *importOwners) noteSlot(owner string, use slotUse) {
	if uses, wanted := o.slots[owner]; wanted && slotIn(uses, use.Slot) == nil {
		o.slots[owner] = append(uses, use)
	}
}

// addressesOf are the addresses of a subnet at which the index has seen an owner of the plan.
func (d *importDraft) addressesOf(subnet ipam.ID, n *importNetwork) (all []netip.Addr) {
	taken := map[string]bool{}
	for owner := range n.taken.slots {
		taken[ipam.RememberedName(owner)] = true
	}
	d.Read(func(ix *ledger.Index) {
		sx := ix.Subnet(subnet)
		if sx == nil {
			return
		}
		for owner, addr := range sx.ByOwner().All() {
			if _, wanted := n.reserved.slots[owner]; wanted {
				all = append(all, addr)
			}
		}
		for name, addr := range sx.ByTaken().All() {
			if taken[name] {
				all = append(all, addr)
			}
		}
	})
	return all
}
