package edit_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
	"berth/store"
	"berth/store/storetest"
)

// largePlan needs several transactions: it adds subnets to an existing network, and has new networks, large and
// small.
func largePlan(t *testing.T) ipam.Plan {
	b := strings.Builder{}
	network := func(name string, n, subnets, each int, more string) {
		fmt.Fprintf(&b, "- name: %s\n%s  subnets:\n", name, more)
		reservations, addresses := "  reservations:\n", "  addresses:\n"
		for i := range subnets {
			at := fmt.Sprintf("10.%d.%d.", n, i)
			fmt.Fprintf(&b, "  - {cidr: %s0/24, gateway: %s1, gateway_note: 'router of %s, floor %d',"+
				" pools: [{range: %s100+9, name: front}]", at, at, name, i, at)
			if i == 0 {
				fmt.Fprintf(&b, ", exclusions: [{range: %s20+4, note: printers}]", at)
			}
			if name == "there" && i == 1 {
				b.WriteString(", static: [10.1.1.9-10.1.1.19]")
			}
			b.WriteString("}\n")
			for a := range each {
				reservations += fmt.Sprintf("  - {owner: web-%d-%d, address: %s%d}\n", i, a, at, a+10)
			}
			addresses += "  - {owner: rtr, address: " + at + "9}\n"
		}
		if name == "there" {
			reservations += "  - {owner: web-1-1, address: 10.1.0.90, replaced: true, until: 2026-03-01T00:00:00Z}\n"
		}
		b.WriteString(reservations + addresses)
	}
	network("there", 1, 5, 20, "  pools: [{range: 192.0.2.10+5, name: front}]\n  exclusions: [192.0.2.60+5]\n")
	network("large", 2, 15, 60, "")
	for i := range 20 {
		network(fmt.Sprintf("small%02d", i), 10+i, 1, 2, "")
	}
	p, err := plan.ReadYAML(strings.NewReader("version: 1\nnetworks:\n" + b.String()))
	fine(t, err)
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

// wholeOrNot fails the test if a part of a network of the plan is visible.
func wholeOrNot(r *ipamtest.Stage, p ipam.Plan) {
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

// importable returns a function that makes a state, a plan that takes several transactions to import into it, the
// plan after the import, and the number of transactions.
func importable(t *testing.T) (begin func() *ipamtest.Stage, p ipam.Plan, want string, updates int) {
	p = withElastic(largePlan(t))
	begin = func() *ipamtest.Stage {
		r := ipamtest.New(t)
		r.Run(beforeLargePlan)
		beforeElastic(r)
		return r
	}
	whole := begin()
	whole.Store.Each(func(n int) storetest.Fault { updates = n; return storetest.Fault{} })
	report, err := whole.S.Import(ctx, p, ipam.ImportOptions{})
	if err != nil || report.Added.Networks != 22 || report.Added.Reservations != 5*20+1+15*60+20*2+200 ||
		report.Unchanged.Networks != 1 || report.Added.Accounts != 2 || report.Added.Ranges != 1 ||
		report.Added.Elastic != 60 || report.Added.Associations != 20 || len(report.Unmade) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	sound(whole)
	if updates < 6 {
		t.Fatalf("the import has %d transactions; the plan is too small for this test", updates)
	}
	want, all := exported(whole), report.Unchanged.Plus(report.Added, 1)
	if again, err := whole.S.Import(ctx, p, ipam.ImportOptions{}); err != nil || again.Added != (ipam.Counts{}) ||
		again.Unchanged != all {
		t.Errorf("imported again: %+v, %v; it had %+v", again, err, all)
	}
	return begin, p, want, updates
}

// TestImportCutOff fails each transaction of an import in each way, once or, as if the daemon was killed, from then
// on. After a restart no network is there in part, nothing is left of an unfinished one, and a repeated import gives
// the same result as one that was not cut off.
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

// TestImportAgainCutOff: the repeated import, which first removes an unfinished network, can be cut off in each
// transaction, too.
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

// again restarts the daemon, imports, and compares the result.
func again(r *ipamtest.Stage, p ipam.Plan, want string) {
	r.T.Helper()
	r.Store.Each(nil)
	r.Store.Heal()
	r.Open()
	wholeOrNot(r, p)
	sound(r)
	importsPlan(r, p)
	if got := exported(r); got != want {
		r.T.Fatal(cmp.Diff(want, got))
	}
	r.Reopened()
}

// A change between the check and the writing stops the import, with its reason. After that is corrected, a repeated
// import adds the rest (BO-10).
func TestImportOvertaken(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		network small19 | network small19 already exists | network.rm small19
		subnet other 10.29.0.128/25 | overlaps 10.29.0.128/25 | subnet.rm other 10.29.0.128/25
		pool there 192.0.2.14+3 | 192.0.2.10-192.0.2.14 overlaps the pool 192.0.2.14-192.0.2.16 of the subnet 192.0.2.0/24 | pool.rm there 192.0.2.14+3
		exclude there 192.0.2.62 | 192.0.2.60-192.0.2.64 overlaps the exclusion 192.0.2.62 of the subnet 192.0.2.0/24 | include there 192.0.2.62
		network.set late static=10.9.0.8/29 | 10.9.0.9 cannot be an automatic address of x | network.set late static=none
		network.set late static=10.9.0.60 | the range 10.9.0.60-10.9.0.64 overlaps the static band 10.9.0.60 | network.set late static=none
		# a repeated import makes the network
		network.rm there force | to which the import adds, was removed meanwhile | network more
	`) {
		t.Run(row[0], func(t *testing.T) {
			p := largePlan(t)
			if strings.Contains(row[0], " there ") { // the import makes it last then
				p.Networks[0], p.Networks[22] = p.Networks[22], p.Networks[0]
			}
			if strings.HasPrefix(row[0], "network.rm") { // their subnet goes, too
				p.Networks[22].Pools, p.Networks[22].Exclusions = nil, nil
			}
			p.Networks = append(p.Networks, ipam.PlannedNetwork{Name: "late",
				Exclusions: []ipam.PlannedExclusion{{Range: ipamtest.MustRange("10.9.0.60+5")}},
				Reservations: []ipam.PlannedReservation{{Owner: "x", Address: netip.MustParseAddr("10.9.0.9"),
					Automatic: true}}})
			r := ipamtest.New(t)
			r.Run(beforeLargePlan + "\nnetwork late subnet=10.9.0.0/24")
			did := false
			_, err := r.S.Import(ctx, p, ipam.ImportOptions{Progress: func(int, int) {
				if !did {
					did = true
					_, err := r.S.Import(ctx, p, ipam.ImportOptions{})
					r.Refused("a second import", "inuse; another import is under way", err)
					r.Line(row[0])
				}
			}})
			r.Refused(row[0], "inuse|overlap|invalid|notfound; "+row[1]+"; steps; import it again", err)
			wholeOrNot(r, ipam.Plan{Networks: p.Networks[:22]})
			r.Line(row[2])
			importsPlan(r, p)
			wholeOrNot(r, p)
			r.Run("owned late -> x=10.9.0.9:a")
		})
	}
}
