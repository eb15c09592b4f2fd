package cluster_test

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// clusterMark ends the ids that are made in the shared store of these tests.
var clusterMark = [4]byte{0xc1, 0x05, 0x7e, 0x12}

var errNoEtcd = errors.New("no etcd is there")

// parish is a shared store, and the hosts that draw from it.
type parish struct {
	t     testing.TB
	store *mem.Store
	known ipam.Known // what each host's witness says
}

// manor is one host: its own store, and its half of the cluster.
type manor struct {
	*cluster.Service
	t      testing.TB
	name   string
	own    *mem.Store
	handle *mem.Store       // of the shared store
	local  *service.Service // over own
	half   *cluster.Shared
	now    func() time.Time
	stop   func()
}

func newParish(t testing.TB) *parish { return &parish{t: t, store: mem.New()} }

// host makes a host, whose shared store is reached.
func (p *parish) host(name string) *manor {
	p.t.Helper()
	m := p.away(name, time.Now)
	m.reach()
	return m
}

// away makes a host whose shared store was not reached yet.
func (p *parish) away(name string, now func() time.Time) *manor {
	p.t.Helper()
	m := &manor{t: p.t, name: name, own: mem.New(), handle: p.store.Join(), now: now}
	m.handle.Cut(errNoEtcd)
	var err error
	m.local, err = service.Open(context.Background(),
		service.Config{Store: m.own, Host: name, Now: now, Known: p.known})
	fine(p.t, err)
	member := &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: clusterMark}
	m.half, err = cluster.OpenShared(context.Background(),
		cluster.SharedConfig{Own: m.own, Mark: clusterMark, Host: name, Now: now, Reach: m.handle.Reach,
			Open: func(ctx context.Context) (*service.Service, error) {
				if r := m.handle.Reach(); r.Err != nil {
					return nil, r.Err
				}
				return service.Open(ctx,
					service.Config{Store: m.handle, Host: name, Now: now, Member: member, Known: p.known})
			}})
	fine(p.t, err)
	m.Service = cluster.NewService(m.local, m.half)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.half.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(name, err)
		}
	})
	p.t.Cleanup(m.stop)
	comesTo(p.t, "host "+name+" has tried",
		func() bool { return strings.Contains(m.Partial().Error(), errNoEtcd.Error()) })
	return m
}

// reach lets the host reach the shared store, and waits until it has.
func (m *manor) reach() {
	m.t.Helper()
	m.handle.Heal()
	comesTo(m.t, "host "+m.name+" reaches the shared store", func() bool { return m.Partial() == nil })
}

func (m *manor) must(edits ...ipam.Edit) ipam.Outcome {
	m.t.Helper()
	out, err := m.Edit(m.t.Context(), ipam.EditOptions{}, edits...)
	fine(m.t, err)
	return out
}

// furnished is a host with something of each kind in both stores: networks of the space local, of the space lab, which
// was there before the cluster, and of two spaces of the cluster.
func furnished(t testing.TB) (p *parish, a *manor) {
	t.Helper()
	p = newParish(t)
	a = p.host("a")
	lab := planned("lab", "lab", "10.5.0.0/24")
	_, err := a.local.Edit(t.Context(), ipam.EditOptions{}, lab)
	fine(t, err)
	a.must(planned("own", "", "10.1.0.0/24"))
	a.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	a.must(planned("dmz", "dmz", "10.6.0.0/24"))
	for name, space := range map[string]string{"far": "", "near": ipam.GlobalSpace} {
		dynamic := &ipam.CreateNetwork{Name: name, Space: space, Type: "dynamic"}
		a.must(dynamic)
		a.must(&ipam.AddReservation{Network: name, Owner: "roamer"},
			&ipam.AddReservation{Network: name, Owner: "of-" + name})
	}
	for _, name := range []string{"lab", "own", "lan", "dmz"} {
		for _, owner := range []string{"router", "printer", "of-" + name} {
			a.must(&ipam.TakeAddress{Network: name, Owner: owner})
		}
		for _, owner := range []string{"web", "db", "owner-of-" + name} {
			a.must(&ipam.AddReservation{Network: name, Owner: owner})
		}
		pool, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: name})
		fine(t, err)
		for n := range 2 {
			_, err = a.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(n),
				Name: "shop-web-1"})
			fine(t, err)
		}
	}
	return p, a
}

// planned is a network of a subnet, with a gateway and a pool.
func planned(name, space, cidr string) *ipam.CreateNetwork {
	p := netip.MustParsePrefix(cidr)
	return &ipam.CreateNetwork{Name: name, Space: space,
		Subnets: []ipam.SubnetSpec{{CIDR: p, Gateway: p.Addr().Next(), Pool: true}}}
}

func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func comesTo(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in 30 seconds it did not come to this: %s", what)
		}
	}
}

func listed[T any](t testing.TB, items iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for item, err := range items {
		fine(t, err)
		list = append(list, item)
	}
	return list
}

func column[T any, V comparable](list []T, of func(T) V) (values []V) {
	for _, item := range list {
		values = append(values, of(item))
	}
	return values
}

func equal[V comparable](t testing.TB, what string, got []V, want ...V) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// refusedBy fails the test unless err is of a kind, and says each of the texts.
func refusedBy(t testing.TB, what string, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", what, err, text)
		}
	}
}
