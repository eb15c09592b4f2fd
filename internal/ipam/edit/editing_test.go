package edit_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// The service never changes the edit that it is given, even if it writes other values than the edit has.
func TestEditsStay(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network own subnet=10.77.0.0/24,pool")
	for _, e := range ipamtest.Edits(t, `
		reserve own 02-42-0A-00-00-01
		take own 02-42-0A-00-00-02 pool
		network own2`) {
		before := fmt.Sprintf("%+v", e)
		r.Edit(e)
		if after := fmt.Sprintf("%+v", e); after != before {
			t.Errorf("%s is %s", before, after)
		}
	}
	if _, ok := ipam.NewEdit("pool.paint"); ok {
		t.Error("an operation that is not there has an edit")
	}
}

// Several edits are made together or not at all, and a refusal names the refused one. Each edit sees the result of
// those before it, so edits can swap names.
func TestEditsTogether(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24
		pool net1 192.0.2.10+5 + network net2 + pool net1 192.0.2.12 + pool net1 192.0.2.30 ! overlap; at=2
		show networks -> net1
		show net1 pools ->
		network net2
		pool net1 192.0.2.10+5 + network net3 subnet=198.51.100.0/24
		take net1 a pool + take net3 a 198.51.100.9 + network.set net3 name=net4 -> 192.0.2.10 198.51.100.9 Docker commands can still use network=net3 for this network until another network gets that name
		network.set net4 name=net5 + pool net5 - subnet=198.51.100.0/24
		show networks -> net1 net2 net5
		show net5 taken -> a:0.0=198.51.100.9
	`)
	_ = refused(r, "no edits", "invalid", ipam.EditOptions{})
	var many []string
	for i := range ipam.MaxEdits + 1 {
		many = append(many, fmt.Sprint("network many", i))
	}
	r.Line(strings.Join(many, " + ") + " ! invalid")
	r.Run(strings.Join(many[1:], " + "))
	r = ipamtest.New(t)
	r.Run("network a subnet=192.0.2.0/24,name=x,dhcp+198.51.100.0/24,name=y\nnetwork b")
	ids := [2]ipam.ID{r.Show("a").ID, r.Show("b").ID}
	r.Run("network.set a name=c + network.set b name=a + network.set c name=b")
	if r.Show("b").ID != ids[0] || r.Show("a").ID != ids[1] {
		t.Error("the names were not swapped")
	}
	r.Run(`
		subnet.set b x name=z dhcp=false + subnet.set b y name=x dhcp=true + subnet.set b z name=y
		show b subnets -> y:192.0.2.0/24:-:false x:198.51.100.0/24:-:true
		# A subnet that is removed makes room for the next edit, and one that is refused afterwards brings it back.
		subnet.rm b y + subnet a 192.0.2.0/25 name=half + subnet a 192.0.2.0/25 name=half ! overlap; at=2
		subnet.rm b y + subnet a 192.0.2.0/25 name=half
		show a subnets -> half:192.0.2.0/25:-:false
		show b subnets -> x:198.51.100.0/24:-:true
	`)
}

// One call makes at most what one transaction holds. A refusal leaves nothing behind.
func TestEditsAreBounded(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=10.0.0.0/8,pool")
	wishes := make([]ipam.Wish, 64)
	for i := range wishes {
		wishes[i].Slot = i
	}
	edits := make([]ipam.Edit, ipam.MaxEdits)
	for i := range edits {
		edits[i] = &ipam.TakeAddress{Network: "net1", Owner: fmt.Sprintf("vm%d", i),
			Interface: ipam.Interface{Wishes: wishes}}
	}
	_ = refused(r, "too many addresses", "invalid; exceed one transaction", ipam.EditOptions{}, edits...)
	r.Run("take net1 a pool -> 10.0.0.1")
}

// A network and a subnet are one record each, of bounded size. What would exceed it is refused as invalid and
// changes nothing. Parts can still be removed.
func TestRecordsAreBounded(t *testing.T) {
	r := ipamtest.New(t)
	cidr := netip.MustParsePrefix("10.0.0.0/16")
	tags, exclusions := map[string]string{}, []ipam.PlannedExclusion{}
	for i := range 128 {
		tags[fmt.Sprintf("t%d", i)] = strings.Repeat("x", 250)
	}
	addr := cidr.Addr().Next()
	for range 4096 {
		exclusions = append(exclusions, ipam.PlannedExclusion{Range: ipamtest.MustRange(addr.String())})
		addr = addr.Next().Next()
	}
	plan := ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "net1", Tags: tags,
		Subnets: []ipam.PlannedSubnet{{CIDR: cidr, Exclusions: exclusions}}}}}
	if _, err := r.S.Import(ctx, plan, ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	more := &ipam.AddExclusion{Network: "net1", Range: ipamtest.MustRange("10.0.200.1")}
	for name, e := range map[string]ipam.Edit{"a tag": &ipam.ModifyNetwork{Network: "net1",
		Tags: map[string]*string{"site": new(string)}}, "an exclusion": more} {
		_ = refused(r, name+" more", "invalid", ipam.EditOptions{}, e)
	}
	r.Edit(&ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"t0": nil, "site": new(string)}})
	r.Edit(&ipam.RemoveExclusion{Network: "net1", Range: ipamtest.MustRange("10.0.0.0/24")}, more)
	plan.Networks[0].Name, plan.Networks[0].Space, plan.Networks[0].Subnets[0].Exclusions = "net2", "lab",
		append(exclusions, ipam.PlannedExclusion{Range: more.Range})
	_, err := r.S.Import(ctx, plan, ipam.ImportOptions{})
	r.Refused("an import of too many exclusions", "invalid", err)
	for i := range exclusions {
		exclusions[i].Note = strings.Repeat("€", 200)
	}
	plan.Networks[0].Subnets[0].Exclusions = exclusions[:3000]
	_, err = r.S.Import(ctx, plan, ipam.ImportOptions{})
	r.Refused("an import of too long ones", "invalid; pools and exclusions than a record can hold", err)
}

// largeNetwork makes a network with more subnets than one transaction removes.
func largeNetwork(r *ipamtest.Stage) {
	r.T.Helper()
	r.Line("network large")
	for page := range 4 {
		var edits []string
		for i := range 150 {
			at := fmt.Sprintf("10.%d.%d", page, i)
			edits = append(edits, "subnet large "+at+".0/24 pool gw="+at+".1")
		}
		r.Line(strings.Join(edits, " + "))
	}
	r.Line("reserve large web 10.0.7.7")
}

// A removed network is gone at once, however many of its records are still there. Its subnets are not shown.
func TestLeavingIsNotSeen(t *testing.T) {
	r := ipamtest.New(t)
	largeNetwork(r)
	of, left := r.Show("large").ID, r.Show("large").Subnets[599].ID
	r.Store.Next(storetest.Fault{}, storetest.Fault{Before: store.ErrNoSpace})
	r.Edit(&ipam.RemoveNetwork{Network: "large", Force: true})
	if network, err := r.S.NetworkOf(left); err != nil || network != of {
		t.Fatalf("the subnet is of %v (%v), and this test needs it to be there still", network, err)
	}
	if free, err := r.S.Available(ctx, left, 10); ipamtest.KindOf(err) != "notfound" {
		t.Errorf("the network is gone, and %v are free in it (%v)", free, err)
	}
	if _, _, err := r.S.Subnet(ctx, left); ipamtest.KindOf(err) != "notfound" {
		t.Errorf("the network is gone, and its subnet is shown (%v)", err)
	}
	spaces, err := r.S.Spaces(ctx)
	if err != nil || slices.ContainsFunc(spaces, func(sp ipam.SpaceInfo) bool { return sp.Subnets != 0 }) {
		t.Errorf("the network is gone, and the spaces are %+v (%v)", spaces, err)
	}
}

// Two clients that change the same network do not overwrite each other.
func TestIfMatch(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24\nnetwork net2")
	seen := r.Show("net1").Revision
	pool := func(text string) ipam.Edit {
		return &ipam.AddPool{Network: "net1", Range: ipamtest.MustRange(text)}
	}
	out, err := r.S.Edit(ctx, ipam.EditOptions{IfMatch: seen}, pool("192.0.2.10"))
	if err != nil || out.Revision <= seen || out.Revision != r.Show("net1").Revision {
		t.Fatalf("%+v, %v; it was %d", out, err, seen)
	}
	_ = refused(r, "an old revision", "changed", ipam.EditOptions{IfMatch: seen}, pool("192.0.2.11"))
	// Edits of other networks and the use of addresses change no revision. Each change of the plan does.
	last := out.Revision
	r.Run("network.set net2 name=net3\ntake net1 a 192.0.2.30\nreserve net1 b 192.0.2.31\nattach A net=net1\nask A " +
		"mac=1\nrelease net1 a\ndetach A")
	if now := r.Show("net1").Revision; now != last {
		t.Errorf("the revision went from %d to %d", last, now)
	}
	for _, step := range []string{"network.set net1 name=net4", "network.set net4 tag.a=b",
		"subnet net4 198.51.100.0/24", "subnet.set net4 198.51.100.0/24 gw=198.51.100.9",
		"subnet.set net4 198.51.100.0/24 cidr=198.51.100.0/25", "pool net4 192.0.2.12", "pool.set net4 192.0.2.12 b",
		"pool.rm net4 b", "exclude net4 192.0.2.40", "include net4 192.0.2.40", "subnet.rm net4 198.51.100.0/25"} {
		r.Run(step)
		now := r.Show("net4").Revision
		if now <= last {
			t.Errorf("%s: the revision stayed %d", step, now)
		}
		last = now
	}
	r.Reopened()
	if got := r.Show("net4").Revision; got != last {
		t.Errorf("after a restart %d, before it %d", got, last)
	}
	_ = refused(r, "a revision that never was", "changed", ipam.EditOptions{IfMatch: last + 1},
		&ipam.RemoveNetwork{Network: "net4", Force: true})
	// Several edits of one network under one revision.
	if _, err := r.S.Edit(ctx, ipam.EditOptions{IfMatch: last},
		&ipam.AddPool{Network: "net4", Range: ipamtest.MustRange("192.0.2.50")},
		&ipam.AddPool{Network: "net4", Range: ipamtest.MustRange("192.0.2.51")}); err != nil {
		t.Error(err)
	}
}

// A committed edit succeeds, also if its leftovers cannot be removed at that time.
func TestEditWhoseClearingFails(t *testing.T) {
	for _, e := range []ipam.Edit{&ipam.RemoveSubnet{Network: "net1", Subnet: "lan"},
		&ipam.RemoveNetwork{Network: "net1", Force: true}} {
		r := ipamtest.New(t)
		r.Run("network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan,pool\ntake net1 a pool\nrelease net1 a")
		r.Store.Next(storetest.Fault{}, storetest.Fault{Before: store.ErrNoSpace})
		if _, err := r.S.Edit(ctx, ipam.EditOptions{}, e); err != nil {
			t.Errorf("%T was made, and answers %v", e, err)
		}
		r.Reopened()
		if n := ipamtest.CountKeys(t, r.Store, 'l'); n != 0 {
			t.Errorf("%T: %d records of addresses are left after a restart", e, n)
		}
	}
}

// A dry run, or an edit that the store fails, does not change the order of remembered addresses: an owner gets its
// last one back.
func TestDryRunKeepsTheLastMemory(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/29,pool
		take net1 db 0:ip0=pool,ip1=pool -> 192.0.2.1 192.0.2.2
		release net1 db 192.0.2.2
		release net1 db 192.0.2.1
		@dry take net1 other 192.0.2.2
		fail full
		take net1 other 192.0.2.2 ! full
		take net1 db pool -> 192.0.2.1
	`}})
}
