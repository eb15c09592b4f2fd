package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
)

// Lists of both stores come in one order, and what is asked for by name or id is found in either.
func TestJoinedLists(t *testing.T) {
	_, a := furnished(t)
	ctx := t.Context()
	spaces, err := a.Spaces(ctx)
	fine(t, err)
	equal(t, "spaces", column(spaces,
		func(s ipam.SpaceInfo) string { return s.Name + " " + s.Store + " " + fmt.Sprint(s.Subnets, s.Leases) }),
		"dmz cluster 1 6", "global cluster 1 6", "lab host 1 6", "local host 1 6")
	totals, err := a.Totals(ctx)
	fine(t, err)
	if want := (ipam.Totals{Spaces: 4, Networks: 6, Subnets: 4, Leases: 24, Reserved: 12, Docker: 4}); totals != want {
		t.Errorf("totals %+v, want %+v", totals, want)
	}
	networks, err := a.Networks(ctx, ipam.NetworkFilter{})
	fine(t, err)
	equal(t, "networks", column(networks, func(n ipam.NetworkInfo) string { return n.Name }), "dmz", "far", "lab",
		"lan", "near", "own")
	for space, names := range map[string][]string{"local": {"far", "own"}, "global": {"lan", "near"}, "lab": {"lab"},
		"dmz": {"dmz"}} {
		networks, err := a.Networks(ctx, ipam.NetworkFilter{Space: space})
		fine(t, err)
		equal(t, "networks of "+space, column(networks, func(n ipam.NetworkInfo) string { return n.Name }), names...)
	}
	subnets, err := a.Subnets(ctx, "")
	fine(t, err)
	equal(t, "subnets", column(subnets, func(s ipam.SubnetInfo) string { return s.Space + " " + s.CIDR.String() }),
		"dmz 10.6.0.0/24", "global 10.77.0.0/24", "lab 10.5.0.0/24", "local 10.1.0.0/24")
	attachments, err := a.Attachments(ctx)
	fine(t, err)
	equal(t, "attachments", column(attachments,
		func(at ipam.AttachmentInfo) string { return at.Network + " on " + at.Host }),
		"dmz on a", "lan on a", "lab on a", "own on a")
	who, err := a.Who(ctx, ipam.WhoFilter{Name: "router"})
	fine(t, err)
	equal(t, "who", column(who, func(w ipam.Tenure) string { return w.Space }), "lab", "local", "global", "dmz")
	if !slices.IsSortedFunc(who, func(a, b ipam.Tenure) int { return a.From.Compare(b.From) }) {
		t.Error("the tenures are not in order")
	}
	_, err = a.Who(ctx, ipam.WhoFilter{})
	refusedBy(t, "who of nobody", err, ipam.ErrInvalid)
	hosts, err := a.Hosts(ctx)
	fine(t, err)
	equal(t, "hosts", column(hosts, func(h ipam.HostInfo) string { return h.Name }), "a")
	exported := listed(t, a.Export(ctx, ""))
	equal(t, "export", column(exported, func(n ipam.PlannedNetwork) string { return n.Name }), "dmz", "far", "lab",
		"lan", "near", "own")
	problems, err := a.Check(ctx)
	fine(t, err)
	equal(t, "check", problems)
}

// What is of one network or subnet is the same as in the store that has it.
func TestJoinedByName(t *testing.T) {
	_, a := furnished(t)
	ctx := t.Context()
	for _, name := range []string{"lab", "own", "lan", "dmz"} {
		n, err := a.Network(ctx, name)
		fine(t, err)
		if n.Name != name || n.ID.Bears(clusterMark) != (name == "lan" || name == "dmz") {
			t.Errorf("%s is %s %s", name, n.Name, n.ID)
		}
		for _, ref := range []string{n.ID.String(), n.ID.Short()} {
			if again, err := a.Network(ctx, ref); err != nil || again.ID != n.ID {
				t.Errorf("%s is %v %v", ref, again.Name, err)
			}
		}
		if revision, err := a.Revision(ctx, name); err != nil || revision != n.Revision {
			t.Errorf("%s: revision %d, want %d; %v", name, revision, n.Revision, err)
		}
		id := n.Subnets[0].ID
		sub, revision, err := a.Subnet(ctx, id)
		if err != nil || sub.Network != name || revision != n.Revision {
			t.Errorf("%s: subnet of %s, revision %d, %v", name, sub.Network, revision, err)
		}
		if of, err := a.NetworkOf(id); err != nil || of != n.ID {
			t.Errorf("%s: the network of its subnet is %s, %v", name, of, err)
		}
		if free, err := a.Available(ctx, id, 3); err != nil || len(free) != 3 || !n.CIDR.Contains(free[0]) {
			t.Errorf("%s: free are %v, %v", name, free, err)
		}
		if env, err := a.Environment(ctx, name, "router"); err != nil ||
			!slices.Contains(env, "INSTANCE_NIC0_NETWORK_NAME="+name) {
			t.Errorf("%s: %v, %v", name, env, err)
		}
		equal(t, "export of "+name,
			column(listed(t, a.Export(ctx, name)), func(n ipam.PlannedNetwork) string { return n.Name }), name)
		f := ipam.AddressFilter{Network: name}
		equal(t, "reservations of "+name,
			column(listed(t, a.Reservations(ctx, f)), func(r ipam.ReservationInfo) string { return r.Owner }),
			"web", "db", "owner-of-"+name)
		equal(t, "taken of "+name,
			column(listed(t, a.Taken(ctx, f)), func(r ipam.TakenAddress) string { return r.Owner }), "router",
			"printer", "of-"+name)
	}
	for what, err := range map[string]error{
		"network":      second(a.Network(ctx, "nowhere")),
		"revision":     second(a.Revision(ctx, "nowhere")),
		"environment":  second(a.Environment(ctx, "nowhere", "web")),
		"network of":   second(a.NetworkOf(ipam.NewID())),
		"available":    second(a.Available(ctx, ipam.NewID(), 1)),
		"export":       lastError(a.Export(ctx, "nowhere")),
		"reservations": lastError(a.Reservations(ctx, ipam.AddressFilter{Network: "nowhere"})),
		"taken":        lastError(a.Taken(ctx, ipam.AddressFilter{Network: "nowhere"})),
	} {
		refusedBy(t, what, err, ipam.ErrNotFound, "there is no")
	}
}

func second[T any](_ T, err error) error { return err }

func lastError[T any](items func(func(T, error) bool)) (err error) {
	for _, err = range items {
	}
	return err
}

// However long the pages are, all of a list comes once, and in its order. Each page begins behind the last item of the
// one before.
func TestJoinedPages(t *testing.T) {
	p, a := furnished(t)
	ctx := t.Context()
	// A space that both stores have, until it is copied, with the same subnet; and two networks of one name.
	_, err := a.local.Edit(ctx, ipam.EditOptions{}, planned("twin", "both", "10.9.0.0/29"))
	fine(t, err)
	b := p.host("b")
	b.must(planned("twin", "both", "10.9.0.0/29"))
	for _, s := range []interface {
		Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
	}{a.local, b} {
		_, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.TakeAddress{Network: "twin", Owner: "x"},
			&ipam.AddReservation{Network: "twin", Owner: "y"})
		fine(t, err)
	}
	comesTo(t, "host a sees what b has made", func() bool {
		totals, err := a.Totals(ctx)
		return err == nil && totals.Networks == 8
	})
	networks := paged(t, func(after *ipam.NetworkInfo, limit int) ([]ipam.NetworkInfo, error) {
		f := ipam.NetworkFilter{Limit: limit}
		if after != nil {
			f.After = after.Name
		}
		return a.Networks(ctx, f)
	}, func(n ipam.NetworkInfo) string { return n.Name + " " + n.ID.String() })
	if len(networks) != 8 {
		t.Errorf("there are %d networks", len(networks))
	}
	reservations := paged(t, func(after *ipam.ReservationInfo, limit int) ([]ipam.ReservationInfo, error) {
		f := ipam.AddressFilter{Limit: limit}
		switch {
		case after != nil && after.Dynamic:
			f.AfterNetwork, f.AfterOwner = after.Network, after.Owner
		case after != nil:
			f.AfterSpace, f.After = after.Space, after.Address
		}
		return listed(t, a.Reservations(ctx, f)), nil
	}, func(r ipam.ReservationInfo) string {
		return fmt.Sprint(r.Space, r.Network, r.Address, r.Owner, r.Since)
	})
	if len(reservations) != 12+4+2 {
		t.Errorf("there are %d reservations", len(reservations))
	}
	taken := paged(t, func(after *ipam.TakenAddress, limit int) ([]ipam.TakenAddress, error) {
		f := ipam.AddressFilter{Limit: limit}
		if after != nil {
			f.AfterSpace, f.After = after.Space, after.Address
		}
		return listed(t, a.Taken(ctx, f)), nil
	}, func(r ipam.TakenAddress) string { return fmt.Sprint(r.Space, r.Address, r.Since) })
	if len(taken) != 12+2 {
		t.Errorf("there are %d taken addresses", len(taken))
	}
	events := paged(t, func(after *ipam.Event, limit int) ([]ipam.Event, error) {
		f := ipam.EventFilter{First: limit}
		if after != nil {
			f.After = after.ID
		}
		return a.Events(ctx, f)
	}, func(e ipam.Event) string { return fmt.Sprint(e.ID, e.Space, e.Verb, e.Address) })
	for n := range len(events) {
		last, err := a.Events(ctx, ipam.EventFilter{Last: n})
		fine(t, err)
		if n > 0 && (len(last) != n || last[0].ID != events[len(events)-n].ID) {
			t.Errorf("the last %d events are %d", n, len(last))
		}
	}
	since, err := a.Events(ctx, ipam.EventFilter{Since: events[7].Time})
	fine(t, err)
	if len(since) != len(events)-7 {
		t.Errorf("since the eighth event there are %d, want %d", len(since), len(events)-7)
	}

	// Leases have no limit of their own: the reader stops.
	leases := listed(t, a.Leases(ctx, ipam.LeaseFilter{}))
	if len(leases) != 24+4 {
		t.Errorf("there are %d leases", len(leases))
	}
	for i, l := range leases {
		if i+1 < len(leases) && leases[i+1].Address == l.Address && leases[i+1].Space == l.Space {
			continue // of one cursor
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

// paged reads a list in pages of all lengths, and returns the whole of it.
func paged[T any](t *testing.T, page func(after *T, limit int) ([]T, error), key func(T) string) []T {
	t.Helper()
	whole, err := page(nil, 0)
	fine(t, err)
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
			t.Errorf("in pages of %d: %d items, want %d:\n%q\n%q", limit, len(got), len(whole), column(got, key),
				column(whole, key))
		}
	}
	return whole
}

// A name that both stores have means neither, unless a space or an id says which.
func TestJoinedAmbiguous(t *testing.T) {
	p := newParish(t)
	a, b := p.host("a"), p.host("b")
	a.must(planned("twin", "", "10.1.0.0/24"))
	b.must(planned("twin", ipam.GlobalSpace, "10.77.0.0/24"))
	ctx := t.Context()
	comesTo(t, "host a sees what b has made", func() bool {
		all, err := a.Networks(ctx, ipam.NetworkFilter{})
		return err == nil && len(all) == 2
	})
	networks, err := a.Networks(ctx, ipam.NetworkFilter{})
	fine(t, err)
	own, theirs := networks[0].ID, networks[1].ID
	if own.Bears(clusterMark) || !theirs.Bears(clusterMark) {
		t.Fatal("of one name the host's own comes first")
	}
	says := []string{"two networks twin", own.String(), theirs.String(), "space local", "space global"}
	_, err = a.Network(ctx, "twin")
	refusedBy(t, "the network", err, ipam.ErrInvalid, says...)
	_, err = a.Edit(ctx, ipam.EditOptions{}, &ipam.TakeAddress{Network: "twin", Owner: "x"})
	refusedBy(t, "an edit", err, ipam.ErrInvalid, says...)
	_, err = a.RequestPool(ctx, ipam.PoolRequest{Network: "twin"})
	refusedBy(t, "a pool", err, ipam.ErrInvalid, says...)
	for _, row := range []struct {
		req    ipam.PoolRequest
		shared bool
	}{
		{ipam.PoolRequest{Network: "twin", Space: "local"}, false},
		{ipam.PoolRequest{Network: "twin", Space: "global"}, true},
		{ipam.PoolRequest{Network: own.String()}, false},
		{ipam.PoolRequest{Network: theirs.String()}, true},
	} {
		row.req.CIDR = map[bool]netip.Prefix{false: netip.MustParsePrefix("10.1.0.0/24"),
			true: netip.MustParsePrefix("10.77.0.0/24")}[row.shared]
		grant, err := a.RequestPool(ctx, row.req)
		if err != nil || grant.ID.Bears(clusterMark) != row.shared {
			t.Errorf("%+v: %s, %v", row.req, grant.ID, err)
		}
	}
	// A swarm's network is never in the space of one host.
	grant, err := a.RequestPool(ctx,
		ipam.PoolRequest{Network: "twin", Space: "global", Swarm: true, CIDR: netip.MustParsePrefix("10.77.0.0/24")})
	if err != nil || !grant.ID.Bears(clusterMark) {
		t.Errorf("for a swarm: %s, %v", grant.ID, err)
	}
	a.must(&ipam.ModifyNetwork{Network: own.String(), Name: new("single")})
	if n, err := a.Network(ctx, "twin"); err != nil || n.ID != theirs {
		t.Errorf("after the other one got another name: %v, %v", n.ID, err)
	}
}

// As long as the store of the cluster was not reached since the daemon began, the host's own is shown, and what is not
// in it is said to be out of sight and not to be missing.
func TestJoinedNeverReached(t *testing.T) {
	p := newParish(t)
	b := p.host("b")
	b.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	lan, err := b.Network(t.Context(), "lan")
	fine(t, err)
	a := p.away("a", time.Now)
	ctx := t.Context()
	a.must(planned("own", "", "10.1.0.0/24"))
	pool, err := a.RequestPool(ctx, ipam.PoolRequest{Network: "own"})
	fine(t, err)
	addr, err := a.RequestAddress(ctx, ipam.AddressRequest{Pool: pool.ID})
	fine(t, err)
	a.must(&ipam.TakeAddress{Network: "own", Owner: "router"})

	spaces, err := a.Spaces(ctx)
	fine(t, err)
	equal(t, "spaces", column(spaces, func(s ipam.SpaceInfo) string { return s.Name }), "local")
	networks, err := a.Networks(ctx, ipam.NetworkFilter{})
	fine(t, err)
	equal(t, "networks", column(networks, func(n ipam.NetworkInfo) string { return n.Name }), "own")
	equal(t, "leases", column(listed(t, a.Leases(ctx, ipam.LeaseFilter{})),
		func(l ipam.LeaseInfo) string { return l.Kind.String() }), "gateway", "automatic", "external")
	if totals, err := a.Totals(ctx); err != nil || totals.Networks != 1 || totals.Spaces != 1 {
		t.Errorf("totals %+v, %v", totals, err)
	}
	problems, err := a.Check(ctx)
	if err != nil || len(problems) != 1 {
		t.Errorf("a check says %q, %v", problems, err)
	}

	refused := map[string]error{
		"partial":       a.Partial(),
		"network":       second(a.Network(ctx, "lan")),
		"by id":         second(a.Network(ctx, lan.ID.String())),
		"revision":      second(a.Revision(ctx, "lan")),
		"environment":   second(a.Environment(ctx, "lan", "router")),
		"network of":    second(a.NetworkOf(lan.Subnets[0].ID)),
		"available":     second(a.Available(ctx, lan.Subnets[0].ID, 1)),
		"hosts":         second(a.Hosts(ctx)),
		"export":        lastError(a.Export(ctx, "lan")),
		"whole export":  lastError(a.Export(ctx, "")),
		"reservations":  lastError(a.Reservations(ctx, ipam.AddressFilter{Network: "lan"})),
		"taken":         lastError(a.Taken(ctx, ipam.AddressFilter{Network: "lan"})),
		"pool":          second(a.RequestPool(ctx, ipam.PoolRequest{Network: "lan"})),
		"pool by space": second(a.RequestPool(ctx, ipam.PoolRequest{Space: "global"})),
		"address":       second(a.RequestAddress(ctx, ipam.AddressRequest{Pool: lan.ID})),
		"import": second(a.Import(ctx,
			ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "new", Space: "global"}}}, ipam.ImportOptions{})),
		"note": a.Note(ctx, ipam.Event{Verb: ipam.TokenCreated, Space: "global"}),
		"name": a.NameLeases(ctx,
			[]ipam.LeaseName{{LeaseRef: ipam.LeaseRef{Space: "global", Address: addr.Addr(), ID: 1}, Name: "web"}}),
		"lease":  second(a.ReleaseLease(ctx, ipam.LeaseRef{Space: "global", Address: addr.Addr(), ID: 1})),
		"memory": second(a.ForgetMemory(ctx, ipam.LeaseRef{Space: "global", Address: addr.Addr(), ID: 1})),
	}
	_, _, refused["subnet"] = a.Subnet(ctx, lan.Subnets[0].ID)
	for what, e := range map[string]ipam.Edit{
		"take":    &ipam.TakeAddress{Network: "lan", Owner: "x"},
		"create":  planned("new", ipam.GlobalSpace, "10.78.0.0/24"),
		"drain":   &ipam.DrainHost{Name: "b"},
		"release": &ipam.ReleaseOwner{Owner: "router"},
	} {
		_, refused[what] = a.Edit(ctx, ipam.EditOptions{}, e)
	}
	for what, err := range refused {
		refusedBy(t, what, err, ipam.ErrAway, "out of reach since 20", errNoEtcd.Error())
		if errors.Is(err, ipam.ErrNotFound) {
			t.Errorf("%s is said not to be there: %v", what, err)
		}
	}
	// The host's own goes on, releases of what may be the cluster's too.
	fine(t, a.ReleaseAddress(ctx, lan.ID, addr.Addr()))
	fine(t, a.ReleasePool(ctx, lan.ID))
	fine(t, a.ReleaseAddress(ctx, pool.ID, addr.Addr()))
	fine(t, a.ReleasePool(ctx, pool.ID))

	a.reach()
	if n, err := a.Network(ctx, "lan"); err != nil || n.ID != lan.ID {
		t.Errorf("once it was reached: %v", err)
	}
	a.handle.Cut(errNoEtcd) // what was read of it stays in sight
	if n, err := a.Network(ctx, "lan"); err != nil || n.ID != lan.ID {
		t.Errorf("once it was lost again: %v", err)
	}
	_, err = a.Network(ctx, "nowhere")
	refusedBy(t, "what is in no store", err, ipam.ErrNotFound)
}
