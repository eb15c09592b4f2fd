package service_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/lan"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// wish reads a Docker network's wish for a subnet, in the few forms of these tests.
func wish(n ipam.EngineNetwork, sub ipam.EngineSubnet) (ipam.PoolRequest, error) {
	if n.Driver != "berth" {
		return ipam.PoolRequest{}, errors.New("its addresses are another driver's")
	}
	req := ipam.PoolRequest{Space: "local", CIDR: sub.CIDR, Network: n.Options["network"], IPv6: sub.CIDR.Addr().Is6()}
	if sub.Range.IsValid() {
		req.Range = ipamtest.MustRange(sub.Range.String())
	}
	return req, nil
}

// engine returns what runs: two Docker networks, one of them with both families, and three containers.
func engine(t *testing.T) (view ipam.EngineView) {
	fine(t, json.Unmarshal([]byte(`{"host": "h1", "networks": [
		{"id": "n1", "name": "front", "driver": "berth", "subnets": [
			{"cidr": "10.1.0.0/24", "gateway": "10.1.0.1", "aux": {"router": "10.1.0.2"}},
			{"cidr": "fd01::/64", "gateway": "fd01::1"}]},
		{"id": "n2", "name": "back", "driver": "berth", "subnets": [
			{"cidr": "10.2.0.0/24", "range": "10.2.0.64/26", "gateway": "10.2.0.65"}]}
	], "containers": [
		{"id": "c1", "name": "web", "state": "running", "endpoints": [
			{"network": "n1", "id": "e1", "mac": "02:00:00:00:00:01", "addresses": ["10.1.0.3", "fd01::2"]},
			{"network": "n2", "id": "e2", "mac": "02:00:00:00:00:02", "addresses": ["10.2.0.66"]}]},
		{"id": "c2", "name": "shop-db-1", "state": "running", "endpoints": [
			{"network": "n1", "id": "e3", "mac": "02:00:00:00:00:03", "addresses": ["10.1.0.9"]}]},
		{"id": "c3", "name": "stopped", "state": "exited", "endpoints": [{"network": "n1"}]}
	]}`), &view))
	return view
}

// BO-4: a store that forgets learns again what runs. Nobody else gets an address that runs, whatever their MAC and
// name. The ids that the engine keeps stay the same. A release works.
func TestBO4Rebuilt(t *testing.T) {
	before := ipamtest.Forgetful(t)
	fine(t, before.S.Rebuild(ctx, engine(t), wish))
	after := ipamtest.Forgetful(t)
	fine(t, after.S.Rebuild(ctx, engine(t), wish))
	type lease struct {
		Address, Name, MAC string
		Kind               ipam.Kind
		Pool               ipam.ID
	}
	seen := map[string][]lease{}
	for name, r := range map[string]*ipamtest.Stage{"before": before, "after": after} {
		for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{}) {
			seen[name] = append(seen[name], lease{l.Address.String(), l.Name, l.MAC.String(), l.Kind, l.Pool})
		}
		if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("%q, %v", problems, err)
		}
	}
	if diff := cmp.Diff(seen["before"], seen["after"]); diff != "" {
		t.Errorf("built twice, it is another state:\n%s", diff)
	}
	var got []string
	for _, l := range seen["after"] {
		got = append(got, l.Address+" "+l.Name+" "+l.Kind.String())
	}
	want := "10.1.0.1  gateway, 10.1.0.2  auxiliary, 10.1.0.3 web static, 10.1.0.9 shop-db-1 static, 10.2.0.65  " +
		"gateway, 10.2.0.66 web static, fd01::1  gateway, fd01::2 web static"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("it has %s", text)
	}
	after.Pools["A"] = seen["after"][2].Pool
	for _, line := range []string{"ask A web mac=1 ip=10.1.0.3 !", "ask A new mac=7 -> 10.1.0.4",
		"ask A mac=8 ip=10.1.0.9 !", "back A 10.1.0.9", "ask A mac=8 ip=10.1.0.9 -> 10.1.0.9"} {
		step, want, _ := strings.Cut(line, " -> ")
		step, refused := strings.CutSuffix(step, " !")
		got, err := after.Step(strings.Fields(step))
		if got != want || refused != (ipam.CodeOf(err) == ipam.AlreadyInUse) || !refused && err != nil {
			t.Errorf("%s: %s, %v", line, got, err)
		}
	}
}

// BO-4: Berth reports what it cannot rebuild, and rebuilds the rest.
func TestBO4RebuiltInPart(t *testing.T) {
	view := engine(t)
	view.Networks = append(view.Networks,
		ipam.EngineNetwork{ID: "n3", Name: "bridge", Driver: "default",
			Subnets: []ipam.EngineSubnet{{CIDR: netip.MustParsePrefix("172.17.0.0/16")}}})
	view.Containers = append(view.Containers,
		ipam.EngineContainer{ID: "c4", Name: "twin", Endpoints: []ipam.EngineEndpoint{
			{Network: "n1", ID: "e9", MAC: ipamtest.MAC(9),
				Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.3"), netip.MustParseAddr("fd01::9")}}}})
	r := ipamtest.Forgetful(t)
	err := r.S.Rebuild(ctx, view, wish)
	if ipam.CodeOf(err) != ipam.AlreadyInUse { // BO-5
		t.Errorf("an address that runs twice: %v", err)
	}
	for _, part := range []string{"twin", "10.1.0.3", "web", "bridge"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("it says not %q: %v", part, err)
		}
	}
	var got []string
	for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{}) {
		if l.Name != "" {
			got = append(got, l.Name+"="+l.Address.String())
		}
	}
	if text := strings.Join(got, " "); text != "web=10.1.0.3 shop-db-1=10.1.0.9 web=10.2.0.66 web=fd01::2 "+
		"twin=fd01::9" {
		t.Errorf("it has %s", text)
	}
}

// BO-4: a forgotten planned network is rebuilt, with what runs on it.
func TestBO4Replanned(t *testing.T) {
	view := engine(t)
	view.Networks[0].Options = map[string]string{"network": "street"}
	r := ipamtest.Forgetful(t)
	fine(t, r.S.Rebuild(ctx, view, wish))
	n := r.Show("street")
	if len(n.Subnets) != 2 || n.Docker != 2 || n.Subnets[0].Gateway.String() != "10.1.0.1" {
		t.Errorf("%+v", n)
	}
	for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{}) {
		if l.Address.String() == "10.1.0.3" && l.Network != "street" {
			t.Errorf("%+v", l)
		}
	}
}

// BO-5: in a state that is rebuilt from what runs, a second reservation of an address is refused for every owner.
func TestBO5Forgets(t *testing.T) {
	r := ipamtest.Forgetful(t)
	r.Edit(ipamtest.Edits(t, "network n subnet=192.0.2.0/28,pool")...)
	for _, line := range []string{"a 192.0.2.5", "a 192.0.2.5 !", "b 192.0.2.5 !", "b", "b !", "c"} {
		step, refused := strings.CutSuffix(line, " !")
		_, err := r.Step(strings.Fields("reserve n " + step))
		if refused != (ipam.CodeOf(err) == ipam.AlreadyInUse) || !refused && err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if got := r.Owned([]string{"n"}); got != "b=192.0.2.1:a c=192.0.2.2:a a=192.0.2.5" {
		t.Errorf("reserved are %s", got)
	}
}

// BO-5, BO-9: there, a bind of several addresses uses each once. A repeated bind gives the same addresses. A bind
// to another owner's address is refused.
func TestBO5ForgetsBind(t *testing.T) {
	r := ipamtest.Forgetful(t)
	r.Edit(ipamtest.Edits(t, "network n subnet=192.0.2.0/28,pool")...)
	for range 2 {
		got, err := r.Step(strings.Fields("bind n a=pool,192.0.2.5 b"))
		if fine(t, err); got != "192.0.2.1 192.0.2.5 192.0.2.2" {
			t.Error(got)
		}
	}
	_, err := r.Step(strings.Fields("bind n a=pool,192.0.2.5 b=192.0.2.5"))
	if ipam.CodeOf(err) != ipam.AlreadyInUse {
		t.Errorf("the address of another: %v", err)
	}
}

// LN-15: a network whose DHCP server chooses the addresses is rebuilt while no server answers on the LAN. When the
// server answers, Berth asks it for the running addresses with the same client as before.
func TestLN15Rebuilt(t *testing.T) {
	clock := ipamtest.NewClock()
	server := ipamtest.NewLANServer(clock.Now)
	view := ipam.EngineView{Host: "h1", Networks: []ipam.EngineNetwork{{ID: "n1", Name: "lan",
		Subnets: []ipam.EngineSubnet{{CIDR: server.Subnet, Gateway: server.Gateway}}}}}
	var web netip.Addr
	had := ""
	for _, life := range []string{"first", "rebuilt"} {
		s, err := service.Open(ctx, service.Config{Store: mem.New(), Host: "h1", Now: clock.Now, AskLAN: server.Ask,
			Forgets: true})
		fine(t, err)
		keeper := lan.Of(s.Ledger).Schedule()
		if life == "first" {
			pool := ipamtest.MustPool(t, s, ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPParent: "eth0"}}).ID
			web = ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool, Name: "web", MAC: ipamtest.MAC(1)})
			had = server.Has(web)
			view.Containers = []ipam.EngineContainer{{ID: "c1", Name: "web", State: "running",
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", ID: "e1", MAC: ipamtest.MAC(1), Addresses: []netip.Addr{web}}}}}
			continue
		}
		server.Fail(ipam.LANNoEdge)
		if err := s.Rebuild(ctx, view, func(_ ipam.EngineNetwork, sub ipam.EngineSubnet) (ipam.PoolRequest, error) {
			return ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: sub.CIDR, LANTerms: ipam.LANTerms{DHCPParent: "eth0"}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		server.Fail("")
		clock.Time = clock.Time.Add(2 * time.Second)
		fine(t, keeper.Round(ctx))
		all := ipamtest.ListLeases(t, s, ipam.LeaseFilter{Address: web})
		if len(all) != 1 || all[0].DHCP == nil || all[0].DHCP.State != ipam.LANBound || server.Has(web) != had {
			t.Fatalf("it has %+v, and the server gave it to %q", all, server.Has(web))
		}
	}
}
