package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// inShared tells in which store a network is.
func (m *manor) inShared(ref string) bool {
	m.t.Helper()
	n, err := m.Network(m.t.Context(), ref)
	fine(m.t, err)
	return n.ID.Bears(clusterMark)
}

// Each edit is made in the store of what it names, and nowhere else.
func TestJoinedEdits(t *testing.T) {
	_, a := furnished(t)
	for _, row := range []struct {
		name   string
		shared bool
		cidr   string
	}{{"own", false, "10.1.0"}, {"lab", false, "10.5.0"}, {"lan", true, "10.77.0"}, {"dmz", true, "10.6.0"}} {
		events := func() (own, both int) {
			mine, err := a.local.Events(t.Context(), ipam.EventFilter{})
			fine(t, err)
			all, err := a.Events(t.Context(), ipam.EventFilter{})
			fine(t, err)
			return len(mine), len(all)
		}
		n, err := a.Network(t.Context(), row.name)
		fine(t, err)
		edits := ipamtest.Edits(t, strings.NewReplacer("SHORT", n.ID.Short(), "ID", n.ID.String(), "NET", row.name,
			"CIDR", row.cidr).Replace(`
			network.set SHORT tag.site=a
			subnet ID 192.168.7.0/24
			subnet.set NET 192.168.7.0/24 name=more
			pool NET - subnet=more
			pool.set NET 192.168.7.0/24 new
			pool.rm NET new
			subnet.rm NET more
			exclude NET CIDR.200-CIDR.210
			include NET CIDR.200-CIDR.210
			reserve NET mail
			unreserve NET mail
			bind NET ftp
			take NET gate pool
			release NET gate
			network.set NET name=NET2
			network.set NET2 name=NET`))
		for _, e := range edits {
			ownBefore, before := events()
			out := a.must(e)
			own, both := events()
			if len(out.Changes) == 0 || both <= before {
				t.Errorf("%s: %s changed nothing", row.name, e.Op())
			}
			if (own == ownBefore) != row.shared {
				t.Errorf("%s: %s was made in the wrong store", row.name, e.Op())
			}
		}
		before := n.Revision
		if now, err := a.Revision(t.Context(), row.name); err != nil || now <= before {
			t.Errorf("%s: revision %d after %d, %v", row.name, now, before, err)
		}
		_, err = a.Edit(t.Context(), ipam.EditOptions{IfMatch: before}, edits[7])
		refusedBy(t, row.name+": an edit of an old revision", err, ipam.ErrChanged)
	}
	a.must(&ipam.DrainHost{Name: "a"})
	_, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: "lan"})
	refusedBy(t, "a pool for a host that is draining", err, ipam.ErrHost)
	_, err = a.RequestPool(t.Context(), ipam.PoolRequest{Space: "local"})
	fine(t, err)
	a.must(&ipam.DrainHost{Name: "a", Undo: true})
	if _, err := a.Edit(t.Context(), ipam.EditOptions{}); !errors.Is(err, ipam.ErrInvalid) {
		t.Errorf("no edits: %v", err)
	}
}

// editsOfAllKinds has one of each operation; each says what it is about.
func TestEditsHavePlaces(t *testing.T) {
	a := newParish(t).host("a")
	for op := range ipamtest.EditsOfAllKinds(t) {
		e, _ := ipam.NewEdit(op)
		if _, err := a.Edit(t.Context(), ipam.EditOptions{}, e); err == nil {
			t.Errorf("%s of nothing succeeded", op)
		}
	}
}

// One call changes one store: what is of both is refused as a whole, with what to do.
func TestJoinedEditsOfBoth(t *testing.T) {
	_, a := furnished(t)
	take := func(network, owner string) ipam.Edit {
		return &ipam.TakeAddress{Network: network, Owner: owner}
	}
	for what, row := range map[string]struct {
		edits []ipam.Edit
		kind  error
		index int
		says  string
	}{
		"of both stores": {[]ipam.Edit{take("own", "x"), take("lab", "x"), take("lan", "x")}, ipam.ErrInvalid, 2,
			"number 1 is one of this host's own store, and number 3 one of the cluster's"},
		"in the other order": {[]ipam.Edit{take("lan", "x"), take("own", "x")}, ipam.ErrInvalid, 1,
			"number 2 is one of this host's own store, and number 1"},
		"of hosts, too": {[]ipam.Edit{&ipam.DrainHost{Name: "a"}, take("own", "x")}, ipam.ErrInvalid, 1,
			"make two"},
		"a network in each": {[]ipam.Edit{planned("x", "", "10.2.0.0/24"), planned("y", "global", "10.78.0.0/24")},
			ipam.ErrInvalid, 1, "make two"},
		"an owner in both": {[]ipam.Edit{take("own", "x"), &ipam.ReleaseOwner{Owner: "router"}}, ipam.ErrInvalid, 1,
			"a request of its own"},
		"an owner elsewhere": {[]ipam.Edit{take("own", "x"), &ipam.ReleaseOwner{Owner: "owner-of-lan"}},
			ipam.ErrInvalid, 1, "make two"},
		"one that is nowhere": {[]ipam.Edit{take("own", "x"), take("nowhere", "x")}, ipam.ErrNotFound, 1,
			"there is no network"},
	} {
		_, err := a.Edit(t.Context(), ipam.EditOptions{}, row.edits...)
		refusedBy(t, what, err, row.kind, row.says)
		var one *ipam.EditError
		if !errors.As(err, &one) || one.Index != row.index {
			t.Errorf("%s: %#v is not of number %d", what, err, row.index)
		}
	}
	_, err := a.Edit(t.Context(), ipam.EditOptions{},
		&ipam.BindReservations{Wanted: []ipam.AddReservation{{Network: "own", Owner: "x"},
			{Network: "lan", Owner: "x"}}})
	refusedBy(t, "reservations of both", err, ipam.ErrInvalid, "make two")
	for _, l := range listed(t, a.Taken(t.Context(), ipam.AddressFilter{Owner: "x"})) {
		t.Errorf("x has %s", l.Address)
	}
	// A call may name what it makes.
	a.must(planned("new", "", "10.2.0.0/24"), take("new", "x"), &ipam.ModifyNetwork{Network: "new", Name: new("newer")},
		take("newer", "y"), take("own", "z"),
		&ipam.ReleaseOwner{Owner: "owner-of-own"})
	a.must(planned("fresh", "global", "10.78.0.0/24"), take("fresh", "x"),
		&ipam.RemovePool{Network: "fresh", Pool: "10.78.0.0/25"})
	if a.inShared("newer") || !a.inShared("fresh") {
		t.Error("new networks are in the wrong stores")
	}
}

// A name is one network's, of either store.
func TestJoinedNames(t *testing.T) {
	_, a := furnished(t)
	for what, e := range map[string]ipam.Edit{
		"of a network of the cluster's":       planned("lan", "", "10.2.0.0/24"),
		"of one of the host's own":            planned("own", ipam.GlobalSpace, "10.78.0.0/24"),
		"of one in the same store":            planned("lab", "", "10.2.0.0/24"),
		"another one, of one of the cluster":  &ipam.ModifyNetwork{Network: "own", Name: new("lan")},
		"another one, of one of the host's":   &ipam.ModifyNetwork{Network: "lan", Name: new("own")},
		"another one, of one of the same one": &ipam.ModifyNetwork{Network: "lan", Name: new("dmz")},
	} {
		_, err := a.Edit(t.Context(), ipam.EditOptions{}, e)
		refusedBy(t, what, err, ipam.ErrInUse, "there is a network", "choose another name")
	}
	a.must(&ipam.ModifyNetwork{Network: "lan", Name: new("lan")},
		&ipam.ModifyNetwork{Network: "lan", Name: new("lan2")})
	for _, name := range []string{"own", "dmz"} { // there and back
		a.must(&ipam.ModifyNetwork{Network: name, Name: new("for-a-while")},
			&ipam.TakeAddress{Network: "for-a-while", Owner: "x"},
			&ipam.ModifyNetwork{Network: "for-a-while", Name: new(name)})
	}

	// In a space in which the host's own store has networks a new one is made there, as long as it has.
	a.must(planned("lab2", "lab", "10.5.1.0/24"))
	if a.inShared("lab2") {
		t.Error("the space lab was left")
	}
	_, b := furnished(t)
	for _, l := range listed(t, b.Leases(t.Context(), ipam.LeaseFilter{Space: "lab"})) {
		if l.Pool != (ipam.ID{}) {
			fine(t, b.ReleasePool(t.Context(), l.Pool))
		}
	}
	b.must(&ipam.ReleaseOwner{Owner: "of-lab"})
	b.must(&ipam.ReleaseAddress{Network: "lab", Owner: "router"},
		&ipam.ReleaseAddress{Network: "lab", Owner: "printer"}, &ipam.RemoveNetwork{Network: "lab", Force: true})
	b.must(planned("lab2", "lab", "10.5.1.0/24"))
	if !b.inShared("lab2") {
		t.Error("the space lab has stayed the host's own")
	}
}

// What an owner has is released in both stores, or in the one that it has something in.
func TestJoinedOwners(t *testing.T) {
	_, a := furnished(t)
	has := func(owner string) (all []string) {
		for _, r := range listed(t, a.Reservations(t.Context(), ipam.AddressFilter{Owner: owner})) {
			all = append(all, r.Network)
		}
		for _, r := range listed(t, a.Taken(t.Context(), ipam.AddressFilter{Owner: owner})) {
			all = append(all, r.Network)
		}
		return all
	}
	out, err := a.Edit(t.Context(), ipam.EditOptions{DryRun: true}, &ipam.ReleaseOwner{Owner: "web"})
	fine(t, err)
	if len(out.Results) != 1 || len(out.Results[0].Addresses) != 4 || len(out.Changes) != 4 {
		t.Errorf("a dry run: %+v", out)
	}
	equal(t, "after a dry run web has", has("web"), "dmz", "lan", "lab", "own")
	opt := ipam.EditOptions{Key: "once", Request: [32]byte{1}}
	for replay := range 2 {
		out, err = a.Edit(t.Context(), opt, &ipam.ReleaseOwner{Owner: "web"}, &ipam.ReleaseOwner{Owner: "router"})
		fine(t, err)
		if len(out.Results) != 2 || len(out.Results[0].Addresses) != 4 || len(out.Results[1].Addresses) != 4 ||
			out.Replayed != (replay == 1) {
			t.Errorf("released were %+v", out)
		}
	}
	equal(t, "web has", has("web"))
	a.must(&ipam.ReleaseOwner{Owner: "roamer"})
	equal(t, "roamer has", has("roamer"))
	for _, network := range []string{"own", "lan", "near", "far"} {
		owner := "of-" + network
		if out := a.must(&ipam.ReleaseOwner{Owner: owner}); len(out.Changes) != 1 {
			t.Errorf("%s released %d", owner, len(out.Changes))
		}
		equal(t, owner+" has", has(owner))
	}
	a.must(&ipam.ReleaseOwner{Owner: "nobody"})

	// Out of reach nothing is released of one who has something there, and all of one who has not.
	a.handle.Cut(errNoEtcd)
	_, err = a.Edit(t.Context(), ipam.EditOptions{}, &ipam.ReleaseOwner{Owner: "db"})
	refusedBy(t, "out of reach", err, ipam.ErrAway)
	equal(t, "db has", has("db"), "dmz", "lan", "lab", "own")
	a.must(&ipam.ReleaseOwner{Owner: "owner-of-own"})
	equal(t, "owner-of-own has", has("owner-of-own"))
}

// A key is good in whichever store it was used, also when what was named is gone or is called otherwise by then.
func TestJoinedKeys(t *testing.T) {
	_, a := furnished(t)
	a.must(planned("brief", "", "10.2.0.0/24"))
	for i, edit := range []ipam.Edit{
		&ipam.RemoveNetwork{Network: "brief"},
		&ipam.ModifyNetwork{Network: "lan", Name: new("lan2")},
		planned("brief", ipam.GlobalSpace, "10.3.0.0/24"),
	} {
		opt := ipam.EditOptions{Key: fmt.Sprint("key", i), Request: [32]byte{byte(i)}}
		first, err := a.Edit(t.Context(), opt, edit)
		fine(t, err)
		again, err := a.Edit(t.Context(), opt, edit)
		if err != nil || !again.Replayed || first.Replayed || again.Results[0].Network != first.Results[0].Network {
			t.Errorf("%s again: %+v, %v", edit.Op(), again, err)
		}
		opt.Request[5] = 1
		_, err = a.Edit(t.Context(), opt, &ipam.TakeAddress{Network: "own", Owner: "x"})
		refusedBy(t, "another request with its key", err, ipam.ErrKeyReused)
	}
}

// A plan is imported into the store that it is about.
func TestJoinedImport(t *testing.T) {
	_, a := furnished(t)
	imported := func(networks ...ipam.PlannedNetwork) error {
		_, err := a.Import(t.Context(), ipam.Plan{Networks: networks}, ipam.ImportOptions{})
		return err
	}
	net := func(name, space, cidr string) ipam.PlannedNetwork {
		n := ipam.PlannedNetwork{Name: name, Space: space, Line: 7}
		if cidr != "" {
			n.Subnets = []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix(cidr)}}
		}
		return n
	}
	fine(t, imported())
	fine(t, imported(net("new", "", "10.2.0.0/24"), net("own", "", "10.2.1.0/24"), net("lab", "", "10.5.2.0/24"),
		net("lab3", "lab", "10.5.3.0/24")))
	fine(t, imported(net("fresh", "global", "10.78.0.0/24"), net("lan", "", "10.77.1.0/24"),
		net("dmz", "dmz", "10.6.1.0/24"),
		ipam.PlannedNetwork{Space: "global", Exclusions: []ipam.PlannedExclusion{{Range: ipamtest.MustRange("10.77.0.0+4")}}}))
	for name, shared := range map[string]bool{"new": false, "own": false, "lab": false, "lab3": false, "fresh": true,
		"lan": true, "dmz": true} {
		if a.inShared(name) != shared {
			t.Errorf("%s is in the wrong store", name)
		}
	}
	var wrong *ipam.PlanError
	for what, row := range map[string]struct {
		plan []ipam.PlannedNetwork
		kind error
		says string
	}{
		"of both": {[]ipam.PlannedNetwork{net("own", "", ""), net("lan", "", "")}, ipam.ErrInvalid,
			"own store (own) and of the cluster's (lan)"},
		"of both by spaces": {[]ipam.PlannedNetwork{
			{Exclusions: []ipam.PlannedExclusion{{Range: ipamtest.MustRange("10.1.0.9")}}},
			net("x", "dmz", "")}, ipam.ErrInvalid, "those of the space local"},
		"the name of another": {[]ipam.PlannedNetwork{net("own", "global", "")}, ipam.ErrInvalid,
			"line 7: there is a network own in the space local, and a name is one"},
		"and of the other side": {[]ipam.PlannedNetwork{net("lan", "local", "")}, ipam.ErrInvalid,
			"line 7: there is a network lan in the space global"},
	} {
		err := imported(row.plan...)
		refusedBy(t, what, err, row.kind, row.says)
		if isPlan := errors.As(err, &wrong); isPlan != (row.says[:4] == "line") {
			t.Errorf("%s: %#v", what, err)
		}
	}
	// What is exported comes back as it is, one store after the other.
	var parts [2]ipam.Plan
	for _, n := range listed(t, a.Export(t.Context(), "")) {
		side := 0
		if a.inShared(n.Name) {
			side = 1
		}
		parts[side].Networks = append(parts[side].Networks, n)
	}
	for _, part := range parts {
		report, err := a.Import(t.Context(), part, ipam.ImportOptions{DryRun: true})
		if err != nil || report.Added.Sum() != 0 || report.Unchanged.Networks != len(part.Networks) {
			t.Errorf("again: %+v, %v", report, err)
		}
	}
}

// An import that was cut off leaves no network in part in the store that it is of, and goes on when it is made again.
func TestJoinedImportCutOff(t *testing.T) {
	for _, space := range []string{ipam.GlobalSpace, ipam.LocalSpace} {
		_, a := furnished(t)
		var plan ipam.Plan
		for n := range 40 {
			plan.Networks = append(plan.Networks, ipam.PlannedNetwork{Name: fmt.Sprint("many", n), Space: space,
				Subnets: []ipam.PlannedSubnet{{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 90, byte(n),
					0}), 24)}}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := a.Import(ctx, plan, ipam.ImportOptions{Progress: func(int, int) { cancel() }})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("in space %s it was not cut off: %v", space, err)
		}
		there := 0
		networks, err := a.Networks(t.Context(), ipam.NetworkFilter{Space: space})
		fine(t, err)
		for _, n := range networks {
			if strings.HasPrefix(n.Name, "many") {
				there++
				if len(n.Subnets) != 1 {
					t.Errorf("network %s is there in part: %+v", n.Name, n)
				}
			}
		}
		if there == 0 || there == len(plan.Networks) {
			t.Errorf("%d networks are there", there)
		}
		report, err := a.Import(t.Context(), plan, ipam.ImportOptions{})
		if err != nil || report.Unchanged.Networks != there || report.Added.Networks != len(plan.Networks)-there {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

// Events that are noted from elsewhere are in the store of their space.
func TestJoinedNote(t *testing.T) {
	a := newParish(t).host("a")
	for space, own := range map[string]bool{"": true, "local": true, "global": false} {
		before, err := a.local.Events(t.Context(), ipam.EventFilter{})
		fine(t, err)
		fine(t, a.Note(t.Context(), ipam.Event{Verb: ipam.TokenCreated, Name: "ci", Space: space}))
		after, err := a.local.Events(t.Context(), ipam.EventFilter{})
		fine(t, err)
		if (len(after) > len(before)) != own {
			t.Errorf("of the space %q: noted in the wrong store", space)
		}
		all, err := a.Events(t.Context(), ipam.EventFilter{})
		fine(t, err)
		if !slices.ContainsFunc(all,
			func(e ipam.Event) bool { return e.Verb == ipam.TokenCreated && e.Space == space }) {
			t.Errorf("of the space %q: it is not there", space)
		}
	}
}

// A Docker network of both families is two networks of one name, in the host's own store as in the cluster's: an edit
// is made in the one that has what it names besides, and one that says nothing is refused with both.
func TestJoinedDockersName(t *testing.T) {
	subnets := map[string][]netip.Prefix{"shop": {netip.MustParsePrefix("10.7.0.0/24"),
		netip.MustParsePrefix("2001:db8:7::/64")}, "wide": {netip.MustParsePrefix("10.77.0.0/24"),
		netip.MustParsePrefix("2001:db8:77::/64")}}
	p := newParish(t)
	p.known.DockerNetwork = func(_ string, cidr netip.Prefix) string {
		for name, all := range subnets {
			if slices.Contains(all, cidr) {
				return name
			}
		}
		return ""
	}
	a := p.host("a")
	for name, space := range map[string]string{"shop": ipam.LocalSpace, "wide": ipam.GlobalSpace} {
		for _, cidr := range subnets[name] {
			_, err := a.RequestPool(t.Context(), ipam.PoolRequest{Space: space, CIDR: cidr})
			fine(t, err)
		}
		for _, cidr := range subnets[name] {
			addr := cidr.Addr().Next().Next()
			out := a.must(&ipam.TakeAddress{Network: name, Owner: "gate",
				Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: addr}}}})
			n, err := a.Network(t.Context(), out.Results[0].Network.String())
			fine(t, err)
			if n.Name != name || n.Subnets[0].CIDR != cidr || n.ID.Bears(clusterMark) != (name == "wide") {
				t.Errorf("%s was taken in %s of %s", addr, n.Subnets[0].CIDR, n.Name)
			}
			a.must(&ipam.ReleaseAddress{Network: name, Owner: "gate", Address: addr})
		}
		_, err := a.Edit(t.Context(), ipam.EditOptions{}, &ipam.TakeAddress{Network: name, Owner: "gate"})
		refusedBy(t, "an address of either", err, ipam.ErrInvalid, "what Docker calls "+name+" is on 2 networks",
			subnets[name][0].String(), subnets[name][1].String(), "by its id")
		_, err = a.Network(t.Context(), name)
		refusedBy(t, "one network", err, ipam.ErrInvalid, "what Docker calls "+name+" is on 2 networks")
	}
}
