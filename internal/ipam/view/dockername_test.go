package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// called lists the names that lists, JSON, events and searches show for the networks of a service.
func called(t *testing.T, s *service.Service) (names []string) {
	t.Helper()
	add := func(what, name string) { names = append(names, what+" "+name) }
	networks, err := s.Networks(ctx, ipam.NetworkFilter{})
	must(t, err)
	subnets, err := s.Subnets(ctx, "")
	must(t, err)
	events, err := s.Events(ctx, ipam.EventFilter{First: 100})
	must(t, err)
	for i := range networks {
		add("network", networks[i].Name)
		text, err := json.Marshal(&networks[i])
		must(t, err)
		var fields struct{ Name string }
		must(t, json.Unmarshal(text, &fields))
		add("json", fields.Name)
	}
	for i := range subnets {
		add("subnet", subnets[i].Network)
	}
	for _, l := range ipamtest.ListLeases(t, s, ipam.LeaseFilter{}) {
		add("lease", l.Network)
	}
	for i := range events {
		if events[i].NetworkID != (ipam.ID{}) {
			add("event", events[i].Network)
		}
		if events[i].Verb == ipam.SubnetCreated {
			add("event", events[i].Name)
		}
	}
	for one, err := range s.Find(ctx, ipam.FindFilter{Word: "10.7.0.2"}) {
		must(t, err)
		add("found", one.Network)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A network that Docker requested has the engine's name wherever it is shown. Before the engine names it, its name
// is made of its id. Earlier events have the engine's name, too.
func TestDockersNames(t *testing.T) {
	said := map[netip.Prefix]string{}
	s, err := service.Open(ctx, service.Config{Store: mem.New(), Host: "h1", Now: ipamtest.NewClock().Now,
		Known: ipam.Known{DockerNetwork: func(_ string, cidr netip.Prefix) string { return said[cidr] }}})
	must(t, err)
	lan, lan6 := netip.MustParsePrefix("10.7.0.0/24"), netip.MustParsePrefix("2001:db8:7::/64")
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: "local", CIDR: lan})
	must(t, err)
	_, err = s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(1), Name: "web",
		Preferred: netip.MustParseAddr("10.7.0.2")})
	must(t, err)
	all, err := s.Networks(ctx, ipam.NetworkFilter{})
	must(t, err)
	id := all[0].ID

	everywhere := func(name string) []string {
		var names []string
		for _, what := range []string{"event", "found", "json", "lease", "network", "subnet"} {
			names = append(names, what+" "+name)
		}
		return names
	}
	if got, want := called(t, s), everywhere("net-"+id.Short()); !slices.Equal(got, want) {
		t.Errorf("before the engine has said a name: %q, want %q", got, want)
	}
	said[lan] = "shop_default"
	if got, want := called(t, s), everywhere("shop_default"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, ref := range []string{"shop_default", "net-" + id.Short(), id.String()} {
		if n, err := s.Network(ctx, ref); err != nil || n.ID != id {
			t.Errorf("%s is %v, %v", ref, n.ID, err)
		}
	}

	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveNetwork{Network: id.String()})
	if err == nil || !strings.Contains(err.Error(), "10.7.0.0/24 of network shop_default;") {
		t.Errorf("the network is removed: %v", err)
	}

	// A Docker network of both families is two networks of Berth with one name. An edit must name one of them.
	_, err = s.RequestPool(ctx, ipam.PoolRequest{Space: "local", CIDR: lan6})
	must(t, err)
	said[lan6] = "shop_default"
	var ids []string
	all, err = s.Networks(ctx, ipam.NetworkFilter{})
	must(t, err)
	for _, n := range all {
		if n.Name != "shop_default" {
			t.Errorf("one of both is called %s", n.Name)
		}
		ids = append(ids, n.ID.String())
	}
	slices.Sort(ids)
	name := "front"
	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.ModifyNetwork{Network: "shop_default", Name: &name})
	if err == nil || len(ids) != 2 {
		t.Fatalf("%d networks, and one was chosen: %v", len(ids), err)
	}
	for _, says := range []string{"the Docker name shop_default is on 2 networks", ids[0] + " (", " and " +
		"" + ids[1] + " (",
		"(10.7.0.0/24)", "(2001:db8:7::/64)", "give the id of the network that you mean"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the refusal does not say %q: %v", says, err)
		}
	}
	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.ModifyNetwork{Network: id.String(), Name: &name})
	must(t, err)
	if n, err := s.Network(ctx, "shop_default"); err != nil || n.ID == id {
		t.Errorf("the one that is left is %v, %v", n.ID, err)
	}
}

// An edit plans a network of Docker's by the shown name. The name stays valid, in the same transaction and after
// it.
func TestDockersNamePlanned(t *testing.T) {
	lan := netip.MustParsePrefix("10.7.0.0/24")
	s, err := service.Open(ctx, service.Config{Store: mem.New(), Host: "h1", Now: ipamtest.NewClock().Now,
		Known: ipam.Known{DockerNetwork: func(string, netip.Prefix) string { return "pinned" }}})
	must(t, err)
	_, err = s.RequestPool(ctx, ipam.PoolRequest{Space: "local", CIDR: lan})
	must(t, err)
	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.AddReservation{Network: "pinned", Owner: "one"},
		&ipam.AddReservation{Network: "pinned", Owner: "two"})
	must(t, err)
	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveReservation{Network: "pinned", Owner: "one"})
	must(t, err)
	n, err := s.Network(ctx, "pinned")
	must(t, err)
	if !n.Planned || n.Name != "pinned" || n.Use.Reserved != 1 {
		t.Errorf("%+v", n)
	}
}

// An edit of a Docker network of both families means the half that has the other things it names.
func TestDockersNameMeant(t *testing.T) {
	lan, lan6 := netip.MustParsePrefix("10.7.0.0/24"), netip.MustParsePrefix("2001:db8:7::/64")
	s, err := service.Open(ctx, service.Config{Store: mem.New(), Host: "h1", Now: ipamtest.NewClock().Now,
		Known: ipam.Known{DockerNetwork: func(string, netip.Prefix) string { return "shop" }}})
	must(t, err)
	for _, cidr := range []netip.Prefix{lan, lan6} {
		_, err = s.RequestPool(ctx, ipam.PoolRequest{Space: "local", CIDR: cidr})
		must(t, err)
	}
	made := func(e ipam.Edit, want netip.Prefix) {
		t.Helper()
		out, err := s.Edit(ctx, ipam.EditOptions{}, e)
		if err != nil {
			t.Errorf("%s: %v", e.Op(), err)
			return
		}
		n, err := s.Network(ctx, out.Results[0].Network.String())
		must(t, err)
		if n.Subnets[0].CIDR != want {
			t.Errorf("%s was made in the network of %s", e.Op(), n.Subnets[0].CIDR)
		}
	}
	for family, cidr := range map[int]netip.Prefix{4: lan, 6: lan6} {
		made(&ipam.TakeAddress{Network: "shop", Owner: fmt.Sprint("family-", family),
			Interface: ipam.Interface{Wishes: []ipam.Wish{{Family: family}}}}, cidr)
	}
	for line := range strings.Lines(`take shop a 10.7.0.9 -> lan
		take shop b 2001:db8:7::9 -> lan6
		take shop e pool subnet=10.7.0.0/24 -> lan
		release shop a 10.7.0.9 -> lan
		release shop b 2001:db8:7::9 -> lan6
		reserve shop f 2001:db8:7::9 -> lan6
		unreserve shop f 2001:db8:7::9 -> lan6
		exclude shop 10.7.0.200-10.7.0.210 -> lan
		exclude shop 2001:db8:7::200-2001:db8:7::210 -> lan6
		include shop 2001:db8:7::200-2001:db8:7::210 -> lan6
		pool.rm shop 10.7.0.200-10.7.0.210 -> lan
		pool shop 10.7.0.200-10.7.0.210 name=late -> lan
		pool.set shop late later -> lan
		pool.rm shop later -> lan
		pool.rm shop 2001:db8:7::200-2001:db8:7::210 -> lan6
		pool shop 2001:db8:7::200-2001:db8:7::210 subnet=2001:db8:7::/64 name=late6 -> lan6
		subnet.set shop 2001:db8:7::/64 name=front -> lan6
		subnet.set shop front dhcp=false -> lan6
		subnet shop 10.8.0.0/24 -> lan
		subnet.rm shop 10.8.0.0/24 -> lan`) {
		step, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		made(ipamtest.Edits(t, step)[0], map[string]netip.Prefix{"lan": lan, "lan6": lan6}[want])
	}
	// An edit is refused if what it names is in both networks, in neither, or some in each.
	for _, e := range ipamtest.Edits(t, `
		take shop z pool
		take shop z 0:ip0=10.7.0.9,ip1=2001:db8:7::9
		take shop z 192.0.2.1
		pool.rm shop nothing
		network.rm shop`) {
		_, err := s.Edit(ctx, ipam.EditOptions{}, e)
		if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "give the id of the network") {
			t.Errorf("%s: %v", e.Op(), err)
		}
	}
}
