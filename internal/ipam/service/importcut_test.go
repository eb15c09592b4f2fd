package service_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// largePlan needs several transactions: a network that is there and gets subnets, and new ones, large and small.
func largePlan() ipam.Plan {
	var p ipam.Plan
	network := func(name string, n, subnets, each int) {
		planned := ipam.PlannedNetwork{Name: name}
		for i := range subnets {
			sub := ipam.PlannedSubnet{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), byte(i), 0}), 24),
				Gateway: netip.AddrFrom4([4]byte{10, byte(n), byte(i), 1}),
				Pools:   []ipam.PlannedPool{{Range: mustRange(fmt.Sprintf("10.%d.%d.100+9", n, i)), Name: "front"}}}
			if i == 0 {
				sub.Exclusions = []ipam.PlannedExclusion{{Range: mustRange(fmt.Sprintf("10.%d.%d.20+4", n, i)),
					Note: "printers"}}
			}
			planned.Subnets = append(planned.Subnets, sub)
			for a := range each {
				addr := netip.AddrFrom4([4]byte{10, byte(n), byte(i), byte(a + 10)})
				planned.Reservations = append(planned.Reservations,
					ipam.PlannedReservation{Owner: fmt.Sprintf("web-%d-%d", i, a), Address: addr, Unplaced: true})
			}
			planned.Addresses = append(planned.Addresses,
				ipam.PlannedAddress{Owner: "rtr", Address: netip.AddrFrom4([4]byte{10, byte(n), byte(i), 9}),
					Unplaced: true})
		}
		p.Networks = append(p.Networks, planned)
	}
	network("there", 1, 5, 20)
	network("large", 2, 15, 60)
	for i := range 20 {
		network(fmt.Sprintf("small%02d", i), 10+i, 1, 2)
	}
	p.Networks[0].Pools = []ipam.PlannedPool{{Range: mustRange("192.0.2.10+5"), Name: "front"}}
	p.Networks[0].Exclusions = []ipam.PlannedExclusion{{Range: mustRange("192.0.2.60+5")}}
	p.Networks[0].Subnets[1].Static = []ipam.PlannedBand{{Range: mustRange("10.1.1.9-10.1.1.19")}}
	p.Networks[0].Reservations = append(p.Networks[0].Reservations,
		ipam.PlannedReservation{Owner: "web-1-1", Address: netip.MustParseAddr("10.1.0.90"), Unplaced: true,
			Terms: ipam.Terms{Replaced: true, Until: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}})
	p.Networks = slices.Insert(p.Networks, 1, dynamicPlan())
	return p
}

// dynamicPlan is a network of which somebody else chooses the addresses, with so many owners that they take several
// transactions.
func dynamicPlan() ipam.PlannedNetwork {
	n := ipam.PlannedNetwork{Name: "seen", Type: "dynamic",
		OwnerRules: []ipam.OwnerRule{{Pattern: "vm-*", Owner: "vm/*"}},
		Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.3.0.0/24"),
			Gateway: netip.MustParseAddr("10.3.0.1")}}}
	for i := range 200 {
		n.Reservations = append(n.Reservations, ipam.PlannedReservation{Owner: fmt.Sprintf("vm/%d", i)})
	}
	return n
}

// placed counts the reservations that have an address.
func placed(all []ipam.PlannedReservation) (n int) {
	for _, r := range all {
		if r.Address.IsValid() {
			n++
		}
	}
	return n
}

const beforeLargePlan = `
	network there subnet=192.0.2.0/24
	reserve there web-0-0 192.0.2.77
	network other subnet=198.51.100.0/24,pool
	attach P net=other
`

// records is every record but events and the time of the last one.
func records(t testing.TB, st store.Store) map[string]string {
	all := dump(t, st)
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, `"e`) })
	return all
}

// wholeOrNot fails the test where a network of the plan is seen in part.
func (r *room) wholeOrNot(p ipam.Plan) {
	r.t.Helper()
	all, err := r.s.Networks(ctx, ipam.NetworkFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	seen := map[string]ipam.NetworkInfo{}
	for _, n := range all {
		seen[n.Name] = n
	}
	for _, planned := range p.Networks[1:] {
		n, ok := seen[planned.Name]
		if ok && (len(n.Subnets) < len(planned.Subnets) || n.Reserved < uint64(placed(planned.Reservations)) ||
			n.Held < uint64(len(planned.Addresses)+len(planned.Subnets))) {
			r.t.Fatalf("network %s is there with %d of %d subnets, %d of %d reservations", n.Name, len(n.Subnets),
				len(planned.Subnets), n.Reserved, len(planned.Reservations))
		}
		if ok {
			continue
		}
		if _, err := r.s.Network(ctx, planned.Name); err == nil {
			r.t.Fatalf("network %s is not listed, and is shown", planned.Name)
		}
		if _, err := r.s.RequestPool(ctx, ipam.PoolRequest{Network: planned.Name}); err == nil {
			r.t.Fatalf("network %s is not there, and Docker is attached to it", planned.Name)
		}
	}
	leases := listLeases(r.t, r.s, ipam.LeaseFilter{})
	if i := slices.IndexFunc(leases, func(l ipam.LeaseInfo) bool { _, ok := seen[l.Network]; return !ok }); i >= 0 {
		r.t.Fatalf("%s of network %s is listed, which is not there", leases[i].Address, leases[i].Network)
	}
	subnets, err := r.s.Subnets(ctx, "")
	if err != nil {
		r.t.Fatal(err)
	}
	if i := slices.IndexFunc(subnets,
		func(sub ipam.SubnetInfo) bool { _, ok := seen[sub.NetworkName]; return !ok }); i >= 0 {
		r.t.Fatalf("the subnet %s of network %s is listed, which is not there", subnets[i].CIDR, subnets[i].NetworkName)
	}
}

// TestImportCutOff has the store fail in each transaction of an import, in each way, and starts the daemon again: the
// import is named, no network is there in part, and it is finished or taken back.
func TestImportCutOff(t *testing.T) {
	p := largePlan()
	whole := newRoom(t)
	whole.run(beforeLargePlan)
	updates := 0
	whole.store.Each(func(n int) storetest.Fault { updates = n; return storetest.Fault{} })
	if _, err := whole.s.Import(ctx, p, ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	want := whole.exported()
	if updates < 6 {
		t.Fatalf("the import has %d transactions; the plan is too small for this test", updates)
	}
	faults := []struct {
		name string
		storetest.Fault
	}{
		{"before", storetest.Fault{Before: fmt.Errorf("%w: full", store.ErrNoSpace)}},
		{"after", storetest.Fault{After: errors.New("broken")}},
		{"lost", storetest.Fault{Lost: errors.New("broken")}},
	}
	for at := 1; at <= updates; at++ { // each transaction in two ways, each way in two of three
		for i, undo := range []bool{false, true} {
			if service.RaceEnabled && i != at%2 {
				continue
			}
			fault := faults[(at+i)%len(faults)]
			t.Run(fmt.Sprintf("%s %d undo %v", fault.name, at, undo),
				func(t *testing.T) { cutOff(t, p, at, fault.Fault, undo, want) })
		}
	}
}

func cutOff(t *testing.T, p ipam.Plan, at int, fault storetest.Fault, undo bool, want string) {
	r := newRoom(t)
	r.run(beforeLargePlan)
	before := records(t, r.store)
	r.store.Each(func(n int) storetest.Fault {
		if n == at {
			return fault
		}
		return storetest.Fault{}
	})
	_, err := r.s.Import(ctx, p, ipam.ImportOptions{})
	r.store.Each(nil)
	r.store.Heal()
	r.open()
	r.wholeOrNot(p)
	if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("berth fsck says: %q, %v", problems, err)
	}
	state, stateErr := r.s.ImportState(ctx)
	if stateErr != nil {
		t.Fatal(stateErr)
	}
	if state == nil { // before the import had begun, or behind its end
		r.sound()
		if got := records(t, r.store); err != nil && !cmp.Equal(got, before) && r.exported() != want {
			t.Fatalf("no import is open, and its records are there in part")
		}
		if !cmp.Equal(records(t, r.store), before) {
			return
		}
		r.imports2(p)
		if got := r.exported(); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
		return
	}
	if err == nil || state.Running || state.Total < 100 || state.Done < 0 || state.Done >= state.Total ||
		state.Network == "" {
		t.Fatalf("the import ended with %v; its state is %+v", err, state)
	}
	if _, err := r.s.Import(ctx, p, ipam.ImportOptions{}); !errors.Is(err, ipam.ErrInUse) ||
		!strings.Contains(advice.Text(err), "berth import --resume") {
		t.Fatalf("another import meanwhile: %v", err)
	}
	if undo {
		report, err := r.s.UndoImport(ctx, nil)
		if err != nil || !report.Undone {
			t.Fatalf("%+v, %v", report, err)
		}
		if diff := cmp.Diff(before, records(t, r.store), ignoreRevisions); diff != "" {
			t.Fatalf("after it was taken back:\n%s", diff)
		}
	} else {
		report, err := r.s.ResumeImport(ctx, nil)
		if err != nil || report.Added.Networks != 22 || report.Added.Reservations != 5*20+1+15*60+20*2+200 ||
			report.Unchanged.Networks != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
		if got := r.exported(); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
	}
	r.sound()
	r.reopened()
}

// imports2 imports a plan that must succeed.
func (r *room) imports2(p ipam.Plan) {
	r.t.Helper()
	if _, err := r.s.Import(ctx, p, ipam.ImportOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.sound()
}

// ignoreRevisions leaves out what an import that was taken back has moved along for good.
var ignoreRevisions = cmp.FilterValues(func(a, b string) bool {
	return strings.Contains(a, `"revision":`) && strings.Contains(b, `"revision":`)
}, cmp.Comparer(func(a, b string) bool {
	cut := func(s string) string { head, _, _ := strings.Cut(s, `"revision":`); return head }
	return cut(a) == cut(b)
}))

// TestUndoRefused: what somebody uses by now is named, and once he does not, the taking back goes on.
func TestUndoRefused(t *testing.T) {
	p := largePlan()
	r := newRoom(t)
	r.run(beforeLargePlan)
	before := records(t, r.store)
	half, cancel := context.WithCancel(ctx)
	_, err := r.s.Import(half, p, ipam.ImportOptions{Progress: func(done, total int) {
		if done > total*9/10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(advice.Text(err),
			"finish it with `berth import --resume`, or take it back with `berth import --undo`") {
		t.Fatalf("an import that is interrupted ended with %v", err)
	}
	r.wholeOrNot(p)
	undo := func(want string) {
		t.Helper()
		_, err := r.s.UndoImport(ctx, nil)
		if !errors.Is(err, ipam.ErrInUse) {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(want, "; ") {
			if !strings.Contains(advice.Text(err), part) {
				t.Fatalf("%s, want %q", advice.Text(err), want)
			}
		}
		r.wholeOrNot(p)
		if state, err := r.s.ImportState(ctx); err != nil || state == nil || !state.Undoing || state.Running {
			t.Fatalf("%+v, %v", state, err)
		}
		if _, err := r.s.ResumeImport(ctx, nil); !errors.Is(err, ipam.ErrInUse) ||
			!strings.Contains(advice.Text(err), "berth import --undo") {
			t.Fatalf("resumed while it is taken back: %v", err)
		}
	}
	step := func(line string) {
		t.Helper()
		r.line(line)
	}
	step("attach D net=large")
	undo("Docker network is on the subnet 10.2.0.0/24 of network large; remove it with `docker network rm`")
	step("detach D")
	step("take large nas pool")
	undo("network large is in use: 10.2.0.100 is held by nas")
	step("release large nas")
	step("reserve large nas 10.2.3.200")
	undo("network large is in use: 10.2.3.200 is reserved for nas")
	step("unreserve large nas")
	step("exclude large 10.2.5.77")
	undo("network large was changed since it was imported; if it is to go all the same, remove it with `berth " +
		"network rm large`")
	step("network.rm large ! inuse") // its own addresses and reservations
	step("release large rtr")
	step("network.rm large force")
	step("reserve seen nas")
	undo("network seen is in use: nas has a reservation in it; end that with `berth reservation rm`")
	step("unreserve seen nas")
	step("reserve there x 10.1.3.200")
	undo("the subnet 10.1.3.0/24 of network there is in use: 10.1.3.200 is reserved for x")
	step("unreserve there x")
	report, err := r.s.UndoImport(ctx, nil)
	if err != nil || !report.Undone {
		t.Fatalf("%+v, %v", report, err)
	}
	r.sound()
	if diff := cmp.Diff(before, records(t, r.store), ignoreRevisions); diff != "" {
		t.Fatalf("after it was taken back:\n%s", diff)
	}
	if _, err := r.s.UndoImport(ctx, nil); !errors.Is(err, ipam.ErrNotFound) ||
		!strings.Contains(err.Error(), "no import was cut off") {
		t.Errorf("taken back twice: %v", err)
	}
	if _, err := r.s.ResumeImport(ctx, nil); !errors.Is(err, ipam.ErrNotFound) {
		t.Errorf("finished after it was taken back: %v", err)
	}
	r.imports2(p)
}

// What changes between the check and the writing stops the import, by name, and it is finished when that is put right.
func TestImportOvertaken(t *testing.T) {
	p := largePlan()
	for _, c := range []struct{ edit, says, right string }{
		{"network small19", "there is a network small19 already", "network.rm small19"},
		{"subnet other 10.29.0.128/25", "overlaps 10.29.0.128/25", "subnet.rm other 10.29.0.128/25"},
		{"pool there 192.0.2.14+3", "192.0.2.10-192.0.2.14 overlaps the pool 192.0.2.14-192.0.2.16 of the subnet " +
			"192.0.2.0/24", "pool.rm there 192.0.2.14+3"},
		{"exclude there 192.0.2.62", "192.0.2.60-192.0.2.64 overlaps the exclusion 192.0.2.62 of the subnet " +
			"192.0.2.0/24", "include there 192.0.2.62"},
	} {
		r := newRoom(t)
		r.run(beforeLargePlan)
		did := false
		_, err := r.s.Import(ctx, p, ipam.ImportOptions{Progress: func(done, total int) {
			if !did {
				did = true
				if _, err := r.s.Import(ctx, p, ipam.ImportOptions{}); !errors.Is(err, ipam.ErrInUse) ||
					!strings.Contains(err.Error(), "an import is under way") {
					t.Errorf("a second import: %v", err)
				}
				if state, err := r.s.ImportState(ctx); err != nil || !state.Running || state.Done != done ||
					state.Total != total {
					t.Errorf("%+v, %v at %d of %d", state, err, done, total)
				}
				r.line(c.edit)
			}
		}})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(advice.Text(err), " steps; ") ||
			!strings.Contains(advice.Text(err), "; finish it with") {
			t.Fatalf("%s: %v, want %q", c.edit, err, c.says)
		}
		r.wholeOrNot(ipam.Plan{Networks: p.Networks[:22]})
		if _, err := r.s.ResumeImport(ctx, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Fatalf("resumed: %v", err)
		}
		r.line(c.right)
		if _, err := r.s.ResumeImport(ctx, nil); err != nil {
			t.Fatal(err)
		}
		r.sound()
	}
}

// What an import adds to may be gone when it comes to it; finished it cannot be then, and it can be taken back.
func TestImportWithoutItsNetwork(t *testing.T) {
	p := largePlan()
	p.Networks[0], p.Networks[22] = p.Networks[22], p.Networks[0]
	r := newRoom(t)
	r.run(beforeLargePlan)
	did := false
	_, err := r.s.Import(ctx, p, ipam.ImportOptions{Progress: func(int, int) {
		if !did {
			did = true
			r.line("network.rm there force")
		}
	}})
	if !errors.Is(err, ipam.ErrNotFound) || !strings.Contains(err.Error(), "to which it adds, was removed meanwhile") {
		t.Fatal(err)
	}
	if report, err := r.s.UndoImport(ctx, nil); err != nil || !report.Undone || report.Added.Networks == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	r.sound()
}

// TestUndoCutOff has the store fail in each transaction of the taking back, and goes on with it.
func TestUndoCutOff(t *testing.T) {
	p := largePlan()
	for at := 1; ; at++ {
		r := newRoom(t)
		r.run(beforeLargePlan)
		before := records(t, r.store)
		half, cancel := context.WithCancel(ctx)
		if _, err := r.s.Import(half, p, ipam.ImportOptions{Progress: func(done, total int) {
			if done > total*9/10 {
				cancel()
			}
		}}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		failed := false
		r.store.Each(func(n int) storetest.Fault {
			if failed = n >= at; n == at {
				return storetest.Fault{After: errors.New("broken")}
			}
			return storetest.Fault{}
		})
		_, err := r.s.UndoImport(ctx, nil)
		r.store.Each(nil)
		r.store.Heal()
		r.open()
		r.wholeOrNot(p)
		if err != nil {
			if state, err := r.s.ImportState(ctx); err != nil {
				t.Fatal(err)
			} else if state != nil {
				if _, err := r.s.UndoImport(ctx, nil); err != nil {
					t.Fatalf("after transaction %d: %v", at, err)
				}
			}
		}
		r.sound()
		if diff := cmp.Diff(before, records(t, r.store), ignoreRevisions); diff != "" {
			t.Fatalf("cut off in transaction %d:\n%s", at, diff)
		}
		if !failed {
			return
		}
	}
}

// TestImportJournalDamaged: fsck tells of a network that nothing can finish, and of a journal that has lost a part.
func TestImportJournalDamaged(t *testing.T) {
	for key, want := range map[string]string{
		"mimport":            "network large is being imported, and no import is open",
		"jc\x00\x00\x00\x01": "a part of the journal of an import is not there",
	} {
		r := newRoom(t)
		r.run(beforeLargePlan)
		half, cancel := context.WithCancel(ctx)
		if _, err := r.s.Import(half, largePlan(), ipam.ImportOptions{Progress: func(done, total int) {
			if done > total/4 {
				cancel()
			}
		}}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := r.store.Update(ctx, func(tx store.Tx) error { return tx.Delete([]byte(key)) }); err != nil {
			t.Fatal(err)
		}
		problems, err := r.s.Check(ctx)
		if err != nil || !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("without %q: %q, %v; want %q", key, problems, err, want)
		}
	}
}
