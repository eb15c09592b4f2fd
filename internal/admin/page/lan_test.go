package page_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// The views of a subnet and of an address show what a DHCP server gave: state, server, end, and why it is not
// bound. If no server gave anything the columns are empty and hidden.
func TestLN15OnThePage(t *testing.T) {
	clock := ipamtest.NewClock()
	server := ipamtest.NewLANServer(clock.Now)
	s, err := service.Open(ctx, service.Config{Store: mem.New(), Host: "h1", Now: clock.Now, AskLAN: server.Ask})
	must(t, err)
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPParent: "eth0"}}).ID
	web := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool, Name: "web", MAC: ipamtest.MAC(1)})
	must(t, s.ReleaseAddress(ctx, pool, web))
	server.Fail(ipam.LANSilent)
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool, Name: "web", MAC: ipamtest.MAC(2)})
	lease := ipamtest.ListLeases(t, s, ipam.LeaseFilter{Address: web})[0]
	h := pages(s, nil)
	type addressRow struct {
		Address, State, DHCPState, DHCPServer, DHCPExpires, DHCPWhy string
	}
	read := func(target string) map[string]addressRow {
		var got struct {
			Addresses []map[string]any `json:"addresses"`
		}
		must(t, json.Unmarshal([]byte(asked(t, h, target)), &got))
		all := map[string]addressRow{}
		for _, one := range got.Addresses {
			text := func(name string) string { s, _ := one[name].(string); return s }
			all[text("address")] = addressRow{text("address"), text("state"), text("dhcp_state"), text("dhcp_server"),
				text("dhcp_expires"), text("dhcp_why")}
		}
		return all
	}
	subnets, err := s.Subnets(ctx, "")
	if err != nil || len(subnets) != 1 {
		t.Fatal(subnets, err)
	}
	subnet := "/subnet/" + subnets[0].ID.String()
	for _, target := range []string{subnet + "?format=json", "/address/" + web.String() + "?format=json"} {
		got := read(target)[web.String()]
		if got.DHCPState != "unconfirmed" || got.DHCPServer != server.Server.String() || got.DHCPWhy != lease.DHCP.Why ||
			got.DHCPWhy == "" || !strings.HasPrefix(got.DHCPExpires, lease.DHCP.Expires.UTC().Format("2006-01-02T15:04:05")) {
			t.Errorf("%s: %+v, of the lease %+v", target, got, lease.DHCP)
		}
		if text := asked(t, h, strings.TrimSuffix(target, "?format=json")); !strings.Contains(text, "unconfirmed") ||
			!strings.Contains(text, ">DHCP server<") || strings.Contains(text, " hidden>DHCP server<") {
			t.Errorf("%s says nothing of the lease", target)
		}
	}

	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "plain",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("198.51.100.0/24"), Pool: true}}},
		&ipam.TakeAddress{Network: "plain", Owner: "db"}); err != nil {
		t.Fatal(err)
	}
	plain, err := s.Subnets(ctx, "")
	must(t, err)
	for i := range plain {
		if plain[i].Network == "plain" {
			if text := asked(t, h, "/subnet/"+plain[i].ID.String()); !strings.Contains(text, " hidden>DHCP server<") {
				t.Error("a subnet without DHCP has columns for it that are seen")
			}
		}
	}
	if n := s.LANLeases()[lease.Network]; n[ipam.LANUnconfirmed] != 1 || len(n) != 1 {
		t.Errorf("%v are counted", n)
	}
}
