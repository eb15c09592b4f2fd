package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
)

// clusterMachine drives three hosts on one store through requests, edits, restarts, outages and lost outcomes.
// It knows only the answers it got. After each step the records match the answers, each host's index matches its
// records, and no commit on the way was a forbidden one.
type clusterMachine struct {
	t *testing.T
	*rig
	hands   map[netip.Addr]inHand
	pools   map[ipam.ID]*rigHost // granted and not released
	zombies []*service.Service   // daemons that were replaced by a restart
	lags    map[*rigHost]bool
	macs    int
	since   map[netip.Addr]*service.Service // the daemon that gave the address; nil: unknown
}

// LN-12, BO-1, GA-22
func TestClusterModel(t *testing.T) {
	t.Parallel()
	tt := t
	rapid.Check(t, func(t *rapid.T) {
		mc := &clusterMachine{t: tt, rig: newRig(t), hands: map[netip.Addr]inHand{}, pools: map[ipam.ID]*rigHost{},
			lags:  map[*rigHost]bool{},
			since: map[netip.Addr]*service.Service{}}
		defer mc.close()
		defer func() {
			for _, z := range mc.zombies {
				_ = z.Ledger.Store().Close()
			}
		}()
		mc.plan()
		t.Repeat(map[string]func(*rapid.T){
			"attach": mc.attach, "attach2": mc.attach, "detach": mc.detach,
			"ask": mc.ask, "ask2": mc.ask, "ask3": mc.ask, "askAgain": mc.askAgain, "back": mc.back, "back2": mc.back,
			"backElsewhere": mc.backElsewhere,
			"take":          mc.take, "giveBack": mc.giveBack,
			"reserve": mc.edits(clusterReserves), "unreserve": mc.edits(clusterUnreserves),
			"edit": mc.edits(clusterEdits), "edit2": mc.edits(clusterEdits),
			"resize": mc.resize, "host": mc.hostEdit,
			"restart": mc.restart, "zombie": mc.zombie, "cut": mc.cut, "heal": mc.heal, "lag": mc.lag, "lose": mc.lose,
			"run": mc.run, "wait": mc.waits,
			"": mc.check,
		})
		mc.quiet(t)
	})
}

// plan makes the networks that the hosts share.
func (mc *clusterMachine) plan() {
	for _, line := range []string{"network lan0 space=global subnet=10.77.0.0/28,gw=10.77.0.1,pool",
		"network lan1 space=global subnet=10.78.0.0/29,gw=10.78.0.1,pool", "network dyn space=global type=dynamic"} {
		ipamtest.Must(mc.t, changes(mc.t, mc.hosts[0].service(), line, false))
	}
}

func (mc *clusterMachine) host(t *rapid.T) *rigHost {
	return mc.hosts[rapid.IntRange(0, len(mc.hosts)-1).Draw(t, "host")]
}

// answered checks that the host could have given this answer. It returns false if the outcome is unknown.
func (mc *clusterMachine) answered(t *rapid.T, h *rigHost, what string, err error) (known bool) {
	t.Helper()
	switch {
	case err == nil:
		return true
	case errors.Is(err, store.ErrUnknown):
		return false
	case errors.Is(err, store.ErrAway):
		if !h.away() {
			t.Fatalf("host %s, %s: %v", h.name, what, err)
		}
		return true
	}
	for _, kind := range []error{ipam.ErrInvalid, ipam.ErrNotFound, ipam.ErrInUse, ipam.ErrExhausted, ipam.ErrOverlap,
		ipam.ErrHost} {
		if errors.Is(err, kind) {
			return true
		}
	}
	t.Fatalf("host %s, %s: %v", h.name, what, err)
	return true
}

func (mc *clusterMachine) attach(t *rapid.T) {
	h := mc.host(t)
	req := ipam.PoolRequest{Space: ipam.GlobalSpace}
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0, 1, 2:
		req = ipam.PoolRequest{Network: rapid.SampledFrom([]string{"lan0", "lan0", "lan1", "made0", "made1"}).Draw(t,
			"network")}
	case 3:
		req.CIDR = netip.MustParsePrefix(rapid.SampledFrom([]string{"10.79.0.0/28", "10.79.0.0/29",
			"10.79.0.16/28"}).Draw(t, "cidr"))
	case 4:
		req.CIDR = netip.MustParsePrefix("10.79.0.0/28")
		req.Range = ipamtest.MustRange(rapid.SampledFrom([]string{"10.79.0.4/30", "10.79.0.8/30"}).Draw(t, "range"))
	case 5:
		req.Bits = 28
	}
	g, err := h.service().RequestPool(context.Background(), req)
	mc.answered(t, h, "attach", err)
	if err == nil {
		mc.pools[g.ID] = h
	}
}

// aPool draws one of the pools, or skips if there is none.
func (mc *clusterMachine) aPool(t *rapid.T) (ipam.ID, *rigHost) {
	if len(mc.pools) == 0 {
		t.Skip("no pool")
	}
	ids := slices.SortedFunc(maps.Keys(mc.pools),
		func(a, b ipam.ID) int { return strings.Compare(a.String(), b.String()) })
	id := ids[rapid.IntRange(0, len(ids)-1).Draw(t, "pool")]
	return id, mc.pools[id]
}

func (mc *clusterMachine) detach(t *rapid.T) {
	id, h := mc.aPool(t)
	err := h.service().ReleasePool(context.Background(), id)
	mc.answered(t, h, "detach", err)
	mc.forget()
	if err == nil {
		delete(mc.pools, id)
	}
}

// forget drops the addresses of ended pools from hands, and drops pools that are gone from the list.
func (mc *clusterMachine) forget() {
	mc.audit.mu.Lock()
	defer mc.audit.mu.Unlock()
	maps.DeleteFunc(mc.hands, func(_ netip.Addr, in inHand) bool {
		at := mc.audit.attachments[in.pool]
		return in.pool != (ipam.ID{}) && (at == nil || at.Ended)
	})
	maps.DeleteFunc(mc.pools, func(id ipam.ID, _ *rigHost) bool { return mc.audit.attachments[id] == nil })
}

func (mc *clusterMachine) ask(t *rapid.T) {
	id, h := mc.aPool(t)
	mc.macs++
	req := ipam.AddressRequest{Pool: id, MAC: ipam.MAC{2, 0, 0, 0, byte(mc.macs >> 8), byte(mc.macs)}}
	if rapid.IntRange(0, 2).Draw(t, "named") == 0 {
		req.Name = fmt.Sprintf("shop-web-%d", rapid.IntRange(1, 4).Draw(t, "name"))
	}
	if rapid.IntRange(0, 2).Draw(t, "static") == 0 {
		req.Preferred = mc.anAddress(t)
	}
	own := mc.audit.reservedFor(id, req.Name)
	given, err := h.service().RequestAddress(context.Background(), req)
	mc.took(t, h, given.Addr(), inHand{pool: id, mac: req.MAC, name: req.Name}, err)
	if err == nil && !req.Preferred.IsValid() && len(own) > 0 && !slices.Contains(own, given.Addr()) {
		t.Fatalf("host %s gave %s to %s, for whom %s is reserved", h.name, given, req.Name, own)
	}
}

func (mc *clusterMachine) anAddress(t *rapid.T) netip.Addr {
	base := rapid.SampledFrom([]string{"10.77.0.0", "10.78.0.0", "10.79.0.0"}).Draw(t, "base")
	a := netip.MustParseAddr(base).As4()
	a[3] = byte(rapid.IntRange(1, 14).Draw(t, "last"))
	return netip.AddrFrom4(a)
}

// took notes the new holder of an address. If the outcome is unknown, the records tell whether an address was
// given.
func (mc *clusterMachine) took(t *rapid.T, h *rigHost, addr netip.Addr, in inHand, err error) {
	t.Helper()
	if !mc.answered(t, h, "ask", err) {
		for a, found := range mc.audit.inHands() {
			if _, had := mc.hands[a]; !had && found.pool == in.pool && found.mac == in.mac && found.name == in.name {
				addr, err = a, nil
			}
		}
	}
	if err != nil {
		return
	}
	if other, taken := mc.hands[addr]; taken {
		t.Fatalf("host %s gave %s to %+v, and %+v has it", h.name, addr, in, other)
	}
	mc.hands[addr], mc.since[addr] = in, h.service()
}

// aHand draws an address in use through a pool, or by an owner.
func (mc *clusterMachine) aHand(t *rapid.T, owners bool) (netip.Addr, inHand) {
	var addrs []netip.Addr
	for a, in := range mc.hands {
		if (in.pool == ipam.ID{}) == owners {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		t.Skip("nothing is in use")
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	a := rapid.SampledFrom(addrs).Draw(t, "address")
	return a, mc.hands[a]
}

// askAgain asks with the MAC of an address in use. This is a second endpoint or, if the daemon was restarted
// since, perhaps the same endpoint, which gets its address again, once.
func (mc *clusterMachine) askAgain(t *rapid.T) {
	addr, in := mc.aHand(t, false)
	h := mc.pools[in.pool]
	given, err := h.service().RequestAddress(context.Background(),
		ipam.AddressRequest{Pool: in.pool, MAC: in.mac, Name: in.name})
	life := h.service()
	has, again := mc.hands[given.Addr()]
	switch again = again && has.pool == in.pool && has.mac == in.mac && has.name == in.name; {
	case errors.Is(err, store.ErrUnknown):
		for a, other := range mc.hands {
			if other.pool == in.pool && other.mac == in.mac {
				mc.since[a] = nil
			}
		}
	case err != nil:
	case again && mc.since[given.Addr()] == life:
		t.Fatalf("%s was given to a second one that says it is %+v", given, in)
	case again:
		mc.since[given.Addr()] = life
		return
	case mc.since[addr] != nil && mc.since[addr] != life:
		t.Fatalf("after a restart %+v was given %s, and had %s", in, given, addr)
	}
	mc.took(t, h, given.Addr(), in, err)
}

func (mc *clusterMachine) back(t *rapid.T) {
	addr, in := mc.aHand(t, false)
	h := mc.pools[in.pool]
	err := h.service().ReleaseAddress(context.Background(), in.pool, addr)
	if known := mc.answered(t, h, "give back", err); !known {
		_, still := mc.audit.inHands()[addr]
		if still {
			return
		}
	} else if err != nil {
		return
	}
	delete(mc.hands, addr)
}

// backElsewhere releases an address through another pool, on any host. Nothing happens.
func (mc *clusterMachine) backElsewhere(t *rapid.T) {
	addr, in := mc.aHand(t, false)
	id, _ := mc.aPool(t)
	if id == in.pool {
		id = ipam.NewID()
	}
	h := mc.host(t)
	mc.answered(t, h, "give back elsewhere", h.service().ReleaseAddress(context.Background(), id, addr))
}

func (mc *clusterMachine) check(t *rapid.T) {
	for _, p := range mc.audit.found() {
		t.Errorf("%s", p)
	}
	got := mc.audit.inHands()
	for a, in := range mc.hands {
		if is, ok := got[a]; !ok || is.pool != in.pool || is.mac != in.mac || in.name != "" && is.name != in.name {
			t.Errorf("%s is in the hands of %+v; the records say %+v (%t)", a, in, is, ok)
		}
	}
	for a, is := range got {
		if _, ok := mc.hands[a]; !ok {
			t.Errorf("%s is in nobody's hands; the records say %+v", a, is)
		}
	}
	problems, err := stores.CheckStore(context.Background(), mc.truth)
	if err != nil || len(problems) > 0 {
		t.Errorf("%q, %v", problems, err)
	}
	for _, h := range mc.hosts {
		if mc.lags[h] {
			continue // a view would make it catch up
		}
		if p := indexProblem(context.Background(), h.service()); p != "" {
			t.Errorf("host %s: %s", h.name, p)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// quiet heals everything and finishes what was half done. Then all hosts have the same index.
func (mc *clusterMachine) quiet(t *rapid.T) {
	// outcomes that were set to be lost are lost in the first rounds; the last round finds nothing to do
	for round := range 4 {
		for _, h := range mc.hosts {
			h.handle().Lag(false)
			h.handle().Heal()
			err := rigRun(context.Background(), h.service().Ledger)
			lost := errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrAway)
			if err != nil && !errors.Is(err, ipam.ErrHost) && !(lost && round < 2) {
				t.Errorf("host %s: %v", h.name, err)
			}
		}
		mc.forget()
	}
	clear(mc.lags)
	mc.check(t)
	for id, at := range mc.audit.attachments {
		if at.Ended { // other hosts end the pools of a removed host
			t.Errorf("pool %s of host %s has not come to its end", id, at.Host)
		}
	}
	var first map[string]bool
	for _, h := range mc.hosts {
		s := h.service()
		said := ledger.Ask(s.Ledger, (*ledger.Index).Lines)
		if first == nil {
			first = said
		}
		if ledger.Ask(s.Ledger, (*ledger.Index).AllRead) &&
			ledger.Ask(mc.hosts[0].service().Ledger, (*ledger.Index).AllRead) && !maps.Equal(first, said) {
			t.Errorf("host %s says otherwise than host %s", h.name, mc.hosts[0].name)
		}
	}
}

func (mc *clusterMachine) waits(t *rapid.T) {
	mc.wait(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, 25 * time.Hour}).Draw(t,
		"wait"))
	h := mc.host(t)
	h.skew(rapid.SampledFrom([]time.Duration{0, 50 * time.Microsecond, -time.Second, time.Hour,
		-48 * time.Hour}).Draw(t, "skew"))
}
