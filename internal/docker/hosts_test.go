package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// hostRig is a host of a cluster, with its handle on the shared store. Engines derive the MAC from the IPv4
// address, so two hosts have the same MACs.
type hostRig struct {
	*scenario
	shared *mem.Store
}

// newHostRig adds a host to the cluster. reached says whether the host reaches the shared store.
func newHostRig(t *testing.T, name string, first *mem.Store, c *clock, reached bool) *hostRig {
	t.Helper()
	h := &hostRig{&scenario{t: t, harness: &harness{t: t, clock: c, pools: map[string]ipam.ID{},
		view: ipam.EngineView{Host: name, Networks: []ipam.EngineNetwork{}}}}, first.Join()}
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
	h.service = cluster.NewService(local, half)
	if reached {
		h.reach()
	}
	h.w = New(Config{Service: h.service, Host: name, Cluster: true, Drivers: []string{"berth"}, Now: c.Now,
		Log: quiet()})
	return h
}

func (h *hostRig) reach() {
	h.t.Helper()
	h.shared.Heal()
	eventually(h.t, h.view.Host+" reaches the shared store", func() bool { return h.service.Partial() == nil })
}

// finds runs two checks, each with views that confirm findings about endpoints, and a third after the grace
// period. The third must find want.
func (h *hostRig) finds(how, want string) {
	h.t.Helper()
	one := "show\nwait 1s\ncheck " + how
	h.plays("wait 1s\n" + one + "\nwait 1s\n" + one + "\nwait 5m\n" + one + " -> " + want)
}

// planned creates the cluster's network lan.
func (h *hostRig) planned() {
	h.t.Helper()
	h.edit(&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Subnets: []ipam.SubnetSpec{{
		CIDR: prefix("10.77.0.0/24"), Gateway: addr("10.77.0.1"), Pool: true}}})
}

// TestWitnessOfHosts: each host's witness finds, names and repairs what belongs to its own host, in both stores.
func TestWitnessOfHosts(t *testing.T) {
	first, c := mem.New(), &clock{now: now}
	a, b := newHostRig(t, "a", first, c, true), newHostRig(t, "b", first, c, true)
	a.planned()
	running := map[string]netip.Addr{}
	for _, h := range []*hostRig{a, b} {
		h.attach("lan", ipam.PoolRequest{Network: "lan"})
		h.network("own", "10.8.0.0/24") // both hosts have this subnet
		for i := range 3 {
			for _, network := range []string{"lan", "own"} {
				name := fmt.Sprint(h.view.Host, network, i)
				running[name] = h.run(name, network)
			}
		}
	}
	leased := func(h *hostRig, at netip.Addr, host, name string) {
		t.Helper()
		if l := h.leaseOf(at); l.Name != name || l.Host != host {
			t.Errorf("%s is leased to %+v", at, l)
		}
	}
	a.finds("repair", "nothing")
	b.finds("repair", "nothing")
	// Each lease names the container of its own host.
	for name, at := range running {
		h := map[byte]*hostRig{'a': a, 'b': b}[name[0]]
		leased(h, at, h.view.Host, name)
		if by := h.w.SeenBy(h.leaseOf(at).Space, at, h.leaseOf(at).ID); by == nil || by.Container != name {
			t.Errorf("%s of %s is seen by %+v", at, name, by)
		}
	}

	stray, foreign := "10.77.0.200", running["blan1"].String()
	lan, own := running["alan0"].String(), running["aown1"].String()
	// The thief has b's address and the MAC of b's container there.
	a.plays("vanish alan0\nvanish aown1\nappear stray lan " + stray + " 200\nappear thief lan " + foreign + " 2")
	b.finds("repair", "nothing")
	// The stray is leased by then: the second view needed no request for that.
	a.finds("", "unused_lease "+lan+" repairable, unused_lease "+own+" repairable, doubled_address "+foreign)
	a.finds("repair", "doubled_address "+foreign)
	leased(a, addr(stray), "a", "stray")
	leased(a, addr(foreign), "b", "blan1")
	if l := a.leaseOf(addr(lan)); l.State == "held" {
		t.Errorf("%s is leased still: %+v", lan, l)
	}

	// A host also repairs its own removed Docker networks.
	a.view.Networks, a.view.Containers = []ipam.EngineNetwork{{ID: "id-other", Name: "other", Driver: "berth"}}, nil
	a.plays("wait 1s\nshow\nwait 1s\ncheck repair\nwait 5m\nshow\nwait 1s\ncheck repair")
	b.finds("repair", "nothing")
	b.plays("attachments -> lan own")
	for _, name := range []string{"blan0", "blan1", "blan2"} {
		leased(a, running[name], "b", name)
	}
}

// TestWitnessNeverReached: while the cluster's records cannot be read, its Docker networks are not judged. The
// report says so.
func TestWitnessNeverReached(t *testing.T) {
	first, c := mem.New(), &clock{now: now}
	newHostRig(t, "b", first, c, true).planned()
	a := newHostRig(t, "a", first, c, false)
	a.network("own", "10.8.0.0/24")
	a.view.Networks = append(a.view.Networks,
		ipam.EngineNetwork{ID: "id-lan", Name: "lan", Driver: "berth", Options: map[string]string{"network": "lan"},
			Subnets: []ipam.EngineSubnet{{CIDR: prefix("10.77.0.0/24"), Gateway: addr("10.77.0.1")}}})
	a.plays(`
		run gone own -> 10.8.0.2
		vanish gone
		appear web lan 10.77.0.9
	`)
	a.finds("repair", "reachable, unused_lease 10.8.0.2 repaired")
	if a.last.Trouble == "" {
		t.Error("the report says nothing of the store")
	}
	a.plays("at 10.8.0.2 -> remembered - 1 own")
	a.reach()
	a.finds("", "uncovered_address 10.77.0.9, unknown_pool 10.77.0.0/24")
}
