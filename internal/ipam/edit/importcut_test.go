package edit_test

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
	"berth/internal/ipam/ipamtest"
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
				Gateway:     netip.AddrFrom4([4]byte{10, byte(n), byte(i), 1}),
				GatewayNote: fmt.Sprintf("router of %s, floor %d", name, i),
				Pools: []ipam.PlannedPool{{Range: ipamtest.MustRange(fmt.Sprintf("10.%d.%d.100+9", n, i)),
					Name: "front"}}}
			if i == 0 {
				sub.Exclusions = []ipam.PlannedExclusion{{Range: ipamtest.MustRange(fmt.Sprintf("10.%d.%d.20+4", n, i)),
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
	p.Networks[0].Pools = []ipam.PlannedPool{{Range: ipamtest.MustRange("192.0.2.10+5"), Name: "front"}}
	p.Networks[0].Exclusions = []ipam.PlannedExclusion{{Range: ipamtest.MustRange("192.0.2.60+5")}}
	p.Networks[0].Subnets[1].Static = []ipam.PlannedBand{{Range: ipamtest.MustRange("10.1.1.9-10.1.1.19")}}
	p.Networks[0].Reservations = append(p.Networks[0].Reservations,
		ipam.PlannedReservation{Owner: "web-1-1", Address: netip.MustParseAddr("10.1.0.90"), Unplaced: true,
			Terms: ipam.Terms{Replaced: true, Until: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}})
	p.Networks = slices.Insert(p.Networks, 1, ipamtest.DynamicPlan())
	return p
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
	all := ipamtest.Dump(t, st)
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, `"e`) })
	return all
}

// wholeOrNot fails the test where a network of the plan is seen in part.
func wholeOrNot(r *ipamtest.Room, p ipam.Plan) {
	r.T.Helper()
	all, err := r.S.Networks(ctx, ipam.NetworkFilter{})
	fine(r.T, err)
	seen := map[string]ipam.NetworkInfo{}
	for _, n := range all {
		seen[n.Name] = n
	}
	for _, planned := range p.Networks[1:] {
		n, ok := seen[planned.Name]
		if ok && (len(n.Subnets) < len(planned.Subnets) || n.Use.Reserved < uint64(placed(planned.Reservations)) ||
			n.Use.Leased < uint64(len(planned.Addresses)+len(planned.Subnets))) {
			r.T.Fatalf("network %s is there with %d of %d subnets, %d of %d reservations", n.Name, len(n.Subnets),
				len(planned.Subnets), n.Use.Reserved, len(planned.Reservations))
		}
		if ok {
			continue
		}
		if _, err := r.S.Network(ctx, planned.Name); err == nil {
			r.T.Fatalf("network %s is not listed, and is shown", planned.Name)
		}
		if _, err := r.S.RequestPool(ctx, ipam.PoolRequest{Network: planned.Name}); err == nil {
			r.T.Fatalf("network %s is not there, and Docker is attached to it", planned.Name)
		}
	}
	leases := ipamtest.ListLeases(r.T, r.S, ipam.LeaseFilter{})
	if i := slices.IndexFunc(leases, func(l ipam.LeaseInfo) bool { _, ok := seen[l.Network]; return !ok }); i >= 0 {
		r.T.Fatalf("%s of network %s is listed, which is not there", leases[i].Address, leases[i].Network)
	}
	subnets, err := r.S.Subnets(ctx, "")
	fine(r.T, err)
	if i := slices.IndexFunc(subnets,
		func(sub ipam.SubnetInfo) bool { _, ok := seen[sub.Network]; return !ok }); i >= 0 {
		r.T.Fatalf("the subnet %s of network %s is listed, which is not there", subnets[i].CIDR, subnets[i].Network)
	}
}

// importable is a state in which a plan of several transactions is imported, with the plan, and what it comes to.
func importable(t *testing.T) (begin func() *ipamtest.Room, p ipam.Plan, want string, updates int) {
	p = withElastic(largePlan())
	begin = func() *ipamtest.Room {
		r := ipamtest.New(t)
		r.Run(beforeLargePlan)
		beforeElastic(r)
		return r
	}
	whole := begin()
	whole.Store.Each(func(n int) storetest.Fault { updates = n; return storetest.Fault{} })
	if report, err := whole.S.Import(ctx, p, ipam.ImportOptions{}); err != nil || report.Added.Networks != 22 ||
		report.Added.Reservations != 5*20+1+15*60+20*2+200 || report.Unchanged.Networks != 1 ||
		report.Added.Accounts != 2 || report.Added.Ranges != 1 || report.Added.Elastic != 60 ||
		report.Added.Associations != 20 || len(report.Unmade) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	sound(whole)
	if updates < 6 {
		t.Fatalf("the import has %d transactions; the plan is too small for this test", updates)
	}
	return begin, p, exported(whole), updates
}

// TestImportCutOff has the store fail in each transaction of an import, in each way, for once or, as if the daemon was
// killed, from then on. The daemon starts again: no network is there in part, nothing is left of one that was under way,
// and importing again comes to the same as an import that nothing cut off.
func TestImportCutOff(t *testing.T) {
	begin, p, want, updates := importable(t)
	faults := []struct {
		name string
		storetest.Fault
	}{
		{"before", storetest.Fault{Before: fmt.Errorf("%w: full", store.ErrNoSpace)}},
		{"after", storetest.Fault{After: errors.New("broken")}},
		{"lost", storetest.Fault{Lost: errors.New("broken")}},
	}
	drawn := storetest.Drawn(t, 4)
	for at := 1; at <= updates; at++ { // each transaction in two ways, each way in two of three
		for i, killed := range []bool{false, true} {
			if !drawn() {
				continue
			}
			fault := faults[(at+i)%len(faults)]
			t.Run(fmt.Sprintf("%s %d killed %v", fault.name, at, killed), func(t *testing.T) {
				r := begin()
				r.Store.Each(func(n int) storetest.Fault {
					if n == at || killed && n > at {
						return fault.Fault
					}
					return storetest.Fault{}
				})
				_, err := r.S.Import(ctx, p, ipam.ImportOptions{})
				if err == nil && 1 < at && at < updates { // the first one is a trial, which writes nothing
					t.Fatal("it was not cut off")
				}
				again(r, p, want)
			})
		}
	}
}

// TestImportAgainCutOff: what removes an unfinished network, and goes on, can be cut off in each transaction, too.
func TestImportAgainCutOff(t *testing.T) {
	begin, p, want, _ := importable(t)
	for n := range storetest.Sampled(t, 3) {
		at, failed := n+1, false
		r := begin()
		half, cancel := context.WithCancel(ctx)
		if _, err := r.S.Import(half, p, ipam.ImportOptions{Progress: func(done, total int) {
			if done > total/3 {
				cancel()
			}
		}}); !errors.Is(err, context.Canceled) || !strings.Contains(advice.Text(err), "import it again") {
			t.Fatalf("an import that is interrupted ended with %v", err)
		}
		wholeOrNot(r, p)
		r.Store.Each(func(n int) storetest.Fault {
			if failed = failed || n == at; n == at {
				return storetest.Fault{After: errors.New("broken")}
			}
			return storetest.Fault{}
		})
		_, _ = r.S.Import(ctx, p, ipam.ImportOptions{})
		again(r, p, want)
		if !failed {
			return
		}
	}
}

// again starts the daemon, imports, and compares what there is then with what there should be.
func again(r *ipamtest.Room, p ipam.Plan, want string) {
	r.T.Helper()
	r.Store.Each(nil)
	r.Store.Heal()
	r.Open()
	wholeOrNot(r, p)
	sound(r)
	imports2(r, p)
	if got := exported(r); got != want {
		r.T.Fatal(cmp.Diff(want, got))
	}
	r.Reopened()
}

// imports2 imports a plan that must succeed.
func imports2(r *ipamtest.Room, p ipam.Plan) {
	r.T.Helper()
	if _, err := r.S.Import(ctx, p, ipam.ImportOptions{}); err != nil {
		r.T.Fatal(err)
	}
	sound(r)
}

// What changes between the check and the writing stops the import, by name, and it is finished when that is put right.
func TestImportOvertaken(t *testing.T) {
	for _, c := range []struct{ edit, says, right string }{
		{"network small19", "there is a network small19 already", "network.rm small19"},
		{"subnet other 10.29.0.128/25", "overlaps 10.29.0.128/25", "subnet.rm other 10.29.0.128/25"},
		{"pool there 192.0.2.14+3", "192.0.2.10-192.0.2.14 overlaps the pool 192.0.2.14-192.0.2.16 of the subnet " +
			"192.0.2.0/24", "pool.rm there 192.0.2.14+3"},
		{"exclude there 192.0.2.62", "192.0.2.60-192.0.2.64 overlaps the exclusion 192.0.2.62 of the subnet " +
			"192.0.2.0/24", "include there 192.0.2.62"},
	} {
		p := largePlan()
		if strings.Contains(c.edit, " there ") { // it comes last then
			p.Networks[0], p.Networks[22] = p.Networks[22], p.Networks[0]
		}
		r := ipamtest.New(t)
		r.Run(beforeLargePlan)
		did := false
		_, err := r.S.Import(ctx, p, ipam.ImportOptions{Progress: func(int, int) {
			if !did {
				did = true
				if _, err := r.S.Import(ctx, p, ipam.ImportOptions{}); !errors.Is(err, ipam.ErrInUse) ||
					!strings.Contains(err.Error(), "an import is under way") {
					t.Errorf("a second import: %v", err)
				}
				r.Line(c.edit)
			}
		}})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(advice.Text(err), " steps; ") ||
			!strings.Contains(advice.Text(err), "; import it again") {
			t.Fatalf("%s: %v, want %q", c.edit, err, c.says)
		}
		wholeOrNot(r, ipam.Plan{Networks: p.Networks[:22]})
		r.Line(c.right)
		if _, err := r.S.Import(ctx, p, ipam.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		sound(r)
	}
}

// What an import adds to may be gone when it comes to it. Imported again, the plan makes it.
func TestImportWithoutItsNetwork(t *testing.T) {
	p := largePlan()
	p.Networks[0], p.Networks[22] = p.Networks[22], p.Networks[0]
	p.Networks[22].Pools, p.Networks[22].Exclusions = nil, nil // they are of a subnet that goes, too
	r := ipamtest.New(t)
	r.Run(beforeLargePlan)
	did := false
	_, err := r.S.Import(ctx, p, ipam.ImportOptions{Progress: func(int, int) {
		if !did {
			did = true
			r.Line("network.rm there force")
		}
	}})
	if !errors.Is(err, ipam.ErrNotFound) || !strings.Contains(err.Error(), "to which it adds, was removed meanwhile") {
		t.Fatal(err)
	}
	imports2(r, p)
	wholeOrNot(r, p)
}
