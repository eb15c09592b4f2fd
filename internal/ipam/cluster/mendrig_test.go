package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/etcd"
	"berth/store/etcd/etcdtest"
	"berth/store/mem"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// mendRounds is how often TestMendKeepsWhatRuns sets a cluster back.
var mendRounds = flag.Int("mend.rounds", 10, "how often a cluster is put back in the test of that")

// mendEtcd is an etcd in this process that the tests share. Each cluster has its own prefix.
var mendEtcd = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "berth-mend-")
	if err != nil {
		return "", err
	}
	s, err := etcdtest.Start(dir, 1, false)
	if err != nil {
		return "", err
	}
	return s.Endpoints[0], nil // it ends with the process
})

var mendPrefixes atomic.Int64

// backRig is hosts on one etcd that is set back to an earlier state.
type backRig struct {
	t      *testing.T
	cfg    etcd.Config
	client *clientv3.Client
	saved  map[string]string
	hosts  map[string]*backHost
	now    func() time.Time // nil: time.Now
}

func newBackRig(t *testing.T) *backRig {
	t.Helper()
	endpoint, err := mendEtcd()
	fine(t, err)
	r := &backRig{t: t, hosts: map[string]*backHost{}}
	r.cfg = etcd.Config{Endpoints: []string{endpoint}, Prefix: fmt.Sprintf("mend/%d/", mendPrefixes.Add(1)),
		Timeout: 20 * time.Second, Remember: Remembered, Bundle: Bundled()}
	if r.client, err = clientv3.New(clientv3.Config{Endpoints: r.cfg.Endpoints, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.client.Close() })
	return r
}

// save takes a snapshot.
func (r *backRig) save() {
	r.t.Helper()
	g, err := r.client.Get(context.Background(), r.cfg.Prefix, clientv3.WithPrefix())
	fine(r.t, err)
	r.saved = map[string]string{}
	for _, kv := range g.Kvs {
		r.saved[string(kv.Key)] = string(kv.Value)
	}
}

// back sets etcd back to the snapshot, or empties it. Revisions continue, as if others wrote to the same etcd.
func (r *backRig) back(empty bool) {
	r.t.Helper()
	if _, err := r.client.Delete(context.Background(), r.cfg.Prefix, clientv3.WithPrefix()); err != nil {
		r.t.Fatal(err)
	}
	if empty {
		return
	}
	for key, value := range r.saved {
		if _, err := r.client.Put(context.Background(), key, value); err != nil {
			r.t.Fatal(err)
		}
	}
}

// backHost is one host: its engine, its own store, and its daemon if it runs.
type backHost struct {
	r       *backRig
	name    string
	id      ipam.ID
	own     *mem.Store
	cluster string
	runs    map[netip.Addr]ipam.MAC // as the engine reports; every network is lan
	sees    bool
	pool    ipam.ID
	dead    atomic.Bool // nothing more is written in the background

	report ipam.MendReport // of its last mend
	stood  []ipam.StandIn  // the stand-ins of this host

	mu     sync.Mutex
	handle *etcd.Store
	*Shared
	stop func()
}

func (r *backRig) host(name string) *backHost {
	r.t.Helper()
	return r.hostOf(name, ipam.NewID(), mem.New())
}

// hostOf makes a host with that id and own store.
func (r *backRig) hostOf(name string, id ipam.ID, own *mem.Store) *backHost {
	r.t.Helper()
	h := &backHost{r: r, name: name, id: id, own: own, runs: map[netip.Addr]ipam.MAC{}, sees: true}
	r.hosts[name] = h
	h.start()
	return h
}

func (h *backHost) config(ctx context.Context) (cfg etcd.Config, err error) {
	cfg = h.r.cfg
	cfg.Host, cfg.Cluster = h.id.String(), h.cluster
	cfg.Trace, err = RecalledTrace(ctx, h.own)
	return cfg, err
}

func (h *backHost) opened() *etcd.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.handle
}

func (h *backHost) service(ctx context.Context, st store.Shared, mends bool,
	session ipam.ID) (*service.Service, error) {
	return service.Open(ctx,
		service.Config{Store: st, Host: h.name, Now: h.r.now, Mends: mends, Upgrading: upgrading(),
			Member: &ipam.Member{Host: h.id, Session: session, Mark: sharedMark}})
}

// start starts the daemon.
func (h *backHost) start() {
	h.r.t.Helper()
	session := ipam.NewID()
	var err error
	h.Shared, err = OpenShared(context.Background(), SharedConfig{Own: h.own, Mark: sharedMark, Host: h.name,
		Now: h.r.now,
		Reach: func() store.Reach {
			if st := h.opened(); st != nil {
				return st.Reach()
			}
			return store.Reach{Err: store.ErrAway}
		},
		Open: func(ctx context.Context) (*service.Service, error) {
			cfg, err := h.config(ctx)
			if err != nil {
				return nil, err
			}
			st, err := etcd.Open(ctx, cfg)
			if err != nil {
				return nil, err
			}
			svc, err := h.service(ctx, st, false, session)
			if err != nil {
				return nil, errors.Join(err, st.Close())
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.handle, h.cluster = st, st.Cluster()
			return svc, nil
		},
		Written: func(ctx context.Context) (store.Written, error) {
			if st := h.opened(); st != nil && !h.dead.Load() {
				return st.Written(ctx)
			}
			return store.Written{}, nil
		},
		Forgotten: func() {
			if st := h.opened(); st != nil {
				st.Forgotten()
			}
		},
		Trust: func(at store.Trace) {
			if st := h.opened(); st != nil {
				st.Trust(at)
			}
		},
		See: h.view,
		Mend: func(ctx context.Context, dry bool) (MendStore, error) {
			cfg, err := h.config(ctx)
			if err != nil {
				return MendStore{}, err
			}
			cfg.Mends, cfg.Create = true, true
			st, err := etcd.Open(ctx, cfg)
			if err != nil {
				return MendStore{}, err
			}
			svc, err := h.service(ctx, st, true, session)
			return MendStore{svc, st.Trace, st.Close}, err
		},
	})
	fine(h.r.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	shared := h.Shared
	go func() {
		defer close(ended)
		_ = shared.Run(ctx)
	}()
	h.stop = func() {
		cancel()
		<-ended
		if st := h.opened(); st != nil {
			_ = st.Close()
		}
		h.handle, h.stop = nil, nil
	}
}

// kill ends the daemon without notice: what it has not yet written in the background is lost.
func (h *backHost) kill() {
	h.dead.Store(true)
	if h.stop != nil {
		h.stop()
	}
	h.dead.Store(false)
}

func (r *backRig) end() {
	for _, h := range r.hosts {
		h.kill()
	}
}

// comes waits for a condition.
func (h *backHost) comes(what string, is func() bool) {
	h.r.t.Helper()
	for end := time.Now().Add(60 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.r.t.Fatalf("host %s did not come to this: %s; %v", h.name, what, h.State().Err)
		}
	}
}

func (h *backHost) ready() { h.comes("it is ready", func() bool { return h.State().Err == nil }) }

func (h *backHost) distrusts() {
	h.comes("it does not trust etcd", func() bool { return errors.Is(h.State().Err, store.ErrBack) })
}

// remembered waits until the host remembers all that was written, by other hosts too.
func (h *backHost) remembered() {
	h.r.t.Helper()
	last, err := h.r.client.Get(h.r.t.Context(), h.r.cfg.Prefix,
		append(clientv3.WithLastRev(), clientv3.WithKeysOnly())...)
	fine(h.r.t, err)
	h.comes("it remembers all", func() bool {
		fine(h.r.t, h.rememberOnce(h.r.t.Context()))
		trace, err := RecalledTrace(h.r.t.Context(), h.own)
		fine(h.r.t, err)
		return trace != nil && (len(last.Kvs) == 0 || trace.Revision >= last.Kvs[0].ModRevision)
	})
}

func (h *backHost) attach() {
	h.r.t.Helper()
	h.ready()
	grant, err := h.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: lanCIDR})
	fine(h.r.t, err)
	h.pool = grant.ID
}

// run starts a container.
func (h *backHost) run(mac int) (netip.Addr, error) {
	got, err := h.RequestAddress(context.Background(), ipam.AddressRequest{Pool: h.pool, MAC: testMAC(mac)})
	if err == nil {
		h.runs[got.Addr()] = testMAC(mac)
	}
	return got.Addr(), err
}

func (h *backHost) mustRun(mac int) netip.Addr {
	h.r.t.Helper()
	addr, err := h.run(mac)
	fine(h.r.t, err)
	return addr
}

// end ends a container.
func (h *backHost) end(addr netip.Addr) {
	h.r.t.Helper()
	delete(h.runs, addr)
	fine(h.r.t, h.ReleaseAddress(context.Background(), h.pool, addr))
}

func (h *backHost) view(context.Context) (*ipam.EngineView, error) {
	if !h.sees {
		return nil, nil
	}
	v := &ipam.EngineView{Host: h.name,
		Networks: []ipam.EngineNetwork{{ID: "n", Name: "lan", Subnets: []ipam.EngineSubnet{{CIDR: lanCIDR}}}}}
	for addr, mac := range h.runs {
		v.Containers = append(v.Containers,
			ipam.EngineContainer{ID: addr.String(), Name: "c" + addr.String(), State: "running",
				Endpoints: []ipam.EngineEndpoint{{Network: "n", ID: "e", MAC: mac, Addresses: []netip.Addr{addr}}}})
	}
	return v, nil
}

// leases returns the leases other than gateways, by address, as host h reads them from etcd.
func (r *backRig) leases(h *backHost) map[netip.Addr]*ipam.LeaseInfo {
	r.t.Helper()
	svc, err := h.Shared.service()
	fine(r.t, err)
	all := map[netip.Addr]*ipam.LeaseInfo{}
	for l, err := range svc.Leases(context.Background(), ipam.LeaseFilter{}) {
		fine(r.t, err)
		if l.Kind != ipam.Gateway {
			all[l.Address] = &l
		}
	}
	return all
}

// holdsWhatRuns fails if a running container's address belongs to another host or to none, or if the store is
// not sound.
func (r *backRig) holdsWhatRuns(h *backHost) {
	r.t.Helper()
	all := r.leases(h)
	for _, host := range r.hosts {
		for addr, mac := range host.runs {
			if l := all[addr]; l == nil || l.Host != host.name || l.MAC != mac {
				r.t.Errorf("%s runs on host %s (%s), and the store has %+v", addr, host.name, mac, l)
			}
		}
	}
	svc, _ := h.Shared.service()
	if problems, err := svc.Check(context.Background()); err != nil || len(problems) > 0 {
		r.t.Error(problems, err)
	}
}
