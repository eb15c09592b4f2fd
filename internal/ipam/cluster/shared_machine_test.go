package cluster

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/store/mem"
)

// sharedMachine drives one host through outages, lost answers and restarts, while another host takes and
// releases on the same subnet. It knows what both engines were told, and compares the records with that.
type sharedMachine struct {
	common *mem.Store
	a, b   *sharingHost
	pools  []ipam.ID // of host a
	theirs ipam.ID   // of host b
	hands  map[netip.Addr]hand
	old    map[netip.Addr]bool // in use since before the daemon's start
	macs   int
}

// hand is the holder of an address, as an engine was told.
type hand struct {
	host *sharingHost
	pool ipam.ID
	mac  ipam.MAC
	name string
}

func TestSharedModel(t *testing.T) { // LN-12, GA-22
	rapid.Check(t, func(t *rapid.T) {
		common := mem.New()
		m := &sharedMachine{common: common, a: newSharingHost(t, common, "a"), b: newSharingHost(t, common, "b"),
			hands: map[netip.Addr]hand{}, old: map[netip.Addr]bool{}}
		m.a.open()
		m.b.open()
		m.b.edit(&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Headroom: 2,
			Subnets: []ipam.SubnetSpec{{CIDR: lanCIDR}}},
			&ipam.AddPool{Network: "lan",
				Range: ipam.Range{IPRange: allocator.WholeRange(netip.MustParsePrefix("10.77.0.8/29")).IPRange}},
			&ipam.AddPool{Network: "lan",
				Range: ipam.Range{IPRange: allocator.WholeRange(netip.MustParsePrefix("10.77.0.16/30")).IPRange}})
		m.theirs = m.b.pool()
		t.Repeat(map[string]func(*rapid.T){
			"pool": m.pool, "releasePool": m.releasePool,
			"take": m.take, "take2": m.take, "takeThis": m.takeThis, "again": m.again,
			"release": m.release, "release2": m.release, "releaseAny": m.releaseAny,
			"theyTake": m.theyTake, "theyRelease": m.theyRelease,
			"cut": m.cut, "heal": m.heal, "lose": m.lose, "lag": m.lag,
			"restart": m.restart, "look": m.look, "look2": m.look, "modify": m.modify, "wait": m.wait,
			"": m.check,
		})
		m.settle(t)
	})
}

// with makes the hosts report to the current run.
func (m *sharedMachine) with(t *rapid.T) { m.a.t, m.b.t = t, t }

// tolerated accepts errors that a host may return at any time while its store comes and goes.
func (m *sharedMachine) tolerated(t *rapid.T, err error) bool {
	t.Helper()
	switch {
	case err == nil:
		return false
	case isUnknown(err), errors.Is(err, ipam.ErrAway) && (m.away() || m.a.keeps()):
		return true
	}
	t.Fatal(err)
	return true
}

// away tells whether host a cannot reach the store, or has not reopened it since it came back.
func (m *sharedMachine) away() bool {
	svc, _ := m.a.service()
	return svc == nil || m.a.handle.Reach().Err != nil
}

func (m *sharedMachine) pool(t *rapid.T) {
	m.with(t)
	if len(m.pools) == 2 {
		t.Skip("enough")
	}
	grant, err := m.a.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: lanCIDR})
	if !m.tolerated(t, err) {
		m.pools = append(m.pools, grant.ID)
	}
}

func (m *sharedMachine) aPool(t *rapid.T) ipam.ID {
	if len(m.pools) == 0 {
		t.Skip("no pool")
	}
	return m.pools[rapid.IntRange(0, len(m.pools)-1).Draw(t, "pool")]
}

// releasePool ends a Docker network. The engine may have released its addresses before; a swarm does not.
func (m *sharedMachine) releasePool(t *rapid.T) {
	m.with(t)
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		t.Skip("not now")
	}
	pool := m.aPool(t)
	fine(t, m.a.ReleasePool(context.Background(), pool))
	m.pools = ipam.Without(m.pools, pool)
	maps.DeleteFunc(m.hands, func(_ netip.Addr, h hand) bool { return h.pool == pool })
}

func (m *sharedMachine) request(t *rapid.T, host *sharingHost, pool ipam.ID) ipam.AddressRequest {
	m.macs++
	return ipam.AddressRequest{Pool: pool, MAC: testMAC(m.macs),
		Name: rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "name")}
}

// given notes an answer. No other endpoint may have the address.
func (m *sharedMachine) given(t *rapid.T, host *sharingHost, req ipam.AddressRequest, addr netip.Addr) {
	t.Helper()
	if other, ok := m.hands[addr]; ok {
		t.Fatalf("%s was given to %s on %s, and %s on %s has it", addr, req.MAC, host.name, other.mac, other.host.name)
	}
	if req.Preferred.IsValid() && req.Preferred != addr {
		t.Fatalf("%s was given for %s", addr, req.Preferred)
	}
	m.hands[addr] = hand{host, req.Pool, req.MAC, req.Name}
	delete(m.old, addr)
}

func (m *sharedMachine) take(t *rapid.T) {
	m.with(t)
	pool := m.aPool(t)
	req := m.request(t, m.a, pool)
	within := !m.away()
	addr, err := m.a.ask(req)
	switch {
	case errors.Is(err, ipam.ErrExhausted) && within:
		if left := m.a.free(pool); len(left) > 0 && m.a.headroomOf(pool).Quarantine == 0 {
			t.Fatalf("%v, and the headroom has %v", err, left)
		}
	case !m.tolerated(t, err):
		m.given(t, m.a, req, addr)
	}
}

func (m *sharedMachine) takeThis(t *rapid.T) {
	m.with(t)
	req := m.request(t, m.a, m.aPool(t))
	req.Preferred = lanCIDR.Addr()
	for range rapid.IntRange(6, 22).Draw(t, "address") {
		req.Preferred = req.Preferred.Next()
	}
	addr, err := m.a.ask(req)
	switch {
	case errors.Is(err, ipam.ErrInUse):
		if l := heldAt(t, m.common, req.Preferred); l == nil || l.Kind == ipam.Headroom && l.Attachment == req.Pool &&
			l.Host == "a" && slices.Contains(m.a.free(req.Pool), addr) {
			t.Fatalf("%v, and there is %+v", err, l)
		}
	case !m.tolerated(t, err):
		m.given(t, m.a, req, addr)
	}
}

// of lists the addresses in use on a host, in order.
func (m *sharedMachine) of(host *sharingHost) (all []netip.Addr) {
	for addr, h := range m.hands {
		if h.host == host {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

func (m *sharedMachine) one(t *rapid.T, host *sharingHost) (netip.Addr, hand) {
	all := m.of(host)
	if len(all) == 0 {
		t.Skip("nothing in hand")
	}
	addr := rapid.SampledFrom(all).Draw(t, "in hand")
	return addr, m.hands[addr]
}

// again asks with the MAC of an endpoint that has an address. This is a second endpoint or, if the daemon was
// restarted since, the same endpoint, which gets its address again, once. A daemon that has not reached the
// store yet knows nothing of its records. If the request took over the lease in doubt and the store's answer got
// lost, that lease ends in any case, and the endpoint gets another address from the headroom, or none.
func (m *sharedMachine) again(t *rapid.T) {
	m.with(t)
	addr, h := m.one(t, m.a)
	req := ipam.AddressRequest{Pool: h.pool, MAC: h.mac, Name: h.name}
	if rapid.Bool().Draw(t, "by address") {
		req.Preferred = addr
	}
	got, err := m.a.ask(req)
	switch {
	case isUnknown(err): // the request may have taken over the lease in doubt, which is then released
		m.lost(h, func(netip.Addr) bool { return true })
		return
	case errors.Is(err, ipam.ErrInUse), errors.Is(err, ipam.ErrExhausted), m.tolerated(t, err):
		return
	}
	has, again := m.hands[got]
	switch {
	case !again || has.pool != h.pool || has.mac != h.mac:
		m.given(t, m.a, req, got)
		m.lost(h, m.parted(h.pool))
	case !m.old[got]:
		t.Fatalf("%s was given to a second one with the MAC %s", got, h.mac)
	}
	delete(m.old, got)
}

// parted tells for which addresses host a has queued a release.
func (m *sharedMachine) parted(pool ipam.ID) func(netip.Addr) bool {
	all := m.a.queuedFor(pool)
	return func(addr netip.Addr) bool {
		return slices.ContainsFunc(all, func(p queuedRelease) bool { return p.Address == addr })
	}
}

// lost makes an endpoint release those addresses from before the daemon's start that meant selects.
func (m *sharedMachine) lost(h hand, meant func(netip.Addr) bool) {
	for _, addr := range m.of(m.a) {
		if has := m.hands[addr]; m.old[addr] && has.pool == h.pool && has.mac == h.mac && meant(addr) {
			delete(m.hands, addr)
			m.a.give(h.pool, addr)
		}
	}
}

func (m *sharedMachine) release(t *rapid.T) {
	m.with(t)
	addr, h := m.one(t, m.a)
	delete(m.hands, addr)
	m.a.give(h.pool, addr)
	if rapid.IntRange(0, 3).Draw(t, "twice") == 0 {
		m.a.give(h.pool, addr)
	}
}

// releaseAny releases an address that is unused, or used through another pool. It succeeds, and changes nothing.
func (m *sharedMachine) releaseAny(t *rapid.T) {
	m.with(t)
	pool, addr := m.aPool(t), lanCIDR.Addr()
	for range rapid.IntRange(1, 22).Draw(t, "address") {
		addr = addr.Next()
	}
	if h, ok := m.hands[addr]; ok && h.pool == pool {
		t.Skip("somebody has it")
	}
	if svc, _ := m.a.service(); svc == nil {
		t.Skip("an engine releases what it was given")
	}
	m.a.give(pool, addr)
}

func (m *sharedMachine) theyTake(t *rapid.T) {
	m.with(t)
	req := m.request(t, m.b, m.theirs)
	if rapid.Bool().Draw(t, "this") {
		req.Preferred = lanCIDR.Addr()
		for range rapid.IntRange(6, 22).Draw(t, "address") {
			req.Preferred = req.Preferred.Next()
		}
	}
	addr, err := m.b.ask(req)
	switch {
	case err == nil:
		m.given(t, m.b, req, addr)
	case !errors.Is(err, ipam.ErrExhausted) && !errors.Is(err, ipam.ErrInUse):
		t.Fatal(err)
	}
}

func (m *sharedMachine) theyRelease(t *rapid.T) {
	m.with(t)
	addr, h := m.one(t, m.b)
	delete(m.hands, addr)
	m.b.give(h.pool, addr)
}

func (m *sharedMachine) cut(*rapid.T)  { m.a.handle.Cut(errCut) }
func (m *sharedMachine) heal(*rapid.T) { m.a.handle.Heal() }

func (m *sharedMachine) lose(t *rapid.T) {
	committed := rapid.Bool().Draw(t, "committed")
	if rapid.Bool().Draw(t, "cut") {
		m.a.handle.CutNext(committed, errCut)
	} else {
		m.a.handle.LoseNext(committed)
	}
}

func (m *sharedMachine) lag(t *rapid.T) { m.a.handle.Lag(rapid.Bool().Draw(t, "lags")) }

// restart starts a new daemon. A loss that was still to come does not happen.
func (m *sharedMachine) restart(t *rapid.T) {
	m.with(t)
	m.b.now = m.b.now.Add(time.Second)
	m.a.bootLater()
	for _, addr := range m.of(m.a) {
		m.old[addr] = true
	}
	if m.a.handle.Reach().Err == nil {
		m.a.open()
	}
}

func (m *sharedMachine) look(t *rapid.T) {
	m.with(t)
	if m.a.handle.Reach().Err == nil {
		m.tolerated(t, m.a.look())
	}
	fine(t, m.b.look())
}

func (m *sharedMachine) modify(t *rapid.T) {
	m.with(t)
	wanted := rapid.IntRange(0, 3).Draw(t, "headroom")
	quarantine := ipam.Duration(rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "quarantine"))
	m.b.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: &wanted, Quarantine: &quarantine})
}

func (m *sharedMachine) wait(t *rapid.T) {
	by := time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
	m.a.now, m.b.now = m.a.now.Add(by), m.b.now.Add(by)
}

// check compares the records with what the engines were told, and with what the host takes to be its own.
func (m *sharedMachine) check(t *rapid.T) {
	m.with(t)
	held := map[netip.Addr]*ipam.Lease{}
	for _, l := range leasesIn(t, m.common) {
		held[l.Address] = l
	}
	for addr, h := range m.hands {
		l := held[addr]
		if l == nil || l.Host != h.host.name || l.Attachment != h.pool || l.Kind != ipam.Headroom && l.MAC != h.mac {
			t.Fatalf("%s of host %s has %s, and in the store it is %+v", h.mac, h.host.name, addr, l)
		}
		if sp, ok := h.host.addrAt(h.pool, addr); l.Kind == ipam.Headroom &&
			(!ok || !sp.held() || sp.Holder.MAC != h.mac) {
			t.Fatalf("%s of host %s has %s, which is headroom in the store, and for the host %+v", h.mac, h.host.name,
				addr, sp)
		}
	}
	for _, pool := range m.pools {
		for _, addr := range m.a.free(pool) {
			if h, ok := m.hands[addr]; ok {
				t.Fatalf("%s is in the hands of %s, and free for the host", addr, h.mac)
			}
		}
	}
}

// settle ends all outages. Then the records hold what the engines know, and nothing else.
func (m *sharedMachine) settle(t *rapid.T) {
	m.with(t)
	m.a.handle.Heal()
	m.a.handle.Lag(false)
	m.a.boot() // a loss that was still to come does not happen
	m.a.mustLook()
	m.a.mustLook()
	m.check(t)
	for _, l := range leasesIn(t, m.common) {
		if _, ok := m.hands[l.Address]; !ok && l.Kind != ipam.Headroom {
			t.Fatalf("left in the store: %+v", l)
		}
		if l.Kind == ipam.Headroom && l.Host == "a" && !slices.Contains(m.a.free(l.Attachment), l.Address) {
			t.Fatalf("claimed, and the host does not know: %+v", l)
		}
	}
	if m.a.keeps() || len(m.a.warned) > 0 || len(m.b.warned) > 0 {
		t.Fatalf("%+v, %q, %q", m.a.outbox, m.a.warned, m.b.warned)
	}
	m.a.sound()
	m.b.sound()
}
