package cluster

import (
	"errors"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// LN-12, BO-1, GA-22: two hosts draw from one subnet until nothing is left. No address is given twice.
func TestTwoHosts(t *testing.T) {
	st := plays(t, `
		lan 0
		b: here
		b: pool theirs
	`)
	seen := map[netip.Addr]bool{}
	for i := range 253 {
		h, pool := st.host("a"), st.pool("")
		if i%2 == 1 {
			h, pool = st.host("b"), st.pool("theirs")
		}
		if !pool.Bears(sharedMark) {
			t.Fatalf("the pool's id %s does not tell whose it is", pool)
		}
		addr := h.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(i)})
		if seen[addr] {
			t.Fatalf("%s went out twice", addr)
		}
		seen[addr] = true
	}
	st.run(`
		take mac=999 ! exhausted
		b: take mac=999 pool=theirs ! exhausted
		sound
		b: sound
	`)
	all, err := st.host("a").svc.Hosts(t.Context())
	if err != nil || len(all) != 2 || !all[0].Self || all[1].Self || all[1].Leases != 126 || all[1].Pools != 1 ||
		!all[1].Present {
		t.Errorf("%+v, %v", all, err)
	}
}

// Each host starts at a different place in the subnet, so that hosts do not race for one address, and wraps
// around at the end.
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

// Each event id, and so each lease id, belongs to one host only, even while both clocks stand still.
func TestEventIDsOfHosts(t *testing.T) {
	st := plays(t, `
		lan 0
		b: pool theirs
	`)
	a, b := st.host("a"), st.host("b")
	for i := range 20 {
		a.take(ipam.AddressRequest{Pool: st.pool(""), MAC: testMAC(i)})
		b.take(ipam.AddressRequest{Pool: st.pool("theirs"), MAC: testMAC(i)})
	}
	events, err := a.svc.Events(t.Context(), ipam.EventFilter{})
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
	if took := ipam.EventTime(last).Sub(a.now); took < 0 || took > 1e9 {
		t.Errorf("the ids have come %s ahead of the clocks", took)
	}
}

// A name belongs to one host, a host has one name, and of two daemons of one host the later one takes over.
func TestWhoseNameItIs(t *testing.T) {
	st := plays(t, "open")
	a := st.host("a")
	for name, id := range map[string]ipam.ID{"a": ipam.NewID(), "c": a.id, "later": a.id} {
		h := newSharingHost(t, st.common, name)
		h.id = id
		st.hosts["the other "+name] = h
	}
	st.hosts["the other later"].name = "a"
	st.run(`
		the other a: boot
		the other a: open ! host; the cluster already has another host a; --host; [host.remove_off a]
		the other c: boot
		the other c: open ! host; the cluster knows this host as a; --host a
		the other later: boot
		the other later: open
		own p 10.1.0.0/24 ! host; another daemon of host a took over
		the other later: own p 10.1.0.0/24 -> 10.1.0.0/24
	`)
}

// A draining host takes nothing new. It keeps what it has, and may release it.
func TestDrainHost(t *testing.T) {
	plays(t, `
		lan 0
		b: pool at-b
		b: take mac=1 pool=at-b -> .127
		drain b
		b: take mac=9 pool=at-b ! host; host b is draining; [host.undrain b]
		b: pool another ! host
		take mac=2 -> .2
		b: give .127 at-b
		b: undrain b
		b: take mac=1 pool=at-b -> .127
		drain nobody ! notfound; [host.list]
	`)
}

// A running host is asked to leave. For a host that does not answer, a person confirms that it is off. Then all
// it held is free, a subnet that was never planned ends with it, and the host is refused until it is admitted
// (BO-3: a host that was dropped).
func TestRemoveHost(t *testing.T) {
	plays(t, `
		lan 0
		b: here
		b: pool theirs
		b: take mac=1 pool=theirs -> .127
		b: own unplanned 10.1.0.0/24
		b: take mac=2 pool=unplanned
		subnets -> 10.1.0.0/24 1; 10.77.0.0/24 2
		remove b
		b: take mac=9 pool=theirs ! host; host b is leaving
		remove b off ! inuse; it is not off
		b: close
		b: boot
		b: open
		b: close
		admit b ! inuse
		remove b off
		held b ->
		subnets -> 10.77.0.0/24 1
		b: boot
		b: open ! host; was removed; [host.admit b]
		admit b
		b: open
		b: pool again
		b: take mac=1 pool=again -> .127
		sound
		b: sound
	`)
}

// Without a person's confirmation, a host that does not answer keeps what it holds. Another host can take its
// name once it was removed.
func TestRemoveSilentHost(t *testing.T) {
	st := plays(t, `
		b: open
		b: close
		remove b ! inuse; does not answer; [host.off b]
		remove b off
	`)
	st.hosts["the next b"] = newSharingHost(t, st.common, "b")
	st.run(`
		the next b: open
		b: boot
		b: open ! host; the cluster already has another host b
	`)
}

// The only host cannot be removed: no host could admit it again.
func TestRemoveOnlyHost(t *testing.T) {
	plays(t, `
		here
		remove a ! inuse; the only one
		b: here
		remove a
		b: remove b ! inuse; the only one
	`)
}

// Docker networks of several hosts join one subnet, and none of them frees its gateway. A host's own gateway is
// a lease of that host, and ends with its network.
func TestGatewaysOfHosts(t *testing.T) {
	plays(t, `
		b: own unplanned 10.78.0.0/24
		# that nobody names
		b: take gateway pool=unplanned -> 10.78.0.1
		b: unpool unplanned
		lan 0
		b: pool theirs
		take gateway -> .1
		b: take gateway ip=.3 pool=theirs -> .3
		held b -> .3 gateway
		b: give .3 theirs
		b: give .1 theirs
		b: unpool theirs
		held b ->
		held a -> .1 gateway
		sound
		b: sound
	`)
}

// GA-13: if one host changes a subnet's CIDR, the other hosts allocate from the new CIDR.
func TestForeignResize(t *testing.T) {
	plays(t, `
		net 10.78.0.0/30
		b: pool p lan
		b: take mac=1 -> 10.78.0.2
		b: unpool
		resize 10.78.0.0/30 10.78.0.0/29
		range 10.78.0.4-10.78.0.7
		b: pool p lan
		# what is remembered of it is not lost
		b: take mac=1 -> 10.78.0.2
		b: take mac=2
		b: take mac=3
		b: take mac=4
		b: take mac=5
		b: take mac=6 ! exhausted
		sound
		b: sound
	`)
}

// While the daemon of an importing host runs, no other host removes what that import has made; after that, the
// next import does.
func TestImportsOfHosts(t *testing.T) {
	st := plays(t, `
		here
		b: here
	`)
	a, b := st.host("a"), st.host("b")
	plan := ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "large", Space: ipam.GlobalSpace}}}
	for n := range 200 {
		plan.Networks[0].Subnets = append(plan.Networks[0].Subnets,
			ipam.PlannedSubnet{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 90, byte(n), 0}), 24)})
	}
	seen := 0
	_, err := a.svc.Import(t.Context(), plan, ipam.ImportOptions{Progress: func(done, total int) {
		if seen++; seen > 1 {
			return
		}
		_, err := b.svc.Import(t.Context(), plan, ipam.ImportOptions{})
		if kindOf(err) != "invalid" || !saysAll(err, "the network large is being imported") {
			t.Error(err)
		}
		_, err = b.svc.Network(t.Context(), "large")
		if kindOf(err) != "inuse" || !saysAll(err, "network large is being imported") {
			t.Error(err)
		}
		st.run("close")
	}})
	if err == nil || seen != 1 {
		t.Fatalf("the import was not cut off, but ended with %v", err)
	}
	report, err := b.svc.Import(t.Context(), plan, ipam.ImportOptions{})
	if err != nil || report.Added.Networks != 1 || report.Added.Subnets != 200 || report.Unchanged.Networks != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	b.sound()
}

// If the store is the host's own, there are no other hosts.
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
