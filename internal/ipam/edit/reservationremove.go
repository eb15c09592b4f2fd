package edit

import (
	"net/netip"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

func removeReservation(p *Plan, e *ipam.RemoveReservation) error {
	if err := ipam.CheckOwner(e.Owner); err != nil {
		return err
	}
	owner := ipam.CanonicalOwner(e.Owner)
	owned, err := p.owned(owner)
	if err != nil {
		return err
	}
	if err := owned.gapsWithout(owner, e.Address); err != nil {
		return err
	}
	ended := false
	for _, has := range owned.all() {
		if e.Address.IsValid() && e.Address != has.Addr {
			continue
		}
		if err := ledger.EndReservation(p.Change, has, ""); err != nil {
			return err
		}
		p.run.gave(has.Addr)
		ended = true
	}
	if e.Address.IsValid() && ended {
		return p.wantAgain(owned, e.Address)
	}
	unplaced, err := allocator.ForgetOwner(&p.NetworkPlan, owner, "")
	if err != nil || unplaced || ended {
		return err
	}
	what := ""
	if e.Address.IsValid() {
		what = " of " + e.Address.String()
	}
	return ipam.RefuseAs(ipam.IPMissing, ipam.ErrNotFound, "%s has no reservation%s in network %s",
		e.Owner, what, p.Called()).Advise(ipam.DoListReservations, p.Called())
}

// gapsWithout refuses to end one reservation of an interface if that leaves a gap. There is no gap if a
// replaced reservation returns to the slot.
func (o ownedSlots) gapsWithout(owner string, addr netip.Addr) error {
	for slot, has := range o.Wanted {
		if _, again := o.last(slot); has.Addr == addr && again {
			return nil
		}
	}
	return interfaces(o.Wanted).gapsWithout(owner, addr)
}

// wantAgain restores a slot's replaced reservation when its replacement is given up.
func (p *Plan) wantAgain(owned ownedSlots, gone netip.Addr) error {
	for slot, has := range owned.Wanted {
		if has.Addr != gone {
			continue
		}
		if old, found := owned.last(slot); found {
			r := *old.Record.Reservation
			r.Replaced = false
			return changeReservation(p.Change, old, r)
		}
	}
	return nil
}
