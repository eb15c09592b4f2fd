package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
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

// take makes an owner take an address by hand, on a new interface.
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

// giveBack releases what an owner took: one address, or all of them in all networks.
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
	for a, in2 := range mc.hands { // the addresses of the same owner
		if _, still := now[a]; !still && in2.pool == (ipam.ID{}) && in2.name == in.name {
			delete(mc.hands, a)
		}
	}
}

// networkOf returns the network of a subnet as the host knows it.
func (h *rigHost) networkOf(subnet ipam.ID) string {
	s := h.service()
	return ledger.Ask(s.Ledger, func(ix *ledger.Index) string {
		if sx := ix.Subnet(subnet); sx != nil {
			return sx.Record().Network.String()
		}
		return ""
	})
}

// Edits that leave addresses in use unchanged. Several edits in one line swap names, or replace what they
// remove.
const (
	clusterReserves = `
	reserve $NET $OWNER $HOW
	reserve $NET $OWNER $ADDR $HOW
	reserve $NET $OWNER for=$FOR $HOW
`
	clusterUnreserves = "unreserve $NET $OWNER"
	clusterEdits      = `
	pool $NET $ADDR+2 name=$LABEL
	pool.rm $NET $ADDR+2
	pool.set $NET $ADDR+2 $LABEL
	exclude $NET $ADDR+2
	include $NET $ADDR+2
	network $MADE space=global subnet=$CIDR,pool,name=$LABEL
	network.rm $MADE $HOW
	subnet $MADE $CIDR pool name=$LABEL
	subnet.rm $MADE $CIDR
	network.set $NET tag.tag=$LABEL
	network.rm $MADE + network $MADE space=global subnet=$CIDR,pool
	network.set made0 name=made2 + network.set made1 name=made0 + network.set made2 name=made1
	subnet.rm $MADE $CIDR + subnet $MADE $CIDR pool
`
)

// edits returns a step that makes one of the given edits.
func (mc *clusterMachine) edits(lines string) func(t *rapid.T) {
	return func(t *rapid.T) {
		mc.edit(t, rapid.SampledFrom(strings.Split(strings.TrimSpace(lines), "\n")).Draw(t, "edit"))
	}
}

func (mc *clusterMachine) edit(t *rapid.T, line string) {
	for _, word := range []string{"$MADE made0 made1", "$LABEL x y", "$CIDR 10.80.0.0/28 10.79.0.0/28 10.80.0.16/29",
		"$HOW force replace -", "$FOR 1ms 1s 1h"} {
		name, choices, _ := strings.Cut(word, " ")
		choice := rapid.SampledFrom(strings.Fields(choices)).Draw(t, name)
		line = strings.ReplaceAll(line, name, strings.TrimPrefix(choice, "-"))
	}
	line = strings.NewReplacer("$NET", mc.networkName(t), "$OWNER", mc.owner(t), "$ADDR", mc.anAddress(t).String()).
		Replace(line)
	mc.makes(t, mc.host(t), line)
}

// makes makes edits that leave addresses in use unchanged.
func (mc *clusterMachine) makes(t *rapid.T, h *rigHost, line string) {
	mc.answered(t, h, line, changes(mc.t, h.service(), line, rapid.IntRange(0, 9).Draw(t, "dry") == 0))
}

// resize gives a subnet another CIDR, as its leases allow.
func (mc *clusterMachine) resize(t *rapid.T) {
	h := mc.host(t)
	var all []string
	h.service().Ledger.Read(func(ix *ledger.Index) {
		for _, sx := range ix.Subnets() {
			all = append(all, fmt.Sprint(sx.Record().CIDR, " ", sx.Record().Network))
		}
	})
	if len(all) == 0 {
		t.Skip("no subnet")
	}
	slices.Sort(all)
	at := rapid.IntRange(0, len(all)-1).Draw(t, "subnet")
	subnet, network, _ := strings.Cut(all[at], " ")
	bits := rapid.IntRange(27, 29).Draw(t, "bits")
	cidr := netip.PrefixFrom(netip.MustParsePrefix(subnet).Addr(), bits).Masked()
	mc.makes(t, h, fmt.Sprintf("subnet.set %s %s cidr=%s", network, subnet, cidr))
}

// hostEdit drains, removes and admits hosts.
func (mc *clusterMachine) hostEdit(t *rapid.T) {
	h, other := mc.host(t), mc.host(t)
	e := rapid.SampledFrom([]string{`drain {"name": %q}`, `drain {"name": %q, "undo": true}`,
		`drain {"name": %q, "undo": true}`, `remove {"name": %q}`, `remove {"name": %q, "off": true}`,
		`admit {"name": %q}`, `admit {"name": %q}`, `admit {"name": %q}`}).Draw(t, "edit")
	line := fmt.Sprintf("edit host."+e, other.name)
	mc.answered(t, h, line, changes(mc.t, h.service(), line, false))
	if strings.HasPrefix(e, "remove") {
		mc.forget()
	}
}

// restart starts another daemon for a host. The old one may still run.
func (mc *clusterMachine) restart(t *rapid.T) {
	h := mc.host(t)
	old := h.service()
	lives := rapid.Bool().Draw(t, "the old one lives")
	if !lives {
		ipamtest.Must(t, old.Ledger.Store().Close())
	}
	delete(mc.lags, h)
	err := h.start()
	mc.forget() // the new daemon has ended what was half ended
	if err != nil && !errors.Is(err, ipam.ErrHost) {
		t.Fatalf("host %s starts again: %v", h.name, err)
	}
	if err == nil && lives {
		mc.zombies = append(mc.zombies, old)
	}
	if err != nil && !lives { // the host was removed: it waits until it is admitted
		if _, err := mc.anotherThan(h).Edit(context.Background(), ipam.EditOptions{},
			&ipam.AdmitHost{Name: h.name}); err != nil && !errors.Is(err, store.ErrUnknown) {
			t.Logf("%v", err)
		}
		mc.admit(t, h)
	}
}

// anotherThan returns another host that takes part, and heals it.
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

// zombie sends requests through a replaced daemon. They are refused, whether it reaches the store or not.
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

// lose makes the next outcome of a host get lost.
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
