package edit_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// check compares all that is shown, and all events, with the model after each step.
func (mc *ownerMachine) check(t *rapid.T) {
	if problems, err := mc.s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("check: %q, %v", problems, err)
	}
	mc.expire()
	got := map[string]string{}
	var holds []toldOf
	for _, l := range ipamtest.ListLeases(t, mc.s, ipam.LeaseFilter{}) {
		got[l.Network+" "+l.Address.String()] = fmt.Sprintf("held by %q %s through %s;", l.Name, l.MAC, l.Pool)
		holds = append(holds, toldOf{lease: l.ID, addr: l.Address})
	}
	owned := mc.shownReservations(t, got)
	mc.checkEvents(t, append(owned, holds...))
	want := map[string]string{}
	for name, n := range mc.m.nets {
		mc.checkPlaces(t, n)
		for a, rec := range n.records {
			text := ""
			if rec.held {
				text += fmt.Sprintf("held by %q %s through %s;", rec.name, rec.mac, rec.docker)
			}
			if rec.owner != "" {
				text += fmt.Sprintf(" %s of %s at %d:%d replaced %t until %s", rec.kind, rec.owner, rec.nic, rec.slot,
					rec.replaced, rec.until.UTC())
			}
			want[name+" "+a.String()] = text
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("shown is\n%v\nthe model has\n%v", got, want)
	}
}

// shownReservations adds the reservations to got, and returns those that events must have reported.
func (mc *ownerMachine) shownReservations(t *rapid.T, got map[string]string) (owned []toldOf) {
	for res, err := range mc.s.Reservations(ctx, ipam.AddressFilter{}) {
		fine(t, err)
		owned = append(owned, toldOf{network: res.Network, owner: res.Owner, addr: res.Address})
		if !res.Until.IsZero() && !res.Until.After(mc.clock.Time) {
			continue // its end is written with the next change
		}
		got[res.Network+" "+res.Address.String()] += fmt.Sprintf(" %s of %s at %d:%d replaced %t until %s", res.Kind,
			res.Owner, res.Interface, res.Slot, res.Replaced, res.Until.UTC())
	}
	return owned
}

// checkPlaces: no owner has two wanted addresses in one slot, or two interfaces (BO-6).
func (mc *ownerMachine) checkPlaces(t *rapid.T, n *ownedNet) {
	places := map[string]ownedRecord{}
	for a, rec := range n.records {
		if rec.owner == "" || rec.replaced {
			continue
		}
		if other, twice := places[fmt.Sprint(rec.owner, rec.slot)]; twice || other.owner != "" && other.nic != rec.nic {
			t.Fatalf("%s has %s beside %+v", rec.owner, a, other)
		}
		places[fmt.Sprint(rec.owner, rec.slot)] = rec
	}
}

// checkEvents: the events since the beginning add up to the current state: nothing begins or ends without one
// (BO-12).
func (mc *ownerMachine) checkEvents(t *rapid.T, there []toldOf) {
	events, err := mc.s.Events(ctx, ipam.EventFilter{After: mc.last})
	fine(t, err)
	for _, e := range events {
		mc.last = e.ID
		key, begins, ends := toldOf{network: e.Network, owner: e.Name, addr: e.Address},
			e.Verb == ipam.ReservationAdded, e.Verb == ipam.ReservationRemoved
		if e.Verb == ipam.LeaseTaken || e.Verb == ipam.LeaseReleased {
			key, begins, ends = toldOf{lease: cmp.Or(e.Lease, e.ID), addr: e.Address}, e.Verb == ipam.LeaseTaken,
				e.Verb == ipam.LeaseReleased
		}
		switch known := mc.told[key]; {
		case begins && known, ends && !known:
			t.Fatalf("told twice, or of what is not there: %+v", e)
		case begins:
			mc.told[key] = true
		case ends:
			delete(mc.told, key)
			delete(mc.ended, key)
		}
	}
	for _, one := range there {
		if !mc.told[one] {
			t.Fatalf("no event told of %+v", one)
		}
	}
	for one := range mc.told {
		if !slices.Contains(there, one) && !mc.ended[one] {
			t.Fatalf("no event told of the end of %+v", one)
		}
	}
}
