package edit_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

func (mc *ownerMachine) drawDocker(t *rapid.T) dockerNet {
	if len(mc.docker) == 0 {
		t.Skip("no Docker network")
	}
	return mc.docker[rapid.IntRange(0, len(mc.docker)-1).Draw(t, "docker")]
}

func (mc *ownerMachine) ask(t *rapid.T) {
	d := mc.drawDocker(t)
	req := ipam.AddressRequest{Pool: d.id, MAC: rapid.SampledFrom(ownerMACs).Draw(t, "mac"),
		Name: rapid.SampledFrom(askNames).Draw(t, "name")}
	if rapid.IntRange(0, 4).Draw(t, "byAddress") == 0 {
		req.Preferred = mc.drawAddr(t, d.net)
	}
	mc.run(t, req, func() ([]netip.Addr, error) {
		got, err := mc.s.RequestAddress(context.Background(), req)
		return []netip.Addr{got.Addr()}, err
	}, func(m *ownerModel, got []netip.Addr) verdict { return m.nets[d.net].ask(req, got[0]) })
}

func (mc *ownerMachine) back(t *rapid.T) {
	d := mc.drawDocker(t)
	a := mc.drawAddr(t, d.net)
	mc.run(t, a,
		func() ([]netip.Addr, error) {
			fine(t, mc.s.ReleaseAddress(ctx, d.id, a)) // whatever the store does; then it waits
			stands := mc.store.Update(ctx, func(store.Tx) error { return nil })
			return nil, errors.Join(mc.s.MakeWaiting(ctx), stands)
		},
		func(m *ownerModel, _ []netip.Addr) verdict {
			if n := m.nets[d.net]; n.records[a].docker == d.id {
				n.release(a)
			}
			return verdict{}
		})
}

func (mc *ownerMachine) attach(t *rapid.T) {
	if len(mc.docker) > 2 {
		t.Skip("enough Docker networks")
	}
	d := dockerNet{net: mc.drawNet(t)}
	grant, err := mc.s.RequestPool(ctx, ipam.PoolRequest{Network: d.net, CIDR: mc.m.nets[d.net].cidr})
	fine(t, err)
	d.id = grant.ID
	mc.docker = append(mc.docker, d)
}

func (mc *ownerMachine) detach(t *rapid.T) {
	d := mc.drawDocker(t)
	fine(t, mc.s.ReleasePool(ctx, d.id))
	mc.expire()
	mc.docker = slices.DeleteFunc(mc.docker, func(other dockerNet) bool { return other == d })
	n := mc.m.nets[d.net]
	for _, a := range n.hosts {
		if n.records[a].docker == d.id {
			n.release(a)
		}
	}
}

// bands sets one static band of a network, or none.
func (mc *ownerMachine) bands(t *rapid.T) {
	net := mc.drawNet(t)
	n := mc.m.nets[net]
	bands := []ipam.Range{}
	if rapid.Bool().Draw(t, "band") {
		from := rapid.IntRange(0, len(n.hosts)-1).Draw(t, "from")
		to := rapid.IntRange(from, min(from+3, len(n.hosts)-1)).Draw(t, "to")
		bands = append(bands, ipamtest.MustRange(n.hosts[from].String()+"-"+n.hosts[to].String()))
	}
	mc.edit(t, &ipam.ModifyNetwork{Network: net, Static: &bands}, func(m *ownerModel, _ []netip.Addr) verdict {
		m.nets[net].static = bands
		return verdict{}
	})
}

// rules adds the two rules to the first network, or removes them.
func (mc *ownerMachine) rules(t *rapid.T) {
	on := !mc.m.nets["n"].ruled
	all := []ipam.OwnerRule{{Pattern: "api-*"}, {Pattern: "web*"}}
	if on {
		all[0].Owner, all[1].Pool = "prod/api/*", "web"
	}
	if _, err := mc.s.Edit(ctx, ipam.EditOptions{}, &ipam.ModifyNetwork{Network: "n", OwnerRules: all}); err != nil {
		t.Fatal(err)
	}
	mc.m.nets["n"].ruled = on
}

func (mc *ownerMachine) wait(t *rapid.T) {
	mc.clock.Time = mc.clock.Time.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t,
		"wait"))
	mc.m.now = mc.clock.Time
	mc.expire()
}

func (mc *ownerMachine) reopen(t *rapid.T) {
	for _, n := range mc.m.nets {
		for a, rec := range n.records {
			rec.old = rec.held
			n.records[a] = rec
		}
	}
	fine(t, mc.store.Close())
	mc.store = ipamtest.Rerunning(ipamtest.OpenStore(t, mc.path)).(*storetest.Faulty)
	mc.s = ipamtest.OpenService(t, mc.store, mc.clock.Now)
}
