package edit_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// withElastic adds elastic addresses to a plan. Some are associated with its reservations on the network large.
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

// beforeElastic makes what exists before the plan.
func beforeElastic(r *ipamtest.Stage) {
	r.Edit(&ipam.AddElasticRange{Range: ipamtest.MustRange("100.64.0.0+8")}, &ipam.AllocateElastic{})
}

// exportedElastic returns the elastic addresses in the form of a document.
func exportedElastic(r *ipamtest.Stage) string {
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

// TestImportElasticRefused: all errors are reported with their lines before anything is written. An association
// whose container has no address yet is reported, and the rest is added.
func TestImportElasticRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(beforeLargePlan)
	beforeElastic(r)
	problems(t, r, `
		=== elastic
		- {name: new, subnets: [{cidr: 10.1.2.0/24}]}
		elastic:
		  accounts:
		  - {name: shop, quota: 1}
		  - {name: a b}
		  ranges:
		  - {range: 10.1.2.8+2}
		  - {range: 192.0.2.8+2}
		  - {range: 203.0.113.0+8}
		  addresses:
		  - {address: 203.0.113.1, account: shop}
		  - {address: 203.0.113.2, account: shop}
		  - {address: 203.0.113.99}
		  - {address: 100.64.0.0, account: shop}
		! 7:
		! 9:
		! 10:
		! 14:
		! 15:
		! 16:
	`)
	report, err := r.S.Import(ctx, read(r, `version: 1
elastic:
  accounts: [{name: shop, quota: 1}]
  ranges: [{range: 203.0.113.0+8}]
  addresses:
  - {address: 203.0.113.1, account: shop, instance: nobody}
`), ipam.ImportOptions{})
	if err != nil || len(report.Unmade) != 1 || report.Unmade[0].Line != 6 || report.Added.Elastic != 1 ||
		report.Added.Associations != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
