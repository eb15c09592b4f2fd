package edit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// A dry run shows what an edit would change, and changes nothing. An edit that the store fails changes nothing
// either: the index forgets it. An edit writes events: who changed what, when and where, before and after. The
// answer has the same events. The edit itself does not change, and its operation names it.
func TestEditEvents(t *testing.T) {
	all := ipamtest.EditsOfAllKinds(t)
	for row := range ipamtest.Rows(5, `
		# operation | verbs of its events | their network | in the first one's value before | after; nothing: there is none
		network.create | network.create subnet.create subnet.gateway | new | | "name":"new"
		network.modify | network.modify | core | "name":"net1" "site":"a" | "name":"core" "site":"b"
		network.remove | network.remove | spare | "name":"spare"
		subnet.add | subnet.create subnet.gateway | spare | | "203.0.113.0/24" "203.0.113.1"
		subnet.modify | subnet.modify subnet.gateway | net1 | "2001:db8::/64" none | "2001:db8::/56" "six" "2001:db8::1"
		subnet.remove | subnet.remove | net1 | "2001:db8::/64"
		pool.add | pool.add | net1 | | "192.0.2.150-192.0.2.158" "back"
		pool.modify | pool.modify | net1 | "front" | "first"
		pool.remove | pool.remove | net1 | "192.0.2.10-192.0.2.100" | "192.0.2.10-192.0.2.19" "192.0.2.51-192.0.2.100"
		exclusion.add | exclusion.add | net1 | | "192.0.2.30/31" "x"
		exclusion.remove | exclusion.remove | net1 | "192.0.2.60-192.0.2.64" "printers" | "192.0.2.60/31" "192.0.2.63-192.0.2.64"
		reservation.add | reservation.add | net1 | | "db"
		reservation.remove | reservation.remove | net1 | "web"
		address.take | lease.take lease.take | net1
		address.release | lease.release lease.release | net1
	`) {
		e := all[row[0]]
		delete(all, row[0])
		t.Run(row[0], func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(ipamtest.PlanForEdits)
			asked := fmt.Sprintf("%T%+v", e, e)
			if made, _ := ipam.NewEdit(row[0]); fmt.Sprintf("%T", made) != fmt.Sprintf("%T", e) {
				t.Errorf("it is %T", made)
			}
			would := tried(r, e)
			last := ipamtest.LastEvent(t, r)
			r.Clock.Time = r.Clock.Time.Add(time.Second)
			r.Store.Next(storetest.Fault{Reruns: 2})
			did, err := r.S.Edit(ipam.WithActor(ctx, "uid 7"), ipam.EditOptions{}, e)
			fine(t, err)
			events := ipamtest.EventsAfter(t, r, last)
			if len(did.Changes) != len(would.Changes) || len(did.Changes) != len(events) {
				t.Fatalf("it would have changed %+v, changed %+v, and told %+v", would.Changes, did.Changes, events)
			}
			var verbs []string
			for i, c := range did.Changes {
				w, ev := would.Changes[i], events[i]
				if c.ID == 0 || w.ID != 0 || c.Verb != w.Verb || c.Subnet != w.Subnet || c.Address != w.Address ||
					string(c.After) != string(w.After) {
					t.Errorf("it would have changed %+v\nand changed %+v", w, c)
				}
				if c.ID != ev.ID || c.Verb != ev.Verb || string(c.After) != string(ev.After) || c.Actor != ev.Actor ||
					!c.Time.Equal(ev.Time) {
					t.Errorf("the event %+v is not in the answer: %+v", ev, c)
				}
				if ev.Actor != "uid 7" || ev.Host != "h1" || ev.Space == "" ||
					ev.Time.Sub(r.Clock.Time).Abs() > time.Millisecond {
					t.Errorf("%+v", ev)
				}
				if ev.Verb == ipam.SpaceCreated {
					continue
				}
				if verbs = append(verbs, ev.Verb.String()); ev.Network != row[2] {
					t.Errorf("%s is of network %q", ev.Verb, ev.Network)
				}
			}
			if got := strings.Join(verbs, " "); got != row[1] {
				t.Fatalf("the events are %s, want %s", got, row[1])
			}
			first := events[slices.IndexFunc(events, func(e ipam.Event) bool { return e.Verb != ipam.SpaceCreated })]
			holds(t, "before", first.Before, strings.Fields(row[3]))
			holds(t, "after", first.After, strings.Fields(row[4]))
			if after := fmt.Sprintf("%T%+v", e, e); after != asked {
				t.Errorf("%s is %s", asked, after)
			}
			r.Reopened()
		})
	}
	if len(all) > 0 {
		t.Errorf("no row has %v", all)
	}
}

// tried makes an edit as a dry run, whose outcome it returns, and on a store that fails it. Neither may change
// anything.
func tried(r *ipamtest.Stage, e ipam.Edit) (would ipam.Outcome) {
	r.T.Helper()
	for _, fault := range []storetest.Fault{{}, {Before: store.ErrNoSpace}, {Lost: errors.New("the disk")},
		{Reruns: 2, Before: store.ErrNoSpace}} {
		unchanged(r, fmt.Sprintf("%+v", fault), func() {
			dry := fault == storetest.Fault{}
			r.Store.Next(fault)
			out, err := r.S.Edit(ctx, ipam.EditOptions{DryRun: dry}, e)
			if dry != (err == nil) {
				r.T.Fatal(out, err)
			}
			if dry {
				would = out
			}
			r.Store.Heal()
		})
	}
	return would
}

// holds looks for parts in a document. Without parts there must be no document.
func holds(t *testing.T, what string, doc json.RawMessage, parts []string) {
	t.Helper()
	if len(parts) == 0 && doc != nil {
		t.Errorf("%s: %s", what, doc)
	}
	for _, part := range parts {
		if !strings.Contains(string(doc), part) || !json.Valid(doc) {
			t.Errorf("%s: %s lacks %s", what, doc, part)
		}
	}
}

// Events of external addresses and reservations name the owner and the slot, as events of leases name the endpoint.
func TestEventsOfAddresses(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool")
	last := ipamtest.LastEvent(t, r)
	r.Run("take net1 rtr 2:ip0=192.0.2.7,ip1=pool\nrelease net1 rtr\nreserve net1 web 192.0.2.9 force\nunreserve " +
		"net1 web")
	var got []string
	for _, e := range ipamtest.EventsAfter(t, r, last) {
		got = append(got, strings.Join([]string{e.Verb.String(), e.Address.String(), e.Name, e.Detail}, " "))
		if e.Subnet.String() != "192.0.2.0/24" || e.Verb == ipam.LeaseReleased && e.Lease == 0 {
			t.Errorf("%+v", e)
		}
	}
	want := []string{"lease.take 192.0.2.7 rtr external 2:ip0", "lease.take 192.0.2.1 rtr external 2:ip1",
		"lease.release 192.0.2.7 rtr ", "lease.release 192.0.2.1 rtr ",
		"reservation.add 192.0.2.9 web static", "reservation.remove 192.0.2.9 web "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The events of a removal have all of the removed subnet, so that it can be made again.
func TestEventOfRemovedSubnet(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan,dhcp
		pool net1 192.0.2.10+3 name=front
		exclude net1 192.0.2.200 note=printer`)
	for _, e := range []ipam.Edit{&ipam.RemoveSubnet{Network: "net1", Subnet: "lan"},
		&ipam.RemoveNetwork{Network: "net1"}} {
		out, err := r.S.Edit(ctx, ipam.EditOptions{DryRun: true}, e)
		fine(t, err)
		text := ""
		for _, c := range out.Changes {
			text += string(c.Before)
		}
		for _, part := range []string{`"lan"`, `192.0.2.0/24`, `192.0.2.1"`, `"dhcp":true`, `192.0.2.10-192.0.2.12`,
			`"front"`, `192.0.2.200`, `"printer"`} {
			if !strings.Contains(text, part) {
				t.Errorf("%T: %s is not told of: %s", e, part, text)
			}
		}
	}
}

// An edit that changes nothing writes no event and no revision.
func TestEditOfNothing(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(ipamtest.PlanForEdits)
	last, revision := ipamtest.LastEvent(t, r), r.Show("net1").Revision
	r.Run(`
		network.set net1 name=net1 tag.site=a
		network.set net1
		subnet.set net1 lan name=lan gw=192.0.2.1 cidr=192.0.2.0/24 dhcp=false
		pool.set net1 front front
		take net1 rtr 0:ip0=192.0.2.12,ip1=pool
		reserve net1 web 192.0.2.11
		release net1 nobody`)
	if got := ipamtest.EventsAfter(t, r, last); len(got) != 0 || r.Show("net1").Revision != revision {
		t.Errorf("%d events, the first %+v", len(got), got[0])
	}
}

// Dry runs do not count towards the number of events that are kept.
func TestDryRunsAreNotCounted(t *testing.T) {
	r := ipamtest.New(t)
	s, err := service.Open(ctx,
		service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now, Retention: ipam.Retention{Count: 10}})
	fine(t, err)
	create := func(name string, dry bool) {
		if _, err := s.Edit(ctx, ipam.EditOptions{DryRun: dry}, &ipam.CreateNetwork{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	create("a", false)
	create("b", false)
	for range 30 {
		create("c", true)
	}
	before, err := s.Events(ctx, ipam.EventFilter{})
	if err != nil || len(before) > 10 {
		t.Fatal(len(before), err)
	}
	fine(t, s.Trim(ctx))
	if after, err := s.Events(ctx, ipam.EventFilter{}); err != nil || len(after) != len(before) {
		t.Errorf("of %d events %d are left, %v", len(before), len(after), err)
	}
}
