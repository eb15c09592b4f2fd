package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// homestead is a host of a cluster: its records, its engine's view, and its witness.
type homestead struct {
	t      *testing.T
	name   string
	clock  *clock
	joined *cluster.Service
	shared *mem.Store // its handle on the shared store
	view   ipam.EngineView
	pools  map[string]ipam.ID
	w      *Witness
	number int
}

// newHomestead adds a host to the cluster. reached is whether it reaches the shared store.
func newHomestead(t *testing.T, name string, first *mem.Store, c *clock, reached bool) *homestead {
	t.Helper()
	h := &homestead{t: t, name: name, clock: c, shared: first.Join(),
		view: ipam.EngineView{Host: name, Networks: []ipam.EngineNetwork{}}, pools: map[string]ipam.ID{}}
	own := mem.New()
	local, err := service.Open(t.Context(), service.Config{Store: own, Host: name, Now: c.Now})
	must(t, err)
	mark := [4]byte{7}
	member := &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: mark}
	half, err := cluster.OpenShared(t.Context(),
		cluster.SharedConfig{Own: own, Mark: mark, Host: name, Now: c.Now, Reach: h.shared.Reach,
			Open: func(ctx context.Context) (*service.Service, error) {
				if r := h.shared.Reach(); r.Err != nil {
					return nil, r.Err
				}
				return service.Open(ctx, service.Config{Store: h.shared, Host: name, Now: c.Now, Member: member})
			}})
	must(t, err)
	if !reached {
		h.shared.Cut(errors.New("no etcd"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	h.joined = cluster.NewService(local, half)
	if reached {
		h.reach()
	}
	h.w = New(Config{Service: h.joined, Host: name, Cluster: true, Drivers: []string{"berth"}, Now: c.Now,
		Log: quiet()})
	return h
}

func (h *homestead) reach() {
	h.t.Helper()
	h.shared.Heal()
	eventually(h.t, h.name+" reaches the shared store", func() bool { return h.joined.Partial() == nil })
}

// network creates a Docker network on a planned one, or of a subnet, as the engine does.
func (h *homestead) network(name string, req ipam.PoolRequest) {
	h.t.Helper()
	grant, err := h.joined.RequestPool(h.t.Context(), req)
	must(h.t, err)
	gateway := grant.Gateway.Addr()
	if !gateway.IsValid() {
		got, err := h.joined.RequestAddress(h.t.Context(), ipam.AddressRequest{Pool: grant.ID, Gateway: true})
		must(h.t, err)
		gateway = got.Addr()
	}
	h.pools[name] = grant.ID
	n := ipam.EngineNetwork{ID: "id-" + name, Name: name, Driver: "berth",
		Subnets: []ipam.EngineSubnet{{CIDR: grant.CIDR, Gateway: gateway}}}
	if req.Network != "" {
		n.Options = map[string]string{"network": req.Network}
	}
	h.view.Networks = append(h.view.Networks, n)
}

// run starts a container. Engines derive the MAC from the IPv4 address, so two hosts have the same ones.
func (h *homestead) run(name, network string) netip.Addr {
	h.t.Helper()
	h.number++
	got, err := h.joined.RequestAddress(h.t.Context(), ipam.AddressRequest{Pool: h.pools[network], MAC: macN(h.number)})
	must(h.t, err)
	h.appear(name, network, got.Addr(), macN(h.number))
	return got.Addr()
}

func (h *homestead) appear(name, network string, addr netip.Addr, mac ipam.MAC) {
	h.view.Containers = append(h.view.Containers,
		ipam.EngineContainer{ID: "id-" + name, Name: name, State: "running", Endpoints: []ipam.EngineEndpoint{
			{Network: "id-" + network, ID: "e-" + name, MAC: mac, Addresses: []netip.Addr{addr}}}})
}

func (h *homestead) vanish(name string) {
	h.view.Containers = slices.DeleteFunc(slices.Clone(h.view.Containers),
		func(c ipam.EngineContainer) bool { return c.Name == name })
}

// check runs two checks, each with the views that confirm findings about endpoints, and one after the grace period.
func (h *homestead) check(req ipam.CheckRequest) (r ipam.CheckReport) {
	h.t.Helper()
	for _, wait := range []time.Duration{time.Second, time.Second, defaultGrace} {
		h.clock.wait(wait)
		view := h.view
		view.Taken = h.clock.Now()
		view.Networks, view.Containers = slices.Clone(view.Networks), slices.Clone(view.Containers)
		must(h.t, h.w.Show(h.t.Context(), view))
		h.clock.wait(time.Second)
		var err error
		r, err = h.w.Check(h.t.Context(), req)
		must(h.t, err)
	}
	return r
}

// leases returns the held leases by address.
func (h *homestead) leases() map[netip.Addr]ipam.LeaseInfo {
	h.t.Helper()
	all := map[netip.Addr]ipam.LeaseInfo{}
	for l, err := range h.joined.Leases(h.t.Context(), ipam.LeaseFilter{}) {
		must(h.t, err)
		all[l.Address] = l
	}
	return all
}

// TestWitnessOfHosts: each host's witness finds, names and repairs what belongs to its own host, in both stores.
func TestWitnessOfHosts(t *testing.T) {
	first, c := mem.New(), &clock{now: now}
	a, b := newHomestead(t, "a", first, c, true), newHomestead(t, "b", first, c, true)
	_, err := a.joined.Edit(t.Context(), ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Subnets: []ipam.SubnetSpec{{
			CIDR: prefix("10.77.0.0/24"), Gateway: addr("10.77.0.1"), Pool: true}}})
	must(t, err)
	running := map[string]netip.Addr{}
	for _, h := range []*homestead{a, b} {
		h.network("lan", ipam.PoolRequest{Network: "lan"})
		h.network("own", ipam.PoolRequest{Space: "local", CIDR: prefix("10.8.0.0/24")}) // both hosts have this one
		for i := range 3 {
			for _, network := range []string{"lan", "own"} {
				name := fmt.Sprint(h.name, network, i)
				running[name] = h.run(name, network)
			}
		}
	}
	for _, h := range []*homestead{a, b} {
		wantTold(t, h.check(ipam.CheckRequest{Repair: true}))
	}
	// Each lease has the name of its own host's container.
	for name, addr := range running {
		h := map[byte]*homestead{'a': a, 'b': b}[name[0]]
		if l := h.leases()[addr]; l.Name != name || l.Host != h.name {
			t.Errorf("%s of %s has the lease %+v", addr, name, l)
		}
		if by := h.w.SeenBy(h.leases()[addr].Space, addr, h.leases()[addr].ID); by == nil || by.Container != name {
			t.Errorf("%s of %s is seen by %+v", addr, name, by)
		}
	}

	a.vanish("alan0")
	a.vanish("aown1")
	stray, foreign := addr("10.77.0.200"), running["blan1"]
	a.appear("stray", "lan", stray, macN(200))
	a.appear("thief", "lan", foreign, macN(2)) // with the MAC of b's container that has it
	wantTold(t, b.check(ipam.CheckRequest{Repair: true}))
	wantTold(t, a.check(ipam.CheckRequest{}), "unused_lease "+running["alan0"].String()+" repairable", "unused_lease "+
		running["aown1"].String()+" repairable",
		"uncovered_address "+stray.String()+" repairable", "doubled_address "+foreign.String())
	wantTold(t, a.check(ipam.CheckRequest{Repair: true}), "doubled_address "+foreign.String())
	held := a.leases()
	if l := held[stray]; l.Host != "a" || l.Name != "stray" {
		t.Errorf("%s is leased to %+v", stray, l)
	}
	if l := held[foreign]; l.Host != "b" || l.Name != "blan1" {
		t.Errorf("%s is leased to %+v", foreign, l)
	}
	if _, has := held[running["alan0"]]; has {
		t.Errorf("%s is leased still", running["alan0"])
	}

	// A host also repairs its own removed Docker networks.
	a.view.Networks, a.view.Containers = a.view.Networks[:0], nil
	a.view.Networks = append(a.view.Networks, ipam.EngineNetwork{ID: "id-other", Name: "other", Driver: "berth"})
	a.check(ipam.CheckRequest{Repair: true})
	wantTold(t, b.check(ipam.CheckRequest{Repair: true}))
	attachments, err := a.joined.Attachments(t.Context())
	must(t, err)
	for _, at := range attachments {
		if at.Host == "a" {
			t.Errorf("a holds %s still", at.CIDR)
		}
	}
	for _, name := range []string{"blan0", "blan1", "blan2"} {
		if l := a.leases()[running[name]]; l.Host != "b" {
			t.Errorf("%s has lost %s: %+v", name, running[name], l)
		}
	}
}

// TestWitnessNeverReached: while the cluster's records cannot be read, its Docker networks are not judged, and the
// report says so.
func TestWitnessNeverReached(t *testing.T) {
	first, c := mem.New(), &clock{now: now}
	b := newHomestead(t, "b", first, c, true)
	_, err := b.joined.Edit(t.Context(), ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Subnets: []ipam.SubnetSpec{{
			CIDR: prefix("10.77.0.0/24"), Gateway: addr("10.77.0.1"), Pool: true}}})
	must(t, err)
	a := newHomestead(t, "a", first, c, false)
	a.network("own", ipam.PoolRequest{Space: "local", CIDR: prefix("10.8.0.0/24")})
	gone := a.run("gone", "own")
	a.vanish("gone")
	a.view.Networks = append(a.view.Networks,
		ipam.EngineNetwork{ID: "id-lan", Name: "lan", Driver: "berth", Options: map[string]string{"network": "lan"},
			Subnets: []ipam.EngineSubnet{{CIDR: prefix("10.77.0.0/24"), Gateway: addr("10.77.0.1")}}})
	a.appear("web", "lan", addr("10.77.0.9"), macN(9))
	r := a.check(ipam.CheckRequest{Repair: true})
	if got, want := told(&r), []string{"unused_lease " + gone.String() + " repaired"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if r.Trouble == "" || r.Engine != ipam.EngineReachable {
		t.Errorf("the report says %q of the store, and that the engine is %s", r.Trouble, r.Engine)
	}
	if _, has := a.leases()[gone]; has {
		t.Errorf("%s is leased still", gone)
	}
	a.reach()
	r = a.check(ipam.CheckRequest{})
	if got, want := told(&r),
		[]string{"uncovered_address 10.77.0.9", "unknown_pool 10.77.0.0/24"}; !slices.Equal(got, want) ||
		r.Trouble != "" {
		t.Errorf("once it is reached: found %q, want %q; %q", got, want, r.Trouble)
	}
}
