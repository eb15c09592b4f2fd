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

// Each edit is made only in the store of what it names.
func TestJoinedEdits(t *testing.T) {
	p, a := furnished(t)
	for row := range ipamtest.Rows(3, `
		own | own    | 10.1.0
		lab | own    | 10.5.0
		lan | shared | 10.77.0
		dmz | shared | 10.6.0
	`) {
		n := a.room.Show(row[0])
		p.plays(strings.NewReplacer("SHORT", n.ID.Short(), "ID", n.ID.String(), "NET", row[0], "STORE", row[1],
			"CIDR", row[2]).Replace(`
			STORE network.set SHORT tag.site=a
			STORE subnet ID 192.168.7.0/24
			STORE subnet.set NET 192.168.7.0/24 name=more
			STORE pool NET - subnet=more
			STORE pool.set NET 192.168.7.0/24 new
			STORE pool.rm NET new
			STORE subnet.rm NET more
			STORE exclude NET CIDR.200-CIDR.210
			STORE include NET CIDR.200-CIDR.210
			STORE reserve NET mail
			STORE unreserve NET mail
			STORE bind NET ftp
			STORE take NET gate pool
			STORE release NET gate
			STORE network.set NET name=NET2
			STORE network.set NET2 name=NET
		`))
		if now, err := a.Revision(t.Context(), row[0]); err != nil || now <= n.Revision {
			t.Errorf("%s: revision %d after %d, %v", row[0], now, n.Revision, err)
		}
		_, err := a.Edit(t.Context(), ipam.EditOptions{IfMatch: n.Revision},
			&ipam.TakeAddress{Network: row[0], Owner: "x"})
		refusedBy(t, row[0]+": an edit of an old revision", err, ipam.ErrChanged)
	}
	if _, err := a.Edit(t.Context(), ipam.EditOptions{}); !errors.Is(err, ipam.ErrInvalid) {
		t.Errorf("no edits: %v", err)
	}
	for op := range ipamtest.EditsOfAllKinds(t) { // each edit names its subject
		e, _ := ipam.NewEdit(op)
		if _, err := a.Edit(t.Context(), ipam.EditOptions{}, e); err == nil {
			t.Errorf("%s of nothing succeeded", op)
		}
	}
}

// One call changes one store. A call about both stores is refused as a whole, with advice.
func TestJoinedEditsOfBoth(t *testing.T) {
	p, _ := furnished(t)
	p.plays(`
		take own x pool + take lab x pool + take lan x pool ! invalid; #3; change 1 is for this host's own store, and change 3
		take lan x pool + take own x pool ! invalid; #2; change 2 is for this host's own store, and change 1
		network x subnet=10.2.0.0/24 + network y space=global subnet=10.78.0.0/24 ! invalid; #2; make two
		take own x pool + end router ! invalid; #2; its own request
		take own x pool + end owner-of-lan ! invalid; #2; make two
		take own x pool + take nowhere x pool ! notfound; #2; there is no network
		bind own x= x@lan= ! invalid; make two
		owns x ->
		# a call may name what it makes
		own network new subnet=10.2.0.0/24,pool + take new x pool + network.set new name=newer +
			take newer y pool + end owner-of-own
		shared network fresh space=global subnet=10.78.0.0/24,pool + take fresh x pool + pool.rm fresh 10.78.0.0/25
	`)
}

// A name belongs to one network, in either store.
func TestJoinedNames(t *testing.T) {
	p, _ := furnished(t)
	for row := range ipamtest.Rows(1, `
		network lan subnet=10.2.0.0/24
		network own space=global subnet=10.78.0.0/24
		network lab subnet=10.2.0.0/24
		network.set own name=lan
		network.set lan name=own
		network.set lan name=dmz
	`) {
		p.plays(row[0] + " ! inuse; already exists; choose another name")
	}
	p.plays(`
		shared network.set lan name=lan + network.set lan name=lan2
		# there and back
		own network.set own name=brief + take brief x pool + network.set brief name=own
		shared network.set dmz name=brief + take brief x pool + network.set brief name=dmz
		# in a space in which the host's own store has networks a new one is made there, as long as it has
		own network lab2 space=lab subnet=10.5.1.0/24
		network.rm lab2
		detach lab
		end of-lab
		release lab router + release lab printer + network.rm lab force
		shared network lab2 space=lab subnet=10.5.1.0/24
	`)
}

// What an owner has is released in both stores, or only in the store that has some of it. Out of reach, an owner
// with something in the shared store keeps everything; any other owner's is released.
func TestJoinedOwners(t *testing.T) {
	p, _ := furnished(t)
	p.plays(`
		none try end web -> 4
		owns web -> dmz lan lab own
		both key once end web + end router -> 4 4
		none key once end web + end router -> 4 4 replayed
		owns web ->
		both end roamer
		owns roamer ->
		own end of-own -> 1
		shared end of-lan -> 1
		shared end of-near
		own end of-far
		none end nobody
		cut
		end db ! away
		owns db -> dmz lan lab own
		own end owner-of-own
		owns owner-of-own ->
	`)
}

// A key is valid in whichever store it was used, even if what was named is gone or renamed by then.
func TestJoinedKeys(t *testing.T) {
	p, _ := furnished(t)
	p.plays("network brief subnet=10.2.0.0/24")
	for i, edit := range []string{"network.rm brief", "network.set lan name=lan2",
		"network brief space=global subnet=10.3.0.0/24"} {
		p.plays(strings.NewReplacer("KEY", fmt.Sprint("key", i), "EDIT", edit).Replace(`
			key KEY EDIT -> 0
			none key KEY EDIT -> 0 replayed
			key KEY take own x pool ! keyreused
		`))
	}
}

// A plan is imported into the store that it is about.
func TestJoinedImport(t *testing.T) {
	_, a := furnished(t)
	imported := func(networks ...ipam.PlannedNetwork) error {
		return second(a.Import(t.Context(), ipam.Plan{Networks: networks}, ipam.ImportOptions{}))
	}
	net := func(name, space, cidr string) ipam.PlannedNetwork {
		n := ipam.PlannedNetwork{Name: name, Space: space, Line: 7}
		if cidr != "" {
			n.Subnets = []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix(cidr)}}
		}
		return n
	}
	excluded := func(space, ips string) ipam.PlannedNetwork {
		return ipam.PlannedNetwork{Space: space, Exclusions: []ipam.PlannedExclusion{{Range: ipamtest.MustRange(ips)}}}
	}
	fine(t, imported())
	fine(t, imported(net("new", "", "10.2.0.0/24"), net("own", "", "10.2.1.0/24"), net("lab", "", "10.5.2.0/24"),
		net("lab3", "lab", "10.5.3.0/24")))
	fine(t, imported(net("fresh", "global", "10.78.0.0/24"), net("lan", "", "10.77.1.0/24"),
		net("dmz", "dmz", "10.6.1.0/24"), excluded("global", "10.77.0.0+4")))
	for name, shared := range map[string]bool{"new": false, "own": false, "lab": false, "lab3": false, "fresh": true,
		"lan": true, "dmz": true} {
		if n := a.room.Show(name); n.ID.Bears(clusterMark) != shared {
			t.Errorf("%s is in the wrong store", name)
		}
	}
	for says, plan := range map[string][]ipam.PlannedNetwork{
		"own store (own) and of the cluster's (lan)":                                  {net("own", "", ""), net("lan", "", "")},
		"without a name in the space local":                                           {excluded("", "10.1.0.9"), net("x", "dmz", "")},
		"line 7: network own already exists in the space local, and names are unique": {net("own", "global", "")},
		"line 7: network lan already exists in the space global":                      {net("lan", "local", "")},
	} {
		err := imported(plan...)
		refusedBy(t, says, err, ipam.ErrInvalid, says)
		var wrong *ipam.PlanError
		if isPlan := errors.As(err, &wrong); isPlan != strings.HasPrefix(says, "line") {
			t.Errorf("%s: %#v", says, err)
		}
	}
	// An export can be imported unchanged, one store after the other.
	parts := map[bool][]ipam.PlannedNetwork{}
	for _, n := range listed(t, a.Export(t.Context(), "")) {
		shared := a.room.Show(n.Name).ID.Bears(clusterMark)
		parts[shared] = append(parts[shared], n)
	}
	for _, part := range parts {
		report, err := a.Import(t.Context(), ipam.Plan{Networks: part}, ipam.ImportOptions{DryRun: true})
		if err != nil || report.Added.Sum() != 0 || report.Unchanged.Networks != len(part) {
			t.Errorf("again: %+v, %v", report, err)
		}
	}
}

// An import that was cut off leaves no partial network in its store, and continues when it is repeated.
func TestJoinedImportCutOff(t *testing.T) {
	for _, space := range []string{ipam.GlobalSpace, ipam.LocalSpace} {
		a := newJoinedHosts(t).host("a")
		var plan ipam.Plan
		for n := range 40 {
			cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 90, byte(n), 0}), 24)
			plan.Networks = append(plan.Networks, ipam.PlannedNetwork{Name: fmt.Sprint("many", n), Space: space,
				Subnets: []ipam.PlannedSubnet{{CIDR: cidr}}})
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := a.Import(ctx, plan, ipam.ImportOptions{Progress: func(int, int) { cancel() }})
		networks, errList := a.Networks(t.Context(), ipam.NetworkFilter{Space: space})
		fine(t, errList)
		there := len(networks)
		if !errors.Is(err, context.Canceled) || there == 0 || there == len(plan.Networks) ||
			slices.ContainsFunc(networks, func(n ipam.NetworkInfo) bool { return len(n.Subnets) != 1 }) {
			t.Fatalf("in space %s it was not cut off: %v; there are %d: %+v", space, err, there, networks)
		}
		report, err := a.Import(t.Context(), plan, ipam.ImportOptions{})
		if err != nil || report.Unchanged.Networks != there || report.Added.Networks != len(plan.Networks)-there {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

// Events noted from outside go to the store of their space.
func TestJoinedNote(t *testing.T) {
	p := newJoinedHosts(t)
	a := p.host("a")
	for space, own := range map[string]bool{"": true, "local": true, "global": false} {
		before := ipamtest.CountKeys(t, a.own, 'e')
		fine(t, a.Note(t.Context(), ipam.Event{Verb: ipam.TokenCreated, Name: "ci", Space: space}))
		all, err := a.Events(t.Context(), ipam.EventFilter{})
		fine(t, err)
		if (ipamtest.CountKeys(t, a.own, 'e') > before) != own || !slices.ContainsFunc(all,
			func(e ipam.Event) bool { return e.Verb == ipam.TokenCreated && e.Space == space }) {
			t.Errorf("of the space %q: noted in the wrong store, or nowhere", space)
		}
	}
}

// A Docker network of both families is two networks with one name, in the host's own store as in the cluster's.
// An edit goes to the network that has what else the edit names. An edit that names nothing else is refused,
// with both networks in the message.
func TestJoinedDockersName(t *testing.T) {
	subnets := map[string][]string{"shop": {"10.7.0.0/24", "2001:db8:7::/64"},
		"wide": {"10.77.0.0/24", "2001:db8:77::/64"}}
	p := newJoinedHosts(t)
	p.known.DockerNetwork = func(_ string, cidr netip.Prefix) string {
		for name, all := range subnets {
			if slices.Contains(all, cidr.String()) {
				return name
			}
		}
		return ""
	}
	for name, space := range map[string]string{"shop": ipam.LocalSpace, "wide": ipam.GlobalSpace} {
		store := map[string]string{"shop": "own", "wide": "shared"}[name]
		for i, cidr := range subnets[name] {
			p.plays(fmt.Sprintf("%s attach %s%d space=%s cidr=%s", store, name, i, space, cidr))
		}
		for _, cidr := range subnets[name] {
			ip := strings.Replace(strings.Replace(cidr, "0/24", "2", 1), "::/64", "::2", 1)
			p.plays(strings.NewReplacer("STORE", store, "NET", name, "IP", ip).Replace(`
				STORE take NET gate IP
				owns gate -> NET
				STORE release NET gate IP
			`))
		}
		p.plays("take " + name + " gate pool ! invalid; the Docker name " + name + " is on 2 networks; give the id; " +
			strings.Join(subnets[name], "; "))
		_, err := p.host("a").Network(t.Context(), name)
		refusedBy(t, "one network", err, ipam.ErrInvalid, "the Docker name "+name+" is on 2 networks")
	}
}
