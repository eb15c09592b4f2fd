package cluster_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// The engine's requests go to the store of the network or the space that they name, and the id of a pool tells what
// follows (LN-5).
func TestJoinedRequests(t *testing.T) {
	_, a := furnished(t)
	for i, row := range []struct {
		req    ipam.PoolRequest
		shared bool
	}{
		{ipam.PoolRequest{Space: "local"}, false},
		// of whatever others have elsewhere
		{ipam.PoolRequest{Space: "local", CIDR: netip.MustParsePrefix("10.77.0.0/24")}, false},
		{ipam.PoolRequest{Space: "lab", CIDR: netip.MustParsePrefix("10.5.7.0/24")}, false},
		{ipam.PoolRequest{Space: "global", Swarm: true}, true},
		{ipam.PoolRequest{Space: "dmz"}, true},
		{ipam.PoolRequest{Space: "new"}, true},
		{ipam.PoolRequest{Network: "own", CIDR: netip.MustParsePrefix("10.1.0.0/24")}, false},
		{ipam.PoolRequest{Network: "own", Space: "local", CIDR: netip.MustParsePrefix("10.1.0.0/24")}, false},
		{ipam.PoolRequest{Network: "lab", CIDR: netip.MustParsePrefix("10.5.0.0/24")}, false},
		{ipam.PoolRequest{Network: "lan", CIDR: netip.MustParsePrefix("10.77.0.0/24")}, true},
		{ipam.PoolRequest{Network: "lan", Space: "global", Swarm: true, CIDR: netip.MustParsePrefix("10.77.0.0/24")},
			true},
		{ipam.PoolRequest{Network: "dmz", Space: "dmz", CIDR: netip.MustParsePrefix("10.6.0.0/24")}, true},
	} {
		grant, err := a.RequestPool(t.Context(), row.req)
		if err != nil || grant.ID.Bears(clusterMark) != row.shared {
			t.Errorf("%+v: pool %s, %v", row.req, grant.ID, err)
			continue
		}
		addr, err := a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(100 + i)})
		if err != nil || !grant.CIDR.Contains(addr.Addr()) {
			t.Errorf("%+v: address %s, %v", row.req, addr, err)
		}
		fine(t, a.ReleaseAddress(t.Context(), grant.ID, addr.Addr()))
		for _, l := range listed(t, a.Leases(t.Context(), ipam.LeaseFilter{})) {
			if l.MAC == ipamtest.MAC(100+i) {
				t.Errorf("%+v: %s is held still", row.req, l.Address)
			}
		}
		fine(t, a.ReleasePool(t.Context(), grant.ID))
		_, err = a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: grant.ID})
		refusedBy(t, "an address of a pool that was released", err, ipam.ErrNotFound)
		fine(t, a.ReleasePool(t.Context(), grant.ID))
		fine(t, a.ReleaseAddress(t.Context(), grant.ID, addr.Addr()))
	}
	for what, row := range map[string]struct {
		req  ipam.PoolRequest
		kind error
	}{
		"a network that is nowhere":  {ipam.PoolRequest{Network: "nowhere"}, ipam.ErrNotFound},
		"a network of another space": {ipam.PoolRequest{Network: "own", Space: "lab"}, ipam.ErrInvalid},
		"the same of the cluster":    {ipam.PoolRequest{Network: "lan", Space: "local"}, ipam.ErrInvalid},
		"a swarm's, of this host's": {ipam.PoolRequest{Network: "own", Space: "global", Swarm: true},
			ipam.ErrInvalid},
		"no space, or one that is wrong": {ipam.PoolRequest{Space: "no space"}, ipam.ErrInvalid},
	} {
		_, err := a.RequestPool(t.Context(), row.req)
		refusedBy(t, what, err, row.kind)
	}
}

// A swarm's manager says again what it said when a network was made, on whichever host it is then: the network may be
// called otherwise by now, and another one may have its name.
func TestJoinedReplay(t *testing.T) {
	p := newParish(t)
	a, b := p.host("a"), p.host("b")
	a.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	req := ipam.PoolRequest{Network: "lan", Space: "global", Swarm: true, CIDR: netip.MustParsePrefix("10.77.0.0/24")}
	first, err := a.RequestPool(t.Context(), req)
	fine(t, err)
	a.must(&ipam.ModifyNetwork{Network: "lan", Name: new("lan2")})
	_, err = b.local.Edit(t.Context(), ipam.EditOptions{}, planned("lan", "", "10.77.0.0/24"))
	fine(t, err)
	comesTo(t, "host b sees the new name", func() bool { return second(b.Network(t.Context(), "lan2")) == nil })
	again, err := b.RequestPool(t.Context(), req)
	if err != nil || !again.ID.Bears(clusterMark) || again.CIDR != first.CIDR {
		t.Errorf("again: %+v, %v", again, err)
	}
	// The same of a network that is the host's own store's still.
	c := p.host("c")
	_, err = c.local.Edit(t.Context(), ipam.EditOptions{}, planned("old", "yard", "10.90.0.0/24"))
	fine(t, err)
	req = ipam.PoolRequest{Network: "old", Space: "global", Swarm: true, CIDR: netip.MustParsePrefix("10.90.0.0/24")}
	_, err = c.RequestPool(t.Context(), req)
	fine(t, err)
	c.must(&ipam.ModifyNetwork{Network: "old", Name: new("older")})
	again, err = c.RequestPool(t.Context(), req)
	if err != nil || again.ID.Bears(clusterMark) {
		t.Errorf("again, of the host's own: %+v, %v", again, err)
	}
}

// What is copied from one store to the other keeps its id: what knows it has it.
func TestJoinedForeignMark(t *testing.T) {
	p := newParish(t)
	a := p.host("a")
	marked, err := service.Open(t.Context(),
		service.Config{Store: p.store.Join(), Host: "z",
			Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID()}})
	fine(t, err) // whose mark is another one
	_, err = marked.Edit(t.Context(), ipam.EditOptions{}, planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	fine(t, err)
	pool, err := marked.RequestPool(t.Context(), ipam.PoolRequest{Network: "lan"})
	fine(t, err)
	n, err := a.Network(t.Context(), "lan")
	if err != nil || n.ID.Bears(clusterMark) {
		t.Fatalf("%s, %v", n.ID, err)
	}
	if _, err := a.NetworkOf(n.Subnets[0].ID); err != nil {
		t.Error(err)
	}
	if _, err := a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID}); err != nil {
		t.Error(err)
	}
}

// What a witness does is done where the lease is.
func TestJoinedLeaseRefs(t *testing.T) {
	_, a := furnished(t)
	for i, name := range []string{"own", "lab", "lan", "dmz"} {
		t.Run(name, func(t *testing.T) {
			n, err := a.Network(t.Context(), name)
			fine(t, err)
			pool, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: name, CIDR: n.CIDR})
			fine(t, err)
			addr, err := a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(200 + i)})
			fine(t, err)
			lease := func() ipam.LeaseInfo {
				for _, l := range listed(t, a.Leases(t.Context(), ipam.LeaseFilter{Space: n.Space, Remembered: true})) {
					if l.Address == addr.Addr() {
						return l
					}
				}
				return ipam.LeaseInfo{}
			}
			ref := ipam.LeaseRef{Space: n.Space, Address: addr.Addr(), ID: lease().ID}
			fine(t, a.NameLeases(t.Context(), []ipam.LeaseName{{LeaseRef: ref, Name: "web"}}))
			if l := lease(); l.Name != "web" || l.Host != "a" {
				t.Errorf("the lease is %+v", l)
			}
			if done, err := a.ReleaseLease(t.Context(), ref); !done || err != nil {
				t.Errorf("released: %t, %v", done, err)
			}
			if done, err := a.ReleaseLease(t.Context(), ref); done || err != nil {
				t.Errorf("released again: %t, %v", done, err)
			}
			memory := lease()
			if memory.State != "remembered" {
				t.Fatalf("there is no memory: %+v", memory)
			}
			if done, err := a.ForgetMemory(t.Context(),
				ipam.LeaseRef{Space: n.Space, Address: addr.Addr(), ID: memory.ID}); !done || err != nil {
				t.Errorf("forgotten: %t, %v", done, err)
			}
		})
	}
	// Names of both stores at once.
	var names []ipam.LeaseName
	for i, name := range []string{"own", "lan"} {
		n, err := a.Network(t.Context(), name)
		fine(t, err)
		pool, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: name, CIDR: n.CIDR})
		fine(t, err)
		addr, err := a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(300 + i)})
		fine(t, err)
		for _, l := range listed(t, a.Leases(t.Context(), ipam.LeaseFilter{Space: n.Space})) {
			if l.Address == addr.Addr() {
				names = append(names,
					ipam.LeaseName{LeaseRef: ipam.LeaseRef{Space: n.Space, Address: l.Address, ID: l.ID},
						Name: fmt.Sprint("both", i)})
			}
		}
	}
	fine(t, a.NameLeases(t.Context(), names))
	found := 0
	for _, l := range listed(t, a.Leases(t.Context(), ipam.LeaseFilter{})) {
		if l.Name == "both0" || l.Name == "both1" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 leases have their names", found)
	}
}

// Guesses of both stores are counted together, and one that is put right is counted where it was made.
func TestJoinedGuesses(t *testing.T) {
	p := newParish(t)
	witness := ipamtest.Onlooker{Hint: ipamtest.HintOf("web")}
	p.known = witness.As()
	a := p.host("a")
	a.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	_, err := a.local.Edit(t.Context(), ipam.EditOptions{}, planned("own", ipam.LocalSpace, "10.1.0.0/24"))
	fine(t, err)
	var names []ipam.LeaseName
	for _, network := range []string{"own", "lan"} {
		pool, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: network})
		fine(t, err)
		_, err = a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID})
		fine(t, err)
	}
	for _, l := range listed(t, a.Leases(t.Context(), ipam.LeaseFilter{})) {
		if l.Kind == ipam.Gateway {
			continue
		}
		if !l.Guessed || l.Name != "web" {
			t.Errorf("the lease is %+v", l)
		}
		names = append(names, ipam.LeaseName{LeaseRef: ipam.LeaseRef{Space: l.Space, Address: l.Address, ID: l.ID},
			Name: "db"})
	}
	if n := a.Guesses(); n != (ipam.GuessCounts{Made: 2}) {
		t.Errorf("%+v", n)
	}
	fine(t, a.NameLeases(t.Context(), names))
	fine(t, a.NameLeases(t.Context(), names))
	if n := a.Guesses(); n != (ipam.GuessCounts{Made: 2, Wrong: 2}) {
		t.Errorf("%+v", n)
	}
	if n := a.local.Guesses(); n != (ipam.GuessCounts{Made: 1, Wrong: 1}) {
		t.Errorf("the host's own: %+v", n)
	}
}

// A newer Berth has brought the shared store to another format: this host writes nothing more there.
func TestNewerFormatMeanwhile(t *testing.T) {
	p := newParish(t)
	a := p.host("a")
	a.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	err := p.store.Join().Update(t.Context(), func(tx store.Tx) error { return tx.Put(ledger.FormatKey(), []byte("5")) })
	fine(t, err)
	_, err = a.Edit(t.Context(), ipam.EditOptions{}, planned("lan2", ipam.GlobalSpace, "10.78.0.0/24"))
	if !errors.Is(err, ipam.ErrHost) || !strings.Contains(err.Error(), "format 5") {
		t.Errorf("written: %v", err)
	}
}
