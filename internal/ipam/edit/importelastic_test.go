package edit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// withElastic gives a plan elastic addresses, some of them associated with what it reserves on the network large.
func withElastic(p ipam.Plan) ipam.Plan {
	for i := range p.Networks {
		if p.Networks[i].Name == "large" {
			p.Networks[i].Elastic = "on"
		}
	}
	quota := 60
	p.Elastic = &ipam.PlannedElastic{
		Accounts: []ipam.PlannedAccount{
			{CreateAccount: ipam.CreateAccount{Account: "shop", Domain: "d", Quota: &quota, Owners: []string{"web-3-*"}}},
			{CreateAccount: ipam.CreateAccount{Account: "default", Quota: &quota}}},
		Ranges: []ipam.PlannedElasticRange{{AddElasticRange: ipam.AddElasticRange{
			Range: ipamtest.MustRange("203.0.113.0/24"), Announce: "eth0"}}},
	}
	for i := range 60 {
		one := ipam.PlannedElasticAddress{Address: netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), Account: "shop"}
		if i < 20 {
			one.Instance, one.Network, one.EgressOnly = fmt.Sprintf("web-3-%d", i), "large", i%2 == 0
		}
		p.Elastic.Addresses = append(p.Elastic.Addresses, one)
	}
	return p
}

// beforeElastic is what is there before the plan.
func beforeElastic(r *ipamtest.Room) {
	r.Edit(&ipam.AddElasticRange{Range: ipamtest.MustRange("100.64.0.0+8")}, &ipam.AllocateElastic{})
}

// exportedElastic is what a document has of elastic addresses.
func exportedElastic(r *ipamtest.Room) string {
	var b strings.Builder
	accounts, err := r.S.Accounts(ctx)
	fine(r.T, err)
	for _, a := range accounts {
		if !a.Created.IsZero() {
			fmt.Fprintf(&b, "account %s %s %v %v\n", a.Name, a.Domain, *a.Quota, a.Owners)
		}
	}
	ranges, err := r.S.ElasticRanges(ctx)
	fine(r.T, err)
	for _, one := range ranges {
		fmt.Fprintf(&b, "range %s %s %s %v %s\n", one.Range, one.Host, one.Announce, one.TTL, one.OnCut)
	}
	all, err := r.S.Elastics(ctx, "", netip.Addr{}, 0)
	fine(r.T, err)
	for _, one := range all {
		fmt.Fprintf(&b, "%s %s %s %s %s %s %v\n", one.Address, one.State, one.Account, one.Instance, one.Network, one.Guest,
			one.EgressOnly)
	}
	return b.String()
}

// TestImportElasticRefused: all that is wrong is refused with its line before anything is written; an association whose
// container has no address yet is told of, and the rest is made.
func TestImportElasticRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(beforeLargePlan)
	beforeElastic(r)
	one := 1
	plan := ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "new", Line: 2,
		Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.1.2.0/24")}}}},
		Elastic: &ipam.PlannedElastic{
			Accounts: []ipam.PlannedAccount{{CreateAccount: ipam.CreateAccount{Account: "shop", Quota: &one}, Line: 11},
				{CreateAccount: ipam.CreateAccount{Account: "a b"}, Line: 12}},
			Ranges: []ipam.PlannedElasticRange{
				{AddElasticRange: ipam.AddElasticRange{Range: ipamtest.MustRange("10.1.2.8+2")}, Line: 13},
				{AddElasticRange: ipam.AddElasticRange{Range: ipamtest.MustRange("192.0.2.8+2")}, Line: 14},
				{AddElasticRange: ipam.AddElasticRange{Range: ipamtest.MustRange("203.0.113.0+8")}, Line: 15}},
			Addresses: []ipam.PlannedElasticAddress{{Address: netip.MustParseAddr("203.0.113.1"), Account: "shop", Line: 16},
				{Address: netip.MustParseAddr("203.0.113.2"), Account: "shop", Line: 17},
				{Address: netip.MustParseAddr("203.0.113.99"), Line: 18},
				{Address: netip.MustParseAddr("100.64.0.0"), Account: "shop", Line: 19}}}}
	before := records(t, r.Store)
	refusedLines := func(want string) {
		t.Helper()
		_, err := r.S.Import(ctx, plan, ipam.ImportOptions{})
		var wrong *ipam.PlanError
		if !errors.As(err, &wrong) {
			t.Fatalf("it is imported with %v", err)
		}
		var lines []int
		for _, one := range wrong.Problems {
			lines = append(lines, one.Line)
		}
		if got := fmt.Sprint(lines); got != want {
			t.Errorf("the lines %s are refused, and not %s: %v", got, want, wrong.Problems)
		}
		if diff := cmp.Diff(before, records(t, r.Store)); diff != "" {
			t.Errorf("it was written:\n%s", diff)
		}
	}
	refusedLines("[12 13 14 17 18 19]")
	plan.Elastic.Accounts, plan.Elastic.Ranges = plan.Elastic.Accounts[:1], plan.Elastic.Ranges[2:]
	plan.Elastic.Addresses = plan.Elastic.Addresses[:1]
	plan.Elastic.Addresses[0].Instance = "nobody"
	report, err := r.S.Import(ctx, plan, ipam.ImportOptions{})
	if err != nil || len(report.Unmade) != 1 || report.Unmade[0].Line != 16 || report.Added.Elastic != 1 ||
		report.Added.Associations != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
