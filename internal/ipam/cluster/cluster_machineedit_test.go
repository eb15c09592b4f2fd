package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

func (mc *clusterMachine) networkName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"lan0", "lan0", "lan1", "made0", "made1", "dyn"}).Draw(t, "network")
}

func (mc *clusterMachine) owner(t *rapid.T) string {
	return fmt.Sprintf("shop/web/%d", rapid.IntRange(1, 4).Draw(t, "owner"))
}

// take has an owner take an address by hand, on an interface of its own.
func (mc *clusterMachine) take(t *rapid.T) {
	h, owner := mc.host(t), mc.owner(t)
	e := &ipam.TakeAddress{Network: mc.networkName(t), Owner: owner,
		Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface}}
	if rapid.Bool().Draw(t, "static") {
		e.Interface.Wishes = []ipam.Wish{{Address: mc.anAddress(t)}}
	}
	out, err := h.service().Edit(context.Background(), ipam.EditOptions{}, e)
	var addr netip.Addr
	if err == nil {
		addr = out.Results[0].Addresses[0]
	}
	mc.took(t, h, addr, inHand{name: owner}, err)
}

// giveBack ends what an owner took: one address, or all in all networks.
func (mc *clusterMachine) giveBack(t *rapid.T) {
	addr, in := mc.aHand(t, true)
	h := mc.host(t)
	var err error
	if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
		_, err = h.service().Edit(context.Background(), ipam.EditOptions{}, &ipam.ReleaseOwner{Owner: in.name})
	} else {
		network := ""
		mc.audit.mu.Lock()
		for key := range mc.audit.leases {
			if key.addr == addr && mc.audit.subnets[key.subnet] {
				network = h.networkOf(key.subnet)
			}
		}
		mc.audit.mu.Unlock()
		if network == "" {
			t.Skip("this host does not know of it")
		}
		_, err = h.service().Edit(context.Background(), ipam.EditOptions{},
			&ipam.ReleaseAddress{Network: network, Owner: in.name, Address: addr})
	}
	if mc.answered(t, h, "give back", err) && err != nil {
		return
	}
	now := mc.audit.inHands()
	if _, still := now[addr]; still && err == nil {
		t.Fatalf("%s was given back, and is held", addr)
	}
	for a, in2 := range mc.hands { // of the same owner
		if _, still := now[a]; !still && in2.pool == (ipam.ID{}) && in2.name == in.name {
			delete(mc.hands, a)
		}
	}
}

// networkOf is the network of a subnet as the host knows it.
func (h *rigHost) networkOf(subnet ipam.ID) string {
	s := h.service()
	return ledger.Ask(s.Ledger, func(ix *ledger.Index) string {
		if sx := ix.Subnet(subnet); sx != nil {
			return sx.Record().Network.String()
		}
		return ""
	})
}

func (mc *clusterMachine) reserve(t *rapid.T) {
	h := mc.host(t)
	e := &ipam.AddReservation{Network: mc.networkName(t), Owner: mc.owner(t), Replace: rapid.Bool().Draw(t, "replace"),
		Force: rapid.IntRange(0, 3).Draw(t, "force") == 0}
	if rapid.Bool().Draw(t, "static") {
		e.Wishes = []ipam.Wish{{Address: mc.anAddress(t)}}
	}
	if rapid.Bool().Draw(t, "ends") {
		e.For = ipam.Duration(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour}).Draw(t,
			"for"))
	}
	mc.makes(t, h, e)
}

func (mc *clusterMachine) unreserve(t *rapid.T) {
	mc.makes(t, mc.host(t), &ipam.RemoveReservation{Network: mc.networkName(t), Owner: mc.owner(t)})
}

// makes makes edits that change nothing of what is in hands.
func (mc *clusterMachine) makes(t *rapid.T, h *rigHost, edits ...ipam.Edit) {
	_, err := h.service().Edit(context.Background(), ipam.EditOptions{DryRun: rapid.IntRange(0, 9).Draw(t, "dry") == 0},
		edits...)
	mc.answered(t, h, fmt.Sprintf("%T%+v", edits[0], edits[0]), err)
}

func (mc *clusterMachine) edit(t *rapid.T) {
	network, made := mc.networkName(t), rapid.SampledFrom([]string{"made0", "made1"}).Draw(t, "made")
	from := mc.anAddress(t)
	r := rangeOf(fmt.Sprintf("%s-%s", from, from.Next()))
	label := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "label")
	cidr := netip.MustParsePrefix(rapid.SampledFrom([]string{"10.80.0.0/28", "10.79.0.0/28", "10.80.0.16/29"}).Draw(t,
		"cidr"))
	edits := []ipam.Edit{
		&ipam.AddPool{Network: network, Range: r, Name: label}, &ipam.RemovePool{Network: network, Pool: r.String()},
		&ipam.ModifyPool{Network: network, Pool: r.String(), Name: label},
		&ipam.AddExclusion{Network: network, Range: r}, &ipam.RemoveExclusion{Network: network, Range: r},
		&ipam.CreateNetwork{Name: made, Space: ipam.GlobalSpace,
			Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true, Name: label}}},
		&ipam.RemoveNetwork{Network: made, Force: label == "x"},
		&ipam.AddSubnet{Network: made, SubnetSpec: ipam.SubnetSpec{CIDR: cidr, Pool: true, Name: label}},
		&ipam.RemoveSubnet{Network: made, Subnet: cidr.String()},
		&ipam.ModifyNetwork{Network: network, Tags: map[string]*string{"tag": &label}},
	}
	one := edits[rapid.IntRange(0, len(edits)-1).Draw(t, "edit")]
	if rapid.IntRange(0, 4).Draw(t, "two") == 0 { // names that change places, and what takes the place of what goes
		others := [][]ipam.Edit{
			{&ipam.RemoveNetwork{Network: made},
				&ipam.CreateNetwork{Name: made, Space: ipam.GlobalSpace,
					Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true}}}},
			{&ipam.ModifyNetwork{Network: "made0", Name: ptrTo("made2")},
				&ipam.ModifyNetwork{Network: "made1", Name: ptrTo("made0")},
				&ipam.ModifyNetwork{Network: "made2", Name: ptrTo("made1")}},
			{&ipam.RemoveSubnet{Network: made, Subnet: cidr.String()},
				&ipam.AddSubnet{Network: made, SubnetSpec: ipam.SubnetSpec{CIDR: cidr, Pool: true}}},
		}
		mc.makes(t, mc.host(t), others[rapid.IntRange(0, len(others)-1).Draw(t, "edits")]...)
		return
	}
	mc.makes(t, mc.host(t), one)
}

func ptrTo[T any](v T) *T { return &v }

// resize gives a subnet another CIDR, as its leases allow.
func (mc *clusterMachine) resize(t *rapid.T) {
	h := mc.host(t)
	s := h.service()
	var subnets []*ipam.Subnet
	names := map[ipam.ID]string{}
	s.Ledger.Read(func(ix *ledger.Index) {
		for _, sx := range ix.Subnets() {
			subnets = append(subnets, sx.Record())
		}
		for id, nx := range ix.Networks() {
			if nx.Record() != nil {
				names[id] = nx.Record().Name
			}
		}
	})
	if len(subnets) == 0 {
		t.Skip("no subnet")
	}
	slices.SortFunc(subnets, func(a, b *ipam.Subnet) int { return a.CIDR.Addr().Compare(b.CIDR.Addr()) })
	sub := subnets[rapid.IntRange(0, len(subnets)-1).Draw(t, "subnet")]
	bits := rapid.IntRange(27, 29).Draw(t, "bits")
	cidr := netip.PrefixFrom(sub.CIDR.Addr(), bits).Masked()
	mc.makes(t, h, &ipam.ModifySubnet{Network: names[sub.Network], Subnet: sub.CIDR.String(), CIDR: &cidr})
}

// hostEdit drains, removes and admits hosts.
func (mc *clusterMachine) hostEdit(t *rapid.T) {
	h, other := mc.host(t), mc.host(t)
	edits := []ipam.Edit{
		&ipam.DrainHost{Name: other.name}, &ipam.DrainHost{Name: other.name, Undo: true},
		&ipam.DrainHost{Name: other.name, Undo: true},
		&ipam.RemoveHost{Name: other.name}, &ipam.RemoveHost{Name: other.name, Off: true},
		&ipam.AdmitHost{Name: other.name}, &ipam.AdmitHost{Name: other.name}, &ipam.AdmitHost{Name: other.name},
	}
	e := edits[rapid.IntRange(0, len(edits)-1).Draw(t, "edit")]
	_, err := h.service().Edit(context.Background(), ipam.EditOptions{}, e)
	mc.answered(t, h, fmt.Sprintf("%T%+v", e, e), err)
	if _, removes := e.(*ipam.RemoveHost); removes {
		mc.forget()
	}
}

// restart has another daemon speak for a host, whose old one may still run.
func (mc *clusterMachine) restart(t *rapid.T) {
	h := mc.host(t)
	old := h.service()
	lives := rapid.Bool().Draw(t, "the old one lives")
	if !lives {
		fine(t, old.Ledger.Store().Close())
	}
	delete(mc.lags, h)
	err := h.start()
	mc.forget() // it has ended what was half ended
	if err != nil && !errors.Is(err, ipam.ErrHost) {
		t.Fatalf("host %s starts again: %v", h.name, err)
	}
	if err == nil && lives {
		mc.zombies = append(mc.zombies, old)
	}
	if err != nil && !lives { // it was removed: it waits until it is admitted
		if _, err := mc.anotherThan(h).Edit(context.Background(), ipam.EditOptions{},
			&ipam.AdmitHost{Name: h.name}); err != nil && !errors.Is(err, store.ErrUnknown) {
			t.Logf("%v", err)
		}
		mc.admit(t, h)
	}
}

// anotherThan is a host within reach that takes part.
func (mc *clusterMachine) anotherThan(h *rigHost) *service.Service {
	for _, other := range mc.hosts {
		if other != h && mc.audit.hosts[other.name].State != ipam.HostRemoved {
			other.handle().Heal()
			return other.service()
		}
	}
	return mc.hosts[0].service()
}

// admit starts the daemon of a host that has none.
func (mc *clusterMachine) admit(t *rapid.T, h *rigHost) {
	for range 3 {
		if h.start() == nil {
			return
		}
		if _, err := mc.anotherThan(h).Edit(context.Background(), ipam.EditOptions{},
			&ipam.AdmitHost{Name: h.name}); err != nil {
			t.Logf("%v", err)
		}
	}
	t.Skip("all hosts are removed")
}

// zombie has the daemon that was replaced ask for things: it is refused, within reach of the store or not.
func (mc *clusterMachine) zombie(t *rapid.T) {
	if len(mc.zombies) == 0 {
		t.Skip("there is none")
	}
	s := mc.zombies[rapid.IntRange(0, len(mc.zombies)-1).Draw(t, "zombie")]
	id, _ := mc.aPool(t)
	_, err := s.RequestAddress(context.Background(), ipam.AddressRequest{Pool: id, MAC: ipam.MAC{6}})
	if !errors.Is(err, ipam.ErrHost) && !errors.Is(err, store.ErrAway) {
		t.Fatalf("the old daemon of host %s: %v", s.Ledger.Host(), err)
	}
	if err := s.ReleasePool(context.Background(), id); !errors.Is(err, ipam.ErrHost) && !errors.Is(err, store.ErrAway) {
		t.Fatalf("the old daemon of host %s: %v", s.Ledger.Host(), err)
	}
}

func (mc *clusterMachine) cut(t *rapid.T) {
	mc.host(t).handle().Cut(errors.New("the cable was pulled"))
}

func (mc *clusterMachine) heal(t *rapid.T) { mc.host(t).handle().Heal() }

func (mc *clusterMachine) lag(t *rapid.T) {
	h, lags := mc.host(t), rapid.IntRange(0, 3).Draw(t, "lags") > 0
	h.handle().Lag(lags)
	mc.lags[h] = lags
}

// lose has the next outcome of a host be lost.
func (mc *clusterMachine) lose(t *rapid.T) {
	h, committed := mc.host(t), rapid.Bool().Draw(t, "committed")
	if rapid.Bool().Draw(t, "cut") {
		h.handle().CutNext(committed, errors.New("the cable was pulled"))
	} else {
		h.handle().LoseNext(committed)
	}
}

func (mc *clusterMachine) run(t *rapid.T) {
	h := mc.host(t)
	mc.answered(t, h, "run", rigRun(context.Background(), h.service().Ledger))
	mc.forget()
}
