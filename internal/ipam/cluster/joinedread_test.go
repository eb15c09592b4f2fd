package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// Lists of both stores are merged in one order.
func TestJoinedLists(t *testing.T) {
	p, a := furnished(t)
	ctx := t.Context()
	p.plays("show networks -> dmz far lab lan near own")
	is := func(want string, list any, err error) {
		t.Helper()
		fine(t, err)
		if got := fmt.Sprint(list); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	totals, err := a.Totals(ctx)
	is("{4 6 4 24 12 12 4}", totals, err)
	events := a.EventCounts()
	is("[6 20]", []uint64{events[ipam.NetworkCreated], events[ipam.LeaseTaken]}, nil)
	spaces, err := a.Spaces(ctx)
	is("[dmz cluster 1 6 global cluster 1 6 lab host 1 6 local host 1 6]", column(spaces,
		func(s ipam.SpaceInfo) string { return fmt.Sprint(s.Name, " ", s.Store, " ", s.Subnets, " ", s.Leases) }), err)
	subnets, err := a.Subnets(ctx, "")
	is("[10.6.0.0/24 10.77.0.0/24 10.5.0.0/24 10.1.0.0/24]", column(subnets,
		func(s ipam.SubnetInfo) string { return s.CIDR.String() }), err)
	attachments, err := a.Attachments(ctx)
	is("[dmz on a lan on a lab on a own on a]", column(attachments,
		func(at ipam.AttachmentInfo) string { return at.Network + " on " + at.Host }), err)
	who, err := a.Who(ctx, ipam.WhoFilter{Name: "router"})
	is("[lab local global dmz]", column(who, func(w ipam.Tenure) string { return w.Space }), err)
	hosts, err := a.Hosts(ctx)
	is("[a]", column(hosts, func(h ipam.HostInfo) string { return h.Name }), err)
	is("[dmz far lab lan near own]", column(listed(t, a.Export(ctx, "")),
		func(n ipam.PlannedNetwork) string { return n.Name }), nil)
	for space, want := range map[string]string{"local": "[far own]", "global": "[lan near]", "lab": "[lab]",
		"dmz": "[dmz]"} {
		networks, err := a.Networks(ctx, ipam.NetworkFilter{Space: space})
		is(want, column(networks, func(n ipam.NetworkInfo) string { return n.Name }), err)
	}
	problems, err := a.Check(ctx)
	is("[]", problems, err)
	_, err = a.Who(ctx, ipam.WhoFilter{})
	refusedBy(t, "who of nobody", err, ipam.ErrInvalid)
}

func column[T any](list []T, of func(T) string) (values []string) {
	for _, item := range list {
		values = append(values, of(item))
	}
	return values
}

// asked is a question about a network, by its name or id, or by the id of its subnet.
type asked struct {
	context.Context
	*service.Service
	ref string
	id  ipam.ID
}

// ofNetwork lists the ways to query one network.
var ofNetwork = map[string]func(asked) (any, error){
	"network":     func(a asked) (any, error) { return a.Network(a, a.ref) },
	"revision":    func(a asked) (any, error) { return a.Revision(a, a.ref) },
	"network of":  func(a asked) (any, error) { return a.NetworkOf(a.id) },
	"available":   func(a asked) (any, error) { return a.Available(a, a.id, 3) },
	"environment": func(a asked) (any, error) { return a.Environment(a, a.ref, "router") },
	"free":        func(a asked) (any, error) { return a.Free(a, a.ref, ipam.FreeFilter{}) },
	"next":        func(a asked) (any, error) { return a.NextFree(a, a.ref, ipam.FreeFilter{}) },
	"export":      func(a asked) (any, error) { return collected(a.Export(a, a.ref)) },
	"reservations": func(a asked) (any, error) {
		return collected(a.Reservations(a, ipam.AddressFilter{Network: a.ref}))
	},
	"taken": func(a asked) (any, error) { return collected(a.Taken(a, ipam.AddressFilter{Network: a.ref})) },
	"subnet": func(a asked) (any, error) {
		sub, revision, err := a.Subnet(a, a.id)
		return []any{sub, revision}, err
	},
}

func collected[T any](items iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// A query about one network or subnet gives the same as in the store that has it. If no store has it, the error
// says that it does not exist.
func TestJoinedByName(t *testing.T) {
	_, a := furnished(t)
	text := func(v any, err error) string {
		fine(t, err)
		text, err := json.Marshal(v)
		fine(t, err)
		return string(text)
	}
	for what, get := range ofNetwork {
		for name, store := range map[string]*service.Service{"lab": a.local, "own": a.local, "lan": a.shared,
			"dmz": a.shared} {
			n := a.room.Show(name)
			want := text(get(asked{t.Context(), store, name, n.Subnets[0].ID}))
			for _, ref := range []string{name, n.ID.String(), n.ID.Short()} {
				got := text(get(asked{t.Context(), a.Service.Service, ref, n.Subnets[0].ID}))
				if got != want || len(got) < 3 {
					t.Errorf("%s of %s: %s, want %s", what, ref, got, want)
				}
			}
		}
		_, err := get(asked{t.Context(), a.Service.Service, "nowhere", ipam.NewID()})
		refusedBy(t, what, err, ipam.ErrNotFound, "there is no")
	}
}

// With pages of any length, a list has each item once and in order. Each page begins after the last item of the
// page before.
func TestJoinedPages(t *testing.T) {
	p, a := furnished(t)
	ctx := t.Context()
	// Until it is copied, both stores have one space, with the same subnet, and two networks of one name.
	p.plays(`
		old twin space=both subnet=10.9.0.0/29,pool
		take twin x pool
		reserve twin y
		b: network twin space=both subnet=10.9.0.0/29,pool
		b: take twin x pool
		b: reserve twin y
	`)
	paged(t, 8, func(after *ipam.NetworkInfo, limit int) ([]ipam.NetworkInfo, error) {
		f := ipam.NetworkFilter{Limit: limit}
		if after != nil {
			f.After = after.Name
		}
		return a.Networks(ctx, f)
	}, func(n ipam.NetworkInfo) string { return n.Name + " " + n.ID.String() })
	paged(t, 12+4+2, func(after *ipam.ReservationInfo, limit int) ([]ipam.ReservationInfo, error) {
		f := ipam.AddressFilter{Limit: limit}
		switch {
		case after != nil && after.Dynamic:
			f.AfterNetwork, f.AfterOwner = after.Network, after.Owner
		case after != nil:
			f.AfterSpace, f.After = after.Space, after.Address
		}
		return collected(a.Reservations(ctx, f))
	}, func(r ipam.ReservationInfo) string {
		return fmt.Sprint(r.Space, r.Network, r.Address, r.Owner, r.Since)
	})
	paged(t, 12+2, func(after *ipam.TakenAddress, limit int) ([]ipam.TakenAddress, error) {
		f := ipam.AddressFilter{Limit: limit}
		if after != nil {
			f.AfterSpace, f.After = after.Space, after.Address
		}
		return collected(a.Taken(ctx, f))
	}, func(r ipam.TakenAddress) string { return fmt.Sprint(r.Space, r.Address, r.Since) })
	events := paged(t, 0, func(after *ipam.Event, limit int) ([]ipam.Event, error) {
		f := ipam.EventFilter{First: limit}
		if after != nil {
			f.After = after.ID
		}
		return a.Events(ctx, f)
	}, func(e ipam.Event) string { return fmt.Sprint(e.ID, e.Space, e.Verb, e.Address) })
	for n := 1; n < len(events); n++ {
		last, err := a.Events(ctx, ipam.EventFilter{Last: n})
		fine(t, err)
		if len(last) != n || last[0].ID != events[len(events)-n].ID {
			t.Errorf("the last %d events are %d", n, len(last))
		}
	}
	since, err := a.Events(ctx, ipam.EventFilter{Since: events[7].Time})
	fine(t, err)
	if len(since) != len(events)-7 {
		t.Errorf("since the eighth event there are %d, want %d", len(since), len(events)-7)
	}

	// Leases have no limit: the reader stops.
	leases := listed(t, a.Leases(ctx, ipam.LeaseFilter{}))
	if len(leases) != 24+2 {
		t.Errorf("there are %d leases", len(leases))
	}
	for i, l := range leases {
		if i+1 < len(leases) && leases[i+1].Address == l.Address && leases[i+1].Space == l.Space {
			continue // these share a cursor
		}
		rest := listed(t, a.Leases(ctx, ipam.LeaseFilter{AfterSpace: l.Space, After: l.Address}))
		if len(rest) != len(leases)-i-1 {
			t.Errorf("behind %s of %s there are %d leases, want %d", l.Address, l.Space, len(rest), len(leases)-i-1)
		}
	}
	if one := listed(t, a.Leases(ctx, ipam.LeaseFilter{Subnet: netip.MustParsePrefix("10.77.0.0/24")})); len(one) != 6 {
		t.Errorf("the subnet of lan has %d leases", len(one))
	}
}

// paged reads a list in pages of all lengths, and returns the whole list. If n > 0, the list must have n items.
func paged[T any](t *testing.T, n int, page func(after *T, limit int) ([]T, error), key func(T) string) []T {
	t.Helper()
	whole, err := page(nil, 0)
	fine(t, err)
	if len(whole) == 0 || n > 0 && len(whole) != n {
		t.Errorf("there are %d: %q", len(whole), column(whole, key))
	}
	for limit := 1; limit <= len(whole)+1; limit++ {
		var got []T
		for more := true; more; {
			var after *T
			if len(got) > 0 {
				after = &got[len(got)-1]
			}
			part, err := page(after, limit)
			fine(t, err)
			if len(part) > limit+1 {
				t.Errorf("a page of %d has %d", limit, len(part))
			}
			got, more = append(got, part...), len(part) >= limit
		}
		if !slices.Equal(column(got, key), column(whole, key)) {
			t.Errorf("in pages of %d:\n%q\n%q", limit, column(got, key), column(whole, key))
		}
	}
	return whole
}

// If both stores have a network of one name, the name is ambiguous unless a space or an id decides.
func TestJoinedAmbiguous(t *testing.T) {
	p := newJoinedHosts(t)
	p.plays(`
		network twin subnet=10.1.0.0/24,pool
		b: network twin space=global subnet=10.77.0.0/24,pool
	`)
	a := p.host("a")
	networks, err := a.Networks(t.Context(), ipam.NetworkFilter{})
	fine(t, err)
	own, theirs := networks[0].ID, networks[1].ID
	if own.Bears(clusterMark) || !theirs.Bears(clusterMark) {
		t.Fatal("of one name the host's own comes first")
	}
	says := []string{"two networks twin", own.String(), theirs.String(), "space local", "space global"}
	_, err = a.Network(t.Context(), "twin")
	refusedBy(t, "the network", err, ipam.ErrInvalid, says...)
	words := strings.NewReplacer("SAYS", strings.Join(says, "; "), "OWN", own.String(), "THEIRS", theirs.String())
	p.plays(words.Replace(`
		take twin x pool ! invalid; SAYS
		attach P net=twin space=- ! invalid; SAYS
		own attach P net=twin space=local cidr=10.1.0.0/24
		shared attach P net=twin space=global cidr=10.77.0.0/24
		own attach P net=OWN space=- cidr=10.1.0.0/24
		shared attach P net=THEIRS space=- cidr=10.77.0.0/24
		# a swarm's network is never in the space of one host
		shared attach P net=twin space=global swarm cidr=10.77.0.0/24
		own network.set OWN name=single
		shared network.set twin tag.now=one
	`))
}

// While the cluster's store was not reached since the daemon's start, the host's own records are shown. What is
// not among them is reported as out of reach, not as missing.
func TestJoinedNeverReached(t *testing.T) {
	p := newJoinedHosts(t)
	p.plays("b: network lan space=global subnet=10.77.0.0/24,pool")
	lan := p.host("b").room.Show("lan")
	a := p.away("a", time.Now)
	ctx := t.Context()
	p.plays(`
		network own subnet=10.1.0.0/24,gw=10.1.0.1,pool
		attach own net=own space=-
		ask own -> $IP
		take own router pool
		show networks -> own
		lease $IP -> automatic -
	`)
	addr := a.room.Addr(p.words["$IP"])
	if all := listed(t, a.Leases(ctx, ipam.LeaseFilter{})); len(all) != 3 {
		t.Errorf("there are %d leases", len(all))
	}
	if totals, err := a.Totals(ctx); err != nil || totals.Networks != 1 || totals.Spaces != 1 {
		t.Errorf("totals %+v, %v", totals, err)
	}
	if problems, err := a.Check(ctx); err != nil || len(problems) != 1 {
		t.Errorf("a check says %q, %v", problems, err)
	}
	if found := listed(t, a.Find(ctx, ipam.FindFilter{Word: "own"})); len(found) == 0 {
		t.Error("what is its own is not found")
	}
	ref := ipam.LeaseRef{Space: "global", Address: addr, ID: 1}
	refused := map[string]error{
		"partial":      a.Partial(),
		"by id":        second(a.Network(ctx, lan.ID.String())),
		"hosts":        second(a.Hosts(ctx)),
		"whole export": lastError(a.Export(ctx, "")),
		"address":      second(a.RequestAddress(ctx, ipam.AddressRequest{Pool: lan.ID})),
		"import": second(a.Import(ctx,
			ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "new", Space: "global"}}}, ipam.ImportOptions{})),
		"note":   a.Note(ctx, ipam.Event{Verb: ipam.TokenCreated, Space: "global"}),
		"name":   a.NameLeases(ctx, []ipam.LeaseName{{LeaseRef: ref, Name: "web"}}),
		"lease":  second(a.ReleaseLease(ctx, ref)),
		"memory": second(a.ForgetMemory(ctx, ref)),
	}
	for what, get := range ofNetwork {
		_, refused[what] = get(asked{ctx, a.Service.Service, "lan", lan.Subnets[0].ID})
	}
	for what, err := range refused {
		refusedBy(t, what, err, ipam.ErrAway, "out of reach since 20", errNoEtcd.Error())
		if errors.Is(err, ipam.ErrNotFound) {
			t.Errorf("%s is said not to be there: %v", what, err)
		}
	}
	// The host's own store keeps working, and so do releases of what may be the cluster's.
	a.room.Pools["lan"] = lan.ID
	p.plays(strings.ReplaceAll(`
		attach P net=lan space=- ! AWAY
		attach P space=global ! AWAY
		take lan x pool ! AWAY
		network new space=global ! AWAY
		drain b ! AWAY
		end router ! AWAY
		own network made subnet=10.3.0.0/24,pool + take made x pool
		back lan $IP
		detach lan
		own back own $IP
		own detach own
		reach
	`, "AWAY", "away; out of reach since 20; "+errNoEtcd.Error()))
	if n := a.room.Show("lan"); n.ID != lan.ID {
		t.Errorf("once it was reached: %v", n.ID)
	}
	p.plays("cut") // records that were read stay visible
	if n := a.room.Show("lan"); n.ID != lan.ID {
		t.Errorf("once it was lost again: %v", n.ID)
	}
	_, err := a.Network(ctx, "nowhere")
	refusedBy(t, "what is in no store", err, ipam.ErrNotFound)
}
