package edit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// Every edit has a dry run, which tells what it would change and changes nothing.
func TestDryRun(t *testing.T) {
	for op, e := range ipamtest.EditsOfAllKinds(t) {
		t.Run(op, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(ipamtest.PlanForEdits)
			before, all := ipamtest.Dump(t, r.Store), r.Everything()
			would, err := r.S.Edit(ctx, ipam.EditOptions{DryRun: true}, e)
			fine(t, err)
			if len(would.Changes) == 0 || would.Changes[0].ID != 0 || len(would.Results) != 1 {
				t.Errorf("it would change %+v", would)
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
				t.Fatalf("a dry run wrote:\n%s", diff)
			}
			if diff := ipamtest.ShownDiff(all, r.Everything()); diff != "" {
				t.Fatalf("after a dry run other things are shown:\n%s", diff)
			}
			r.Reopened()
			did := r.Edit(e)
			if len(did.Changes) != len(would.Changes) {
				t.Fatalf("it would have changed %+v\nand changed %+v", would.Changes, did.Changes)
			}
			for i, c := range did.Changes {
				w := would.Changes[i]
				if c.ID == 0 || c.Verb != w.Verb || c.Subnet != w.Subnet || c.Address != w.Address ||
					string(c.After) != string(w.After) {
					t.Errorf("it would have changed %+v\nand changed %+v", w, c)
				}
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff == "" {
				t.Fatal("the edit wrote nothing")
			}
			r.Reopened()
		})
	}
}

// An edit stays as it was asked for, also where it is made twice, as a transaction that runs again makes it.
func TestEditsStay(t *testing.T) {
	mac := "02-42-0A-00-00-01"
	all := ipamtest.EditsOfAllKinds(t)
	all["canonical reservation"] = &ipam.AddReservation{Network: "own", Owner: mac}
	all["canonical address"] = &ipam.TakeAddress{Network: "own", Owner: mac}
	all["default space"] = &ipam.CreateNetwork{Name: "own2"}
	for what, e := range all {
		r := ipamtest.New(t)
		r.Run(ipamtest.PlanForEdits + "\nnetwork own subnet=10.77.0.0/24,pool")
		before := fmt.Sprintf("%+v", e)
		if _, err := r.S.Edit(ctx, ipam.EditOptions{DryRun: true}, e); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		r.Edit(e)
		if after := fmt.Sprintf("%+v", e); after != before {
			t.Errorf("%s was %s and is %s", what, before, after)
		}
	}
}

// NewEdit knows every kind of edit by its operation.
func TestNewEdit(t *testing.T) {
	for op, e := range ipamtest.EditsOfAllKinds(t) {
		made, ok := ipam.NewEdit(op)
		if got, want := fmt.Sprintf("%T", made), fmt.Sprintf("%T", e); !ok || got != want {
			t.Errorf("%s is %s, want %s", op, got, want)
		}
	}
	if _, ok := ipam.NewEdit("pool.paint"); ok {
		t.Error("an operation that is not there has an edit")
	}
}

// Several edits are made together or not at all, and the refusal says which one it was.
func TestEditsTogether(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24")
	before := ipamtest.Dump(t, r.Store)
	_, err := r.S.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(t, `
		pool net1 192.0.2.10+5
		network net2
		pool net1 192.0.2.12
		pool net1 192.0.2.30`)...)
	var which *ipam.EditError
	if !errors.As(err, &which) || which.Index != 2 || !errors.Is(err, ipam.ErrOverlap) {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
		t.Fatal(diff)
	}
	r.Run(`
		show networks -> net1
		show net1 pools ->
		network net2`)
	out := r.Edit(ipamtest.Edits(t, `
		pool net1 192.0.2.10+5
		network net3 subnet=198.51.100.0/24
		take net1 a pool
		take net3 a 198.51.100.9
		network.set net3 name=net4
		pool net4 - subnet=198.51.100.0/24`)...)
	if len(out.Results) != 6 || ipamtest.Joined(out.Results[2].Addresses) != "192.0.2.10" ||
		ipamtest.Joined(out.Results[3].Addresses) != "198.51.100.9" || out.Revision != r.Show("net1").Revision {
		t.Errorf("%+v", out)
	}
	r.Run("show networks -> net1 net2 net4\nshow net4 taken -> a:0.0=198.51.100.9")
	if _, err := r.S.Edit(ctx, ipam.EditOptions{}); ipamtest.KindOf(err) != "invalid" {
		t.Errorf("no edits: %v", err)
	}
	many := make([]ipam.Edit, ipam.MaxEdits+1)
	for i := range many {
		many[i] = &ipam.CreateNetwork{Name: fmt.Sprintf("many%d", i)}
	}
	if _, err := r.S.Edit(ctx, ipam.EditOptions{}, many...); ipamtest.KindOf(err) != "invalid" {
		t.Errorf("too many edits: %v", err)
	}
	if _, err := r.S.Edit(ctx, ipam.EditOptions{}, many[1:]...); err != nil {
		t.Errorf("as many edits as one call makes: %v", err)
	}
	r.Reopened()
}

// What swaps names is seen as the sum of its edits.
func TestEditsInOrder(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network a subnet=192.0.2.0/24,name=x,dhcp+198.51.100.0/24,name=y\nnetwork b")
	ids := [2]ipam.ID{r.Show("a").ID, r.Show("b").ID}
	r.Edit(ipamtest.Edits(t, `
		network.set a name=c
		network.set b name=a
		network.set c name=b`)...)
	if r.Show("b").ID != ids[0] || r.Show("a").ID != ids[1] {
		t.Error("the names were not swapped")
	}
	r.Edit(ipamtest.Edits(t, `
		subnet.set b x name=z dhcp=false
		subnet.set b y name=x dhcp=true
		subnet.set b z name=y`)...)
	r.Run("show b subnets -> y:192.0.2.0/24:-:false x:198.51.100.0/24:-:true")
	// A subnet that is removed makes room for the next edit, and one that is refused afterwards brings it back.
	const moved = "subnet.rm b y\nsubnet a 192.0.2.0/25 name=half"
	if _, err := r.S.Edit(ctx, ipam.EditOptions{},
		ipamtest.Edits(t, moved+"\nsubnet a 192.0.2.0/25 name=half")...); !errors.Is(err, ipam.ErrOverlap) {
		t.Fatal(err)
	}
	r.Run("show b subnets -> y:192.0.2.0/24:-:false x:198.51.100.0/24:-:true\nshow a subnets ->")
	r.Edit(ipamtest.Edits(t, moved)...)
	r.Run("show a subnets -> half:192.0.2.0/25:-:false\nshow b subnets -> x:198.51.100.0/24:-:true")
}

// One call makes no more than one transaction can hold, whatever its edits say; what is refused leaves nothing behind.
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
	before, all := ipamtest.Dump(t, r.Store), r.Everything()
	out, err := r.S.Edit(ctx, ipam.EditOptions{}, edits...)
	if err == nil {
		if n := len(r.Taken(ipam.AddressFilter{})); n != len(edits)*len(wishes) || len(out.Results) != len(edits) {
			t.Fatalf("%d addresses were taken", n)
		}
		return
	}
	if ipamtest.KindOf(err) != "invalid" {
		t.Errorf("too much for one transaction: %v", err)
	}
	if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
		t.Fatal("something was written")
	}
	if diff := ipamtest.ShownDiff(all, r.Everything()); diff != "" {
		t.Fatal("something is shown")
	}
	r.Run("take net1 a pool -> 10.0.0.1")
}

// What a network or subnet keeps is one record, which is bounded: what would be more is refused as a mistake of the one
// who asks, changes nothing, and keeps nobody from taking something away again.
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
	before, all := ipamtest.Dump(t, r.Store), r.Everything()
	for name, e := range map[string]ipam.Edit{"a tag": &ipam.ModifyNetwork{Network: "net1",
		Tags: map[string]*string{"site": new(string)}}, "an exclusion": more} {
		if _, err := r.S.Edit(ctx, ipam.EditOptions{}, e); ipamtest.KindOf(err) != "invalid" {
			t.Errorf("%s more: %v", name, err)
		}
		if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
			t.Fatalf("%s: something was written", name)
		}
		if diff := ipamtest.ShownDiff(all, r.Everything()); diff != "" {
			t.Fatalf("%s: something is shown", name)
		}
	}
	r.Edit(&ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"t0": nil, "site": new(string)}})
	r.Edit(&ipam.RemoveExclusion{Network: "net1", Range: ipamtest.MustRange("10.0.0.0/24")}, more)
	plan.Networks[0].Name, plan.Networks[0].Space, plan.Networks[0].Subnets[0].Exclusions = "net2", "lab",
		append(exclusions, ipam.PlannedExclusion{Range: more.Range})
	if _, err := r.S.Import(ctx, plan, ipam.ImportOptions{}); ipamtest.KindOf(err) != "invalid" {
		t.Errorf("an import of too many exclusions: %v", err)
	}
}

// A network that was removed is gone at once, however many of its records are there still: nothing is told of its
// subnets.
func TestLeavingIsNotSeen(t *testing.T) {
	r := ipamtest.New(t)
	var of, left ipam.ID
	for i := range 501 {
		sub := &ipam.AddSubnet{Network: "net1",
			SubnetSpec: ipam.SubnetSpec{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}),
				24), Pool: true}}
		edits := []ipam.Edit{sub}
		if i == 0 {
			edits = []ipam.Edit{&ipam.CreateNetwork{Name: "net1"}, sub}
		}
		out, err := r.S.Edit(ctx, ipam.EditOptions{}, edits...)
		fine(t, err)
		of, left = out.Results[0].Network, out.Results[len(edits)-1].Subnet
	}
	r.Store.Next(storetest.Fault{}, storetest.Fault{Before: store.ErrNoSpace})
	r.Edit(&ipam.RemoveNetwork{Network: "net1"})
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

// Two who change the same network do not overwrite one another.
func TestIfMatch(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24\nnetwork net2")
	seen := r.Show("net1").Revision
	add := func(rev uint64, text string) (ipam.Outcome, error) {
		return r.S.Edit(ctx, ipam.EditOptions{IfMatch: rev}, &ipam.AddPool{Network: "net1",
			Range: ipamtest.MustRange(text)})
	}
	out, err := add(seen, "192.0.2.10")
	if err != nil || out.Revision <= seen || out.Revision != r.Show("net1").Revision {
		t.Fatalf("%+v, %v; it was %d", out, err, seen)
	}
	before := ipamtest.Dump(t, r.Store)
	if _, err := add(seen, "192.0.2.11"); !errors.Is(err, ipam.ErrChanged) {
		t.Fatalf("an old revision: %v", err)
	}
	if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
		t.Fatal(diff)
	}
	// Other networks, and who takes addresses, change no revision; each change of the plan does.
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
	if _, err := r.S.Edit(ctx, ipam.EditOptions{IfMatch: last + 1},
		&ipam.RemoveNetwork{Network: "net4", Force: true}); !errors.Is(err, ipam.ErrChanged) {
		t.Errorf("a revision that never was: %v", err)
	}
	// Several edits of one network under one revision.
	if _, err := r.S.Edit(ctx, ipam.EditOptions{IfMatch: last},
		&ipam.AddPool{Network: "net4", Range: ipamtest.MustRange("192.0.2.50")},
		&ipam.AddPool{Network: "net4", Range: ipamtest.MustRange("192.0.2.51")}); err != nil {
		t.Error(err)
	}
}

// An edit that the store fails leaves the index as the records are: what was free is free, and what was planned is
// planned.
func TestEditsUnderFaults(t *testing.T) {
	for op, e := range ipamtest.EditsOfAllKinds(t) {
		t.Run(op, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(ipamtest.PlanForEdits)
			records, all := ipamtest.Dump(t, r.Store), r.Everything()
			for _, fault := range []storetest.Fault{{Before: store.ErrNoSpace}, {Lost: errors.New("the disk")},
				{Reruns: 2, Before: store.ErrNoSpace}} {
				r.Store.Next(fault)
				if _, err := r.S.Edit(ctx, ipam.EditOptions{}, e); err == nil {
					t.Fatal("it was made")
				}
				r.Store.Heal()
				if diff := cmp.Diff(records, ipamtest.Dump(t, r.Store)); diff != "" {
					t.Fatalf("%+v wrote:\n%s", fault, diff)
				}
				if diff := ipamtest.ShownDiff(all, r.Everything()); diff != "" {
					t.Fatalf("%+v: other things are shown:\n%s", fault, diff)
				}
			}
			r.Store.Next(storetest.Fault{Reruns: 2})
			r.Edit(e)
			r.Reopened()
		})
	}
}

// An edit that is committed succeeds, also where what it leaves to be cleared away cannot be at that moment.
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

// What is tried and not kept, a dry run or an edit that the store fails, leaves the order as it was in which addresses
// are remembered: an owner gets back the one that it had last.
func TestDryRunKeepsTheLastMemory(t *testing.T) {
	tries := map[string]func(*ipamtest.Room, ipam.Edit) error{
		"dry run": func(r *ipamtest.Room, e ipam.Edit) error {
			_, err := r.S.Edit(ctx, ipam.EditOptions{DryRun: true}, e)
			return err
		},
		"full disk": func(r *ipamtest.Room, e ipam.Edit) error {
			r.Store.Next(storetest.Fault{Before: store.ErrNoSpace})
			if _, err := r.S.Edit(ctx, ipam.EditOptions{}, e); err == nil {
				return errors.New("it was made")
			}
			return nil
		},
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(`
				network net1 subnet=192.0.2.0/29,pool
				take net1 db 0:ip0=pool,ip1=pool -> 192.0.2.1 192.0.2.2
				release net1 db 192.0.2.2
				release net1 db 192.0.2.1`)
			other := ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("192.0.2.2")}}}
			fine(t, try(r, &ipam.TakeAddress{Network: "net1", Owner: "other", Interface: other}))
			r.Run("take net1 db pool -> 192.0.2.1")
		})
	}
}
