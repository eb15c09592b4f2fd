package view_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// A list that is longer than its pages is complete and in order. A caller can leave it early.
func TestLeasesInPages(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	const n = 1500
	for _, cidr := range ipamtest.Prefixes("10.1.0.0/20", "10.2.0.0/29") {
		pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: cidr})
		for i := range min(n, 1<<(32-cidr.Bits())-2) {
			ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(i + 1)})
		}
	}
	all := ipamtest.ListLeases(t, s, ipam.LeaseFilter{})
	if len(all) != n+6 {
		t.Fatalf("%d leases are listed, want %d", len(all), n+6)
	}
	for i := range all[1:] {
		if !all[i].Address.Less(all[i+1].Address) {
			t.Fatalf("%v comes before %v", all[i].Address, all[i+1].Address)
		}
	}
	if got := ipamtest.ListLeases(t, s, ipam.LeaseFilter{Subnet: netip.MustParsePrefix("10.2.0.0/29")}); len(got) != 6 {
		t.Errorf("%d leases of the small subnet", len(got))
	}
	seen := 0
	for range s.Leases(ctx, ipam.LeaseFilter{}) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("left after %d", seen)
	}
}

// A count is a JSON number while that is exact, and a decimal string above.
func TestCountJSON(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "9007199254740991": "9007199254740991",
		"9007199254740992":     `"9007199254740992"`,
		"18446744073709551615": `"18446744073709551615"`} {
		n, _ := new(big.Int).SetString(text, 10)
		got, err := json.Marshal(ipam.Count{Int: n})
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
		var back ipam.Count
		if err := json.Unmarshal(got, &back); err != nil || back.Cmp(n) != 0 {
			t.Errorf("%s came back as %v, %v", text, back, err)
		}
	}
}

// Berth keeps for each Docker network whether Berth chose its subnet. Engines before v29 depend on that.
func TestAttachmentsOfChosenSubnets(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	named := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.1.0.0/24")})
	chosen := ipamtest.MustPool(t, s, ipam.PoolRequest{})
	beside := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: chosen.CIDR})
	subnets, err := s.Subnets(ctx, "")
	must(t, err)
	for _, sub := range subnets {
		var want []ipam.ID
		if sub.CIDR == chosen.CIDR {
			want = []ipam.ID{chosen.ID}
		}
		if !slices.Equal(sub.Chosen, want) {
			t.Errorf("of %s, attached to by %v, chosen are %v, want %v", sub.CIDR, sub.Attachments, sub.Chosen, want)
		}
	}
	attachments, err := s.Attachments(ctx)
	must(t, err)
	for _, at := range attachments {
		if at.Chosen != (at.ID == chosen.ID) {
			t.Errorf("%v, of %v, %v and %v", at, named.ID, chosen.ID, beside.ID)
		}
	}
}
