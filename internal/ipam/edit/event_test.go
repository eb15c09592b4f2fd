package edit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/storetest"
)

// Each edit writes what it changed: who, when, where, and what was before and after. The answer has the same.
func TestEditEvents(t *testing.T) {
	tests := map[string]struct {
		verbs         string
		network       string
		before, after []string // of the event of the first verb
	}{
		"network.create": {"network.create subnet.create subnet.gateway", "new", nil, []string{`"name":"new"`}},
		"network.modify": {"network.modify", "core", []string{`"name":"net1"`, `"site":"a"`},
			[]string{`"name":"core"`, `"site":"b"`}},
		"network.remove": {"network.remove", "spare", []string{`"name":"spare"`}, nil},
		"subnet.add":     {"subnet.create subnet.gateway", "spare", nil, []string{`"203.0.113.0/24"`, `"203.0.113.1"`}},
		"subnet.modify": {"subnet.modify subnet.gateway", "net1", []string{`"2001:db8::/64"`, `none`},
			[]string{`"2001:db8::/56"`, `"six"`, `"2001:db8::1"`}},
		"subnet.remove": {"subnet.remove", "net1", []string{`"2001:db8::/64"`}, nil},
		"pool.add":      {"pool.add", "net1", nil, []string{`"192.0.2.150-192.0.2.158"`, `"back"`}},
		"pool.modify":   {"pool.modify", "net1", []string{`"front"`}, []string{`"first"`}},
		"pool.remove": {"pool.remove", "net1", []string{`"192.0.2.10-192.0.2.100"`},
			[]string{`"192.0.2.10-192.0.2.19"`, `"192.0.2.51-192.0.2.100"`}},

		"exclusion.add": {"exclusion.add", "net1", nil, []string{`"192.0.2.30/31"`, `"x"`}},
		"exclusion.remove": {"exclusion.remove", "net1", []string{`"192.0.2.60-192.0.2.64"`, `"printers"`},
			[]string{`"192.0.2.60/31"`, `"192.0.2.63-192.0.2.64"`}},
		"reservation.add":    {"reservation.add", "net1", nil, []string{`"db"`}},
		"reservation.remove": {"reservation.remove", "net1", []string{`"web"`}, nil},
		"address.take":       {"lease.take lease.take", "net1", nil, nil},
		"address.release":    {"lease.release lease.release", "net1", nil, nil},
	}
	for op, e := range ipamtest.EditsOfAllKinds(t) {
		t.Run(op, func(t *testing.T) {
			want := tests[op]
			r := ipamtest.New(t)
			r.Run(ipamtest.PlanForEdits)
			last := ipamtest.LastEvent(t, r)
			r.Clock.Time = r.Clock.Time.Add(1e9)
			r.Store.Next(storetest.Fault{Reruns: 2})
			out, err := r.S.Edit(ipam.WithActor(ctx, "uid 7"), ipam.EditOptions{}, e)
			fine(t, err)
			events := slices.DeleteFunc(ipamtest.EventsAfter(t, r, last),
				func(e ipam.Event) bool { return e.Verb == ipam.SpaceCreated })
			changes := slices.DeleteFunc(out.Changes, func(e ipam.Event) bool { return e.Verb == ipam.SpaceCreated })
			var verbs []string
			for i, ev := range events {
				verbs = append(verbs, ev.Verb.String())
				if ev.Actor != "uid 7" || ev.Host != "h1" || !ev.Time.Equal(r.Clock.Time) &&
					ev.Time.Sub(r.Clock.Time) > 1e6 || ev.Space == "" {
					t.Errorf("%+v", ev)
				}
				if ev.Network != want.network {
					t.Errorf("%s is of network %q", ev.Verb, ev.Network)
				}
				if i >= len(changes) || changes[i].ID != ev.ID || changes[i].Verb != ev.Verb ||
					string(changes[i].After) != string(ev.After) || changes[i].Actor != ev.Actor ||
					!changes[i].Time.Equal(ev.Time) {
					t.Errorf("the event %+v is not in the answer %+v", ev, changes)
				}
			}
			if got := strings.Join(verbs, " "); got != want.verbs {
				t.Fatalf("the events are %s, want %s", got, want.verbs)
			}
			holds(t, "before", events[0].Before, want.before)
			holds(t, "after", events[0].After, want.after)
		})
	}
}

// holds looks for parts in a document; without any there is to be none.
func holds(t *testing.T, what string, doc json.RawMessage, parts []string) {
	t.Helper()
	if parts == nil && doc != nil {
		t.Errorf("%s: %s", what, doc)
	}
	for _, part := range parts {
		if !strings.Contains(string(doc), part) || !json.Valid(doc) {
			t.Errorf("%s: %s lacks %s", what, doc, part)
		}
	}
}

// What a person took or gave back names the owner and its slot, as what an engine took names the endpoint.
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

// What is removed is told of as a whole, so that it can be made again.
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

// An edit that changes nothing is no event, and no revision.
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

// Events that were not kept are not counted: dry runs take nothing from the audit trail.
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
