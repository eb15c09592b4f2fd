package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// LN-12, BO-1, GA-22: two hosts draw from one subnet until nothing is left; no address goes out twice.
func TestTwoHosts(t *testing.T) {
	cl := newCluster(t)
	hosts := []*service.Service{cl.must("a"), cl.must("b")}
	cl.edit(hosts[0], lan("10.77.0.0/24"))
	var pools []ipam.ID
	for _, s := range hosts {
		g := cl.attach(s, ipam.PoolRequest{Network: "lan"})
		if !g.ID.Bears(clusterMark) {
			t.Errorf("the pool's id %s does not tell whose it is", g.ID)
		}
		pools = append(pools, g.ID)
	}
	seen := map[netip.Addr]bool{}
	for i := range 253 {
		addr := cl.take(hosts[i%2], pools[i%2], byte(i))
		if seen[addr] {
			t.Fatalf("%s went out twice", addr)
		}
		seen[addr] = true
	}
	for i, s := range hosts {
		_, err := s.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pools[i], MAC: ipam.MAC{4}})
		cl.refused(err, ipam.ErrExhausted)
	}
	all, err := hosts[0].Hosts(t.Context())
	if err != nil || len(all) != 2 || !all[0].Self || all[1].Self || all[1].Leases != 126 || all[1].Pools != 1 ||
		!all[1].Present {
		t.Errorf("%+v, %v", all, err)
	}
	cl.sound(hosts...)
}

// Each host begins at a place of its own, so that hosts do not race for one address, and comes round in the end.
func TestPlacesOfHosts(t *testing.T) {
	plays(t, `
		lan 0
		take mac=1 -> .2
		b: pool at-b
		b: take mac=1 pool=at-b -> .127
		c: pool at-c
		c: take mac=1 pool=at-c -> .64
	`)
}

// Ids of events, and so of leases, are one host's only, whatever the clocks say.
func TestEventIDsOfHosts(t *testing.T) {
	cl := newCluster(t)
	a, clock := cl.must("a"), time.Now
	cl.now = func() time.Time { return clock() }
	b := cl.must("b")
	stands := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock = func() time.Time { return stands }
	cl.edit(a, lan("10.77.0.0/24"))
	pa, pb := cl.attach(a, ipam.PoolRequest{Network: "lan"}).ID, cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
	for i := range byte(20) {
		cl.take(a, pa, i)
		cl.take(b, pb, i)
	}
	events, err := a.Events(t.Context(), ipam.EventFilter{})
	if err != nil || len(events) < 40 {
		t.Fatal(len(events), err)
	}
	slot := map[string]uint64{"a": 0, "b": 1}
	last := uint64(0)
	for _, e := range events {
		if e.ID%ipam.MaxHosts != slot[e.Host] {
			t.Errorf("host %s made the id %d", e.Host, e.ID)
		}
		last = max(last, e.ID)
	}
	if at := ipam.EventTime(last); at.Before(stands) || at.After(stands.Add(time.Second)) {
		t.Errorf("the ids have come to %s", at)
	}
}

// A name is one host's, a host has one name, and of two daemons of one host the later one goes on.
func TestWhoseNameItIs(t *testing.T) {
	cl := newCluster(t)
	a := cl.must("a")
	_, err := cl.openAs("a", ipam.NewID())
	cl.refused(err, ipam.ErrHost, "there is a host a in the cluster already", "--host", "[host.remove_off a]")
	_, err = cl.openAs("c", cl.ids["a"])
	cl.refused(err, ipam.ErrHost, "known to the cluster as a", "--host a")
	later := cl.must("a")
	_, err = a.RequestPool(t.Context(),
		ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: netip.MustParsePrefix("10.1.0.0/24")})
	cl.refused(err, ipam.ErrHost, "another daemon of host a took over")
	cl.attach(later, ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: netip.MustParsePrefix("10.1.0.0/24")})
}

// A draining host takes nothing new, and what it has it keeps and may give back.
func TestDrainHost(t *testing.T) {
	plays(t, `
		lan 0
		b: pool at-b
		b: take mac=1 pool=at-b -> .127
		drain b
		b: take mac=9 pool=at-b ! host; host b is draining
		b: take mac=9 pool=at-b ! host; [host.undrain b]
		b: pool another ! host
		take mac=2 -> .2
		b: give .127 at-b
		b: undrain b
		b: take mac=1 pool=at-b -> .127
		drain nobody ! notfound; [host.list]
	`)
}

// A host that is there is asked to go; of one that is not, a person says that it is off; then all it held is free, a
// subnet that nobody planned ends with it, and it is refused until it is admitted (BO-3: a host that was dropped).
func TestRemoveHost(t *testing.T) {
	cl := newCluster(t)
	a, b := cl.must("a"), cl.must("b")
	cl.edit(a, lan("10.77.0.0/24"))
	pool := cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
	addr := cl.take(b, pool, 1)
	own := ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: netip.MustParsePrefix("10.1.0.0/24")}
	cl.take(b, cl.attach(b, own).ID, 2)

	cl.edit(a, &ipam.RemoveHost{Name: "b"})
	_, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool, MAC: ipam.MAC{9}})
	cl.refused(err, ipam.ErrHost, "host b is leaving")
	_, err = a.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "b", Off: true})
	cl.refused(err, ipam.ErrInUse, "it is not off")
	fine(t, b.Ledger.Store().Close())
	b = cl.must("b")
	b.Ledger.Shared().(*mem.Store).Close()
	_, err = a.Edit(t.Context(), ipam.EditOptions{}, &ipam.AdmitHost{Name: "b"})
	cl.refused(err, ipam.ErrInUse)
	cl.edit(a, &ipam.RemoveHost{Name: "b", Off: true})

	if left := leasesOfHost(t, a, "b"); left != "" {
		t.Errorf("host b still has %s", left)
	}
	subnets, err := a.Subnets(t.Context(), ipam.GlobalSpace)
	if err != nil || len(subnets) != 1 {
		t.Errorf("the subnets are %v, %v", subnets, err)
	}
	_, err = cl.open("b")
	cl.refused(err, ipam.ErrHost, "was removed", "[host.admit b]")
	cl.edit(a, &ipam.AdmitHost{Name: "b"})
	b = cl.must("b")
	if got := cl.take(b, cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID, 1); got != addr {
		t.Errorf("it has %s, and had %s", got, addr)
	}
	cl.sound(a, b)
}

// Without the person's word, a host that does not answer keeps what it holds; its name is another one's to take once it
// was removed.
func TestRemoveSilentHost(t *testing.T) {
	cl := newCluster(t)
	a, b := cl.must("a"), cl.must("b")
	fine(t, b.Ledger.Store().Close())
	_, err := a.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "b"})
	cl.refused(err, ipam.ErrInUse, "does not answer", "[host.off b]")
	cl.edit(a, &ipam.RemoveHost{Name: "b", Off: true})
	if _, err := cl.openAs("b", ipam.NewID()); err != nil {
		t.Error(err)
	}
	_, err = cl.open("b")
	cl.refused(err, ipam.ErrHost, "there is a host b in the cluster already")
}

// The only host stays: nobody could let it in again.
func TestRemoveOnlyHost(t *testing.T) {
	cl := newCluster(t)
	a := cl.must("a")
	_, err := a.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "a"})
	cl.refused(err, ipam.ErrInUse, "the only one")
	cl.must("b")
	cl.edit(a, &ipam.RemoveHost{Name: "a"})
	_, err = a.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "b"})
	cl.refused(err, ipam.ErrInUse, "the only one")
}

func leasesOfHost(t *testing.T, s *service.Service, host string) (all string) {
	t.Helper()
	for l, err := range s.Leases(t.Context(), ipam.LeaseFilter{}) {
		fine(t, err)
		if l.Host == host {
			all += fmt.Sprintf("%s (%s) ", l.Address, l.Kind)
		}
	}
	return all
}

// Docker networks of several hosts join one subnet, whose gateway none of them frees; a host's own gateway is a lease
// of that host, and goes with its network.
func TestGatewaysOfHosts(t *testing.T) {
	cl := newCluster(t)
	a, b := cl.must("a"), cl.must("b")
	pool := cl.attach(b, ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: netip.MustParsePrefix("10.78.0.0/24")}).ID
	first, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool, Gateway: true})
	if err != nil || first.String() != "10.78.0.1/24" {
		t.Errorf("a gateway that nobody names is %s, %v", first, err)
	}
	fine(t, b.ReleasePool(t.Context(), pool))
	cl.edit(a, lan("10.77.0.0/24"))
	pa, pb := cl.attach(a, ipam.PoolRequest{Network: "lan"}).ID, cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
	gateway := func(s *service.Service, pool ipam.ID, want string) netip.Addr {
		t.Helper()
		req := ipam.AddressRequest{Pool: pool, Gateway: true}
		if want != "" {
			req.Preferred = netip.MustParseAddr(want)
		}
		p, err := s.RequestAddress(t.Context(), req)
		fine(t, err)
		return p.Addr()
	}
	if got := gateway(a, pa, ""); got.String() != "10.77.0.1" {
		t.Error(got)
	}
	own := gateway(b, pb, "10.77.0.3")
	if left := leasesOfHost(t, a, "b"); left != "10.77.0.3 (gateway) " {
		t.Errorf("host b has %q", left)
	}
	for _, addr := range []netip.Addr{own, netip.MustParseAddr("10.77.0.1")} {
		fine(t, b.ReleaseAddress(t.Context(), pb, addr))
	}
	fine(t, b.ReleasePool(t.Context(), pb))
	if left := leasesOfHost(t, a, "b"); left != "" {
		t.Errorf("host b still has %q", left)
	}
	if left := leasesOfHost(t, a, "a"); left != "10.77.0.1 (gateway) " {
		t.Errorf("the subnet's gateway: %q", left)
	}
	cl.sound(a, b)
}

// GA-13: another CIDR that one host gives a subnet is what the others allocate out of.
func TestForeignResize(t *testing.T) {
	cl := newCluster(t)
	a, b := cl.must("a"), cl.must("b")
	cl.edit(a, lan("10.77.0.0/30"))
	pool := cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
	if got := cl.take(b, pool, 1).String(); got != "10.77.0.2" {
		t.Fatal(got)
	}
	fine(t, b.ReleasePool(t.Context(), pool))
	larger := netip.MustParsePrefix("10.77.0.0/29")
	cl.edit(a, &ipam.ModifySubnet{Network: "lan", Subnet: "10.77.0.0/30", CIDR: &larger})
	cl.edit(a, &ipam.AddPool{Network: "lan", Range: allocator.WholeRange(netip.MustParsePrefix("10.77.0.4/30"))})
	pool = cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
	if got := cl.take(b, pool, 1).String(); got != "10.77.0.2" {
		t.Errorf("the memory of %s was lost", got)
	}
	for range 4 {
		cl.take(b, pool, byte(len(leasesOfHost(t, b, "b"))))
	}
	_, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool, MAC: ipam.MAC{9}})
	cl.refused(err, ipam.ErrExhausted)
	cl.sound(a, b)
}

// What one host imports no other one removes, as long as its daemon is there; then the next import does.
func TestImportsOfHosts(t *testing.T) {
	cl := newCluster(t)
	a, b := cl.must("a"), cl.must("b")
	plan := ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "large", Space: ipam.GlobalSpace}}}
	for n := range 200 {
		plan.Networks[0].Subnets = append(plan.Networks[0].Subnets,
			ipam.PlannedSubnet{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 90, byte(n), 0}), 24)})
	}
	seen := 0
	_, err := a.Import(t.Context(), plan, ipam.ImportOptions{Progress: func(done, total int) {
		if seen++; seen == 1 {
			_, err := b.Import(t.Context(), plan, ipam.ImportOptions{})
			cl.refused(err, ipam.ErrInvalid, "the network large is being imported")
			_, err = b.Network(t.Context(), "large")
			cl.refused(err, ipam.ErrInUse, "network large is being imported")
			fine(t, a.Ledger.Store().Close())
		}
	}})
	if err == nil || seen != 1 {
		t.Fatalf("the import was not cut off, but ended with %v", err)
	}
	report, err := b.Import(t.Context(), plan, ipam.ImportOptions{})
	if err != nil || report.Added.Networks != 1 || report.Added.Subnets != 200 || report.Unchanged.Networks != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	cl.sound(b)
}

// Where the store is the host's own, there are no other hosts.
func TestNoHosts(t *testing.T) {
	s, err := service.Open(t.Context(), service.Config{Store: mem.New(), Host: "a"})
	fine(t, err)
	if _, err := s.Hosts(t.Context()); !errors.Is(err, ipam.ErrAlone) {
		t.Error(err)
	}
	for _, e := range []ipam.Edit{&ipam.DrainHost{Name: "a"}, &ipam.RemoveHost{Name: "a"}, &ipam.AdmitHost{Name: "a"}} {
		if _, err := s.Edit(t.Context(), ipam.EditOptions{}, e); !errors.Is(err, ipam.ErrAlone) {
			t.Error(err)
		}
	}
}
