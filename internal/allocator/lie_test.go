package allocator_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// liar is a witness with random answers about some containers or none, live or not, which differ each time, and with
// random requests by configuration.
type liar struct {
	names  []string
	next   int
	lost   []bool
	wanted map[netip.Addr]string
}

var lies = []string{"", "web", "db", "api-1", "api-2", "nobody", "02:00:00:00:00:01", "0123456789ab_web", "shop-web-1",
	"\x00\xff", "long"}

func (l *liar) guess(context.Context, ipam.Question) ipam.Hint {
	if len(l.names) == 0 {
		return ipam.Hint{}
	}
	l.next = (l.next + 1) % len(l.names)
	hint := ipam.Hint{Name: l.names[l.next], Live: !l.lost[l.next%len(l.lost)]}
	if hint.Name == "long" {
		hint = ipamtest.HintOf("long")
	}
	hint.Others, hint.Boots = l.names[l.next/2:], l.next%3 == 0
	return hint
}

func (l *liar) wants(string, netip.Prefix) []ipam.Want { return ipamtest.WantsOf(l.wanted) }

// liarMachine is a service whose witness lies, and the holders of the addresses that it gave.
type liarMachine struct {
	t     *rapid.T
	clock *ipamtest.Clock
	store store.Store
	s     *service.Service
	liar  *liar
	pools []ipam.ID
	held  map[netip.Addr]ipam.MAC
}

// TestLyingWitness tests that with any answers of a witness no address has two holders, and that no request is refused
// that would be granted without them.
func TestLyingWitness(all *testing.T) {
	ipamtest.EachStore(all, "berth-liar", func(t *rapid.T, path string) {
		m := &liarMachine{t: t, clock: ipamtest.NewClock(), liar: new(liar), held: map[netip.Addr]ipam.MAC{}}
		m.store = ipamtest.Rerunning(ipamtest.OpenStore(t, path))
		defer func() { m.store.Close() }()
		m.s = m.open(m.store, ipam.Known{Ask: m.liar.guess, Wanted: m.liar.wants})
		m.furnish(all)
		t.Repeat(map[string]func(*rapid.T){
			"ask": m.ask, "ask2": m.ask, "ask3": m.ask, "named": m.askNamed, "preferred": m.askThis,
			"preferred2": m.askThis,
			"back":       m.back, "back2": m.back, "see": m.see, "lie": m.lie, "want": m.want,
			"wait": func(t *rapid.T) {
				m.clock.Time = m.clock.Time.Add(rapid.SampledFrom([]time.Duration{-time.Hour, time.Millisecond,
					time.Second, time.Hour}).Draw(t, "time"))
			},
			"": m.check,
		})
	})
}

func (m *liarMachine) open(st store.Store, known ipam.Known) *service.Service {
	s, err := service.Open(context.Background(),
		service.Config{Store: st, Host: "h1", Now: m.clock.Now, Memories: ipamtest.Memories, Known: known})
	m.must(err)
	return s
}

func (m *liarMachine) must(err error) {
	m.t.Helper()
	must(m.t, err)
}

// furnish creates a planned network with rules, reservations and two attachments, and one that Docker creates.
func (m *liarMachine) furnish(all *testing.T) {
	_, err := m.s.Edit(context.Background(), ipam.EditOptions{}, ipamtest.Edits(all, `
		network net1 subnet=192.0.2.0/28 rule=api-*=pool:front+nobody=pool:gone
		pool net1 192.0.2.1+3 name=back
		pool net1 192.0.2.8+2 name=front
		reserve net1 db 192.0.2.2
		reserve net1 shop/web/1 192.0.2.12`)...)
	m.must(err)
	for _, req := range []ipam.PoolRequest{{Network: "net1"},
		{Network: "net1", CIDR: netip.MustParsePrefix("192.0.2.0/28")},
		{Space: "local", CIDR: netip.MustParsePrefix("10.0.0.0/29")}} {
		grant, err := m.s.RequestPool(context.Background(), req)
		m.must(err)
		m.pools = append(m.pools, grant.ID)
	}
}

func (m *liarMachine) lie(t *rapid.T) {
	m.liar.names = rapid.SliceOfN(rapid.SampledFrom(lies), 0, 3).Draw(t, "names")
	m.liar.lost = rapid.SliceOfN(rapid.Bool(), 1, 2).Draw(t, "lost")
}

func (m *liarMachine) want(t *rapid.T) {
	m.liar.wanted = rapid.MapOfN(rapid.Custom(m.address), rapid.SampledFrom([]string{"web", "db", "else"}), 0,
		4).Draw(t, "wanted")
}

// address draws an address of one of the subnets.
func (m *liarMachine) address(t *rapid.T) netip.Addr {
	n := rapid.IntRange(0, 15).Draw(t, "n")
	return netip.MustParseAddr(rapid.SampledFrom([]string{fmt.Sprintf("192.0.2.%d", n),
		fmt.Sprintf("10.0.0.%d", n%8)}).Draw(t, "address"))
}

func (m *liarMachine) ask(t *rapid.T) {
	m.request(t, ipam.AddressRequest{MAC: rapid.SampledFrom(ipamtest.MACs).Draw(t, "mac")})
}

func (m *liarMachine) askNamed(t *rapid.T) {
	m.request(t, ipam.AddressRequest{MAC: rapid.SampledFrom(ipamtest.MACs).Draw(t, "mac"),
		Name: rapid.SampledFrom([]string{"web", "db", "api-1"}).Draw(t, "name")})
}

func (m *liarMachine) askThis(t *rapid.T) {
	req := ipam.AddressRequest{Preferred: m.address(t), Telling: rapid.Bool().Draw(t, "telling")}
	req.MAC = rapid.SampledFrom(ipamtest.MACs).Draw(t, "mac")
	req.Name = rapid.SampledFrom([]string{"", "", "web", "db"}).Draw(t, "name")
	m.request(t, req)
}

// request sends a request and compares the answer with that of a service without this witness, or with one that only
// knows which addresses containers request by their configuration.
func (m *liarMachine) request(t *rapid.T, req ipam.AddressRequest) {
	req.Pool = rapid.SampledFrom(m.pools).Draw(t, "pool")
	// all leases are from this run of the daemon
	seen := func(ipam.LeaseRef, time.Time) ipam.Sighting { return ipam.Sighting{Sight: ipam.Seen} }
	known := ipam.Known{Endpoint: seen}
	if !req.Preferred.IsValid() {
		known.Wanted = m.liar.wants
	}
	_, without := m.open(m.copied(), known).RequestAddress(context.Background(), req)
	got, err := m.s.RequestAddress(context.Background(), req)
	switch automatic := !req.Preferred.IsValid(); {
	case automatic && req.Name == "" && err != nil && without == nil:
		t.Fatalf("%+v is refused by what the witness says: %v", req, err)
	case !automatic && (err == nil) != (without == nil):
		t.Fatalf("%+v: %v, and without a witness: %v", req, err, without)
	case err != nil:
		return
	}
	addr := got.Addr()
	if mac, held := m.held[addr]; held {
		t.Fatalf("%+v was given %s, which is held by %s", req, addr, mac)
	}
	if w := m.liar.wanted[addr]; w != "" && !req.Preferred.IsValid() && !m.mayHaveWanted(addr) {
		t.Fatalf("%+v was lent %s, for which %s asks", req, addr, w)
	}
	m.held[addr] = req.MAC
}

// mayHaveWanted reports whether an address that a container requests by its configuration was given for a reason: the
// requester already has it, it is reserved for the requester, or the requester is that container.
func (m *liarMachine) mayHaveWanted(addr netip.Addr) bool {
	if _, held := m.held[addr]; held {
		return true
	}
	all := ipamtest.ListLeases(m.t, m.s, ipam.LeaseFilter{})
	i := slices.IndexFunc(all, func(l ipam.LeaseInfo) bool { return l.Address == addr })
	return all[i].Owner != "" || all[i].Name == m.liar.wanted[addr] || all[i].Name == "0123456789ab_"+
		m.liar.wanted[addr]
}

// copied returns a store with the same records.
func (m *liarMachine) copied() store.Store {
	var all []store.Record
	m.must(m.store.View(context.Background(), func(tx store.Tx) error {
		all = nil
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all = append(all, store.Record{Key: slices.Clone(rec.Key), Value: slices.Clone(rec.Value)})
		}
		return nil
	}))
	st := mem.New()
	m.must(st.Update(context.Background(), func(tx store.Tx) error {
		for _, rec := range all {
			if err := tx.Put(rec.Key, rec.Value); err != nil {
				return err
			}
		}
		return nil
	}))
	return st
}

func (m *liarMachine) back(t *rapid.T) {
	pool, addr := rapid.SampledFrom(m.pools).Draw(t, "pool"), m.address(t)
	m.must(m.s.ReleaseAddress(context.Background(), pool, addr))
	if !slices.ContainsFunc(ipamtest.ListLeases(t, m.s, ipam.LeaseFilter{}),
		func(l ipam.LeaseInfo) bool { return l.Address == addr }) {
		delete(m.held, addr)
	}
}

// see lets the engine report a random name, late, twice or wrong.
func (m *liarMachine) see(t *rapid.T) {
	var names []ipam.LeaseName
	for _, l := range ipamtest.ListLeases(t, m.s, ipam.LeaseFilter{}) {
		if rapid.Bool().Draw(t, "seen") {
			id := l.ID + uint64(rapid.IntRange(0, 1).Draw(t, "another"))
			names = append(names, ipam.LeaseName{LeaseRef: ipam.LeaseRef{Space: l.Space, Address: l.Address, ID: id},
				Name: rapid.SampledFrom(lies).Draw(t, "name")})
		}
	}
	m.must(m.s.NameLeases(context.Background(), append(names, names...)))
}

// check compares the leases of the service with the addresses that it gave.
func (m *liarMachine) check(t *rapid.T) {
	problems, err := m.s.Check(context.Background())
	if err != nil || len(problems) > 0 {
		t.Fatalf("check: %q, %v", problems, err)
	}
	n := 0
	for _, l := range ipamtest.ListLeases(t, m.s, ipam.LeaseFilter{}) {
		if mac, held := m.held[l.Address]; !held || mac != l.MAC {
			t.Fatalf("the lease %+v is of nobody", l)
		}
		n++
	}
	if n != len(m.held) {
		t.Fatalf("%d leases, and %d are held", n, len(m.held))
	}
	if g := m.s.Guesses(); g.Wrong > g.Made {
		t.Fatalf("%+v", g)
	}
}
