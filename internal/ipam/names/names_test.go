package names_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/mem"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// known holds the reported names: ranges by id, and addresses by range and address.
type known struct {
	mu     sync.Mutex
	ranges map[ipam.ID]ipam.NamedRange
	stores map[ipam.ID]string
	has    map[ipam.ID]map[netip.Addr]ipam.NamedAddress
	whole  int
}

// take applies news by the rules of NameNews.
func (k *known) take(news *ipam.NameNews) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if news.Whole {
		k.whole++
		for id, store := range k.stores {
			if store == news.Store {
				k.remove(id)
			}
		}
	}
	for _, id := range news.Gone {
		k.remove(id)
	}
	for _, r := range news.Ranges {
		k.ranges[r.ID], k.stores[r.ID], k.has[r.ID] = r, news.Store, map[netip.Addr]ipam.NamedAddress{}
	}
	for _, one := range news.Set {
		if of := k.has[one.In]; of != nil {
			of[one.Address] = one
		}
	}
	for _, one := range news.Removed {
		delete(k.has[one.In], one.Address)
	}
}

func (k *known) remove(id ipam.ID) {
	delete(k.ranges, id)
	delete(k.stores, id)
	delete(k.has, id)
}

func newKnown() *known {
	return &known{ranges: map[ipam.ID]ipam.NamedRange{}, stores: map[ipam.ID]string{},
		has: map[ipam.ID]map[netip.Addr]ipam.NamedAddress{}}
}

// same reports whether two have the same names.
func (k *known) same(other *known) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Equal(k.ranges, other.ranges) && reflect.DeepEqual(k.has, other.has)
}

// owner returns the owner of an address, or "" if it has none.
func (k *known) owner(addr string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, of := range k.has {
		if one, there := of[netip.MustParseAddr(addr)]; there {
			return one.Owner
		}
	}
	return ""
}

// follow returns a known that applies the news until the test ends.
func follow(t *testing.T, tell func(context.Context) func(func(ipam.NameNews, error) bool)) *known {
	t.Helper()
	k := newKnown()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for news, err := range tell(ctx) {
			if err != nil {
				ended <- err
				return
			}
			k.take(&news)
		}
		ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	return k
}

// comes waits for a condition.
func comes(t *testing.T, what string, so func() bool) {
	t.Helper()
	late := time.Now().Add(30 * time.Second)
	for !so() {
		if time.Now().After(late) {
			t.Fatal("it never came to this: " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

type editor interface {
	Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
}

func edit(t *testing.T, s editor, edits ...ipam.Edit) {
	t.Helper()
	_, err := s.Edit(t.Context(), ipam.EditOptions{}, edits...)
	must(t, err)
}

func newNetwork(name, cidr string) *ipam.CreateNetwork {
	return &ipam.CreateNetwork{Name: name, Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(cidr), Pool: true}}}
}

// TestFollows: whatever is planned, taken and released, the news piece by piece add up to the news as a whole.
func TestFollows(t *testing.T) {
	s, err := service.Open(t.Context(), service.Config{Store: mem.New(), Host: "alpha"})
	must(t, err)
	k := follow(t, func(ctx context.Context) func(func(ipam.NameNews, error) bool) { return s.NameNews(ctx) })
	r := rand.New(rand.NewPCG(1, 2))
	edit(t, s, newNetwork("home", "10.1.0.0/24"))
	edit(t, s, &ipam.AddElasticRange{Range: rangeOf(t, "203.0.113.0/28")})
	one := func(all ...string) string { return all[r.IntN(len(all))] }
	owner := func() string { return one("web", "shop/api/1", "shop/api/2", "printer", "02:42:0a:00:00:05", "db") }
	network := func() string { return one("home", "home", "house", "back") }
	done, held := map[string]int{}, map[string]holding{}
	for range 4000 {
		var e ipam.Edit
		switch r.IntN(12) {
		case 0:
			e = newNetwork(network(), fmt.Sprintf("10.%d.0.0/24", 1+r.IntN(4)))
		case 1:
			if r.IntN(2) == 0 {
				e = &ipam.RemoveNetwork{Network: network(), Force: true}
			} else {
				name := network()
				e = &ipam.ModifyNetwork{Network: network(), Name: &name}
			}
		case 2:
			e = &ipam.ModifyNetwork{Network: network(), OwnerRules: []ipam.OwnerRule{{Pattern: "c*",
				Owner: one("shop/*/1", "x*")}}}
		case 3, 4:
			e = &ipam.AddReservation{Network: network(), Owner: owner()}
		case 5:
			e = &ipam.ReleaseOwner{Owner: owner()}
		case 6:
			e = &ipam.TakeAddress{Network: network(), Owner: owner()}
		case 7:
			e = &ipam.ModifyNetwork{Network: network(), Elastic: new(one("on", "on", "off"))}
		case 8:
			e = &ipam.AllocateElastic{Address: netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(16))})}
		case 9:
			e = &ipam.AssociateElastic{Address: netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(16))}), Instance: owner(),
				Network: network(), Move: true}
		default:
			container(t, s, r, held, done)
			continue
		}
		if _, err := s.Edit(t.Context(), ipam.EditOptions{}, e); err == nil {
			done[fmt.Sprintf("%T", e)]++
		} else if !errors.As(err, new(*ipam.Refusal)) {
			t.Fatal(err)
		}
		if r.IntN(100) == 0 {
			agree(t, s, k)
		}
	}
	agree(t, s, k)
	if len(done) < 10 || k.whole != 1 {
		t.Errorf("what was done: %v; told as a whole %d times", done, k.whole)
	}
}

// holding is an address that a container holds.
type holding struct {
	pool ipam.ID
	addr netip.Addr
}

// container takes an address for a container, or releases one.
func container(t *testing.T, s *service.Service, r *rand.Rand, held map[string]holding, done map[string]int) {
	t.Helper()
	name := fmt.Sprintf("c%d", r.IntN(6))
	if had, there := held[name]; there {
		delete(held, name)
		if s.ReleaseAddress(t.Context(), had.pool, had.addr) == nil {
			done["release"]++
		}
		if s.ReleasePool(t.Context(), had.pool) == nil {
			done["release of a pool"]++
		}
		return
	}
	got, err := s.RequestPool(t.Context(), ipam.PoolRequest{Space: ipam.LocalSpace,
		CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(1 + r.IntN(6))}), 24)})
	if err != nil {
		return
	}
	addr, err := s.RequestAddress(t.Context(), ipam.AddressRequest{Pool: got.ID, Name: name})
	if err == nil {
		done["take"]++
		held[name] = holding{got.ID, addr.Addr()}
	}
}

func rangeOf(t *testing.T, text string) (r ipam.Range) {
	t.Helper()
	must(t, r.UnmarshalText([]byte(text)))
	return r
}

// agree waits until the known names are the current names.
func agree(t *testing.T, s interface {
	Names(context.Context) (ipam.NameNews, error)
}, k *known) {
	t.Helper()
	comes(t, "what was told is what there is", func() bool {
		all, err := s.Names(t.Context())
		must(t, err)
		want := newKnown()
		want.take(&all)
		return k.same(want)
	})
}

// TestOtherHosts: this host reports what another host of the cluster commits, as it reports what it commits to its
// own store, also if it reaches the shared store later.
func TestOtherHosts(t *testing.T) {
	first := mem.New()
	mark := [4]byte{1}
	member := func(name string, st *mem.Store) *service.Service {
		s, err := service.Open(t.Context(), service.Config{Store: st, Host: name,
			Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: mark}})
		must(t, err)
		return s
	}
	beta := member("beta", first.Join())
	own, err := service.Open(t.Context(), service.Config{Store: mem.New(), Host: "alpha"})
	must(t, err)
	half, err := cluster.OpenShared(t.Context(), cluster.SharedConfig{Own: mem.New(), Mark: mark, Host: "alpha",
		Reach: first.Reach, Open: func(context.Context) (*service.Service, error) { return member("alpha", first), nil }})
	must(t, err)
	joined := cluster.NewService(own, half)
	k := follow(t, func(ctx context.Context) func(func(ipam.NameNews, error) bool) { return joined.NameNews(ctx) })
	edit(t, own, newNetwork("mine", "10.9.0.0/24"), &ipam.TakeAddress{Network: "mine", Owner: "alone",
		Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.9.0.7")}}}})
	comes(t, "its own is told", func() bool { return k.owner("10.9.0.7") == "alone" })

	lan := newNetwork("lan", "10.77.0.0/24")
	lan.Space = ipam.GlobalSpace
	edit(t, beta, lan, &ipam.TakeAddress{Network: "lan", Owner: "before",
		Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.77.0.7")}}}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	comes(t, "what was there before it was reached is told", func() bool { return k.owner("10.77.0.7") == "before" })
	edit(t, beta, &ipam.TakeAddress{Network: "lan", Owner: "later",
		Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.77.0.8")}}}})
	comes(t, "what another host takes is told", func() bool { return k.owner("10.77.0.8") == "later" })
	edit(t, beta, &ipam.ReleaseAddress{Network: "lan", Owner: "later"})
	comes(t, "what another host gives back is told", func() bool { return k.owner("10.77.0.8") == "" })
	if k.owner("10.9.0.7") != "alone" {
		t.Error("its own is told no more")
	}
	agree(t, joined, k)
}
