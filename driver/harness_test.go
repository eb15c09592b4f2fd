package driver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/bolt"
	"berth/store/mem"

	api "github.com/docker/go-plugins-helpers/ipam"
	"github.com/sirupsen/logrus"
)

var must = ipamtest.Must

// start is the initial time of a test's clock.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that only moves when a test moves it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a Driver over a Service and a store, usually a bolt file, with the calls of an engine. If the suite runs
// over two stores, the store is a handle on a shared one.
type bench struct {
	t       testing.TB
	path    string
	clock   *clock
	bases   []ipam.Base
	store   store.Store
	service *service.Service // over store
	cluster *sharing         // nil: requests go to the service directly
	avoid   []netip.Prefix
	host    []Bridge             // the engine's bridges
	bridges []ipam.EngineNetwork // the engine's own networks, as a witness knows them
	live    bool                 // bridges holds all networks of the engine
	askMAC  bool                 // whether the engine is asked for MACs, from the next open on

	witnessed map[netip.Addr]ipam.Sighting // what a witness reports of the leases, by address
	looks     int                          // how often the witness was asked to look

	handler http.Handler
}

// testBases returns the default bases, with an IPv6 prefix that is the same in each run.
func testBases() []ipam.Base {
	return append(ipam.DefaultBases(), ipam.Base{Prefix: netip.MustParsePrefix("fd00:be27::/48"), Bits: 64})
}

func newBench(t testing.TB, bases ...ipam.Base) *bench {
	t.Helper()
	if bases == nil {
		bases = testBases()
	}
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "berth.db"), clock: &clock{now: start}, bases: bases,
		witnessed: map[netip.Addr]ipam.Sighting{}}
	if overTwo {
		b.cluster = newCluster(b)
	}
	b.open()
	t.Cleanup(b.close)
	return b
}

// macBench returns a bench whose engine is asked for MACs.
func macBench(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	b.askMAC = true
	b.reopen()
	return b
}

// memBench returns a bench over a store in memory, which is lost when the bench ends.
func memBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, clock: &clock{now: start}, bases: testBases()}
	b.use(mem.New())
	t.Cleanup(b.close)
	return b
}

// open opens the store and puts a Driver over it. Nothing is synced to the disk, because a test does not outlive a
// crash.
func (b *bench) open() {
	b.t.Helper()
	if b.cluster != nil {
		b.use(b.cluster.store.Join())
		return
	}
	st, err := bolt.Open(context.Background(), bolt.Config{Path: b.path, NoSync: true})
	must(b.t, err)
	b.use(st)
}

// use puts a Driver over a store.
func (b *bench) use(st store.Store) {
	b.t.Helper()
	var asked Service
	var err error
	if shared, is := st.(store.Shared); is && b.cluster != nil {
		asked, b.service, err = b.cluster.open(shared)
	} else {
		b.service, err = service.Open(context.Background(),
			service.Config{Store: st, Host: "alpha", Now: b.clock.Now, Bases: b.bases, Known: b.known()})
		asked = b.service
	}
	if err != nil {
		st.Close()
		b.t.Fatal(err)
	}
	b.store = st
	b.handler = New(b.config(asked)).Handler()
}

// config returns the Driver's configuration on the host of the bench.
func (b *bench) config(asked Service) Config {
	return Config{Service: asked, Log: quiet(), AskMAC: b.askMAC,
		Routes: func() ([]ipam.HostRoute, error) { return routesTo(b.avoid), nil }, NameServers: noServers,
		Host:    func() ([]Bridge, error) { return b.host, nil },
		Bridges: func() ([]ipam.EngineNetwork, bool) { return b.bridges, b.live }}
}

// known returns the witness for requests, which call it with the lock of their service held.
func (b *bench) known() ipam.Known {
	return ipam.Known{
		Endpoint: func(l ipam.LeaseRef, _ time.Time) ipam.Sighting { return b.witnessed[l.Address] },
		Look:     func() { b.looks++ },
	}
}

func (b *bench) close() {
	if b.store == nil {
		return
	}
	b.cluster.stop()
	if err := b.store.Close(); err != nil {
		b.t.Error(err)
	}
	b.store = nil
}

// reopen restarts the daemon.
func (b *bench) reopen() {
	b.t.Helper()
	b.close()
	b.open()
}

// check fails the test if the records contradict each other.
func (b *bench) check() {
	b.t.Helper()
	problems, err := b.service.Check(context.Background())
	must(b.t, err)
	for _, p := range problems {
		b.t.Errorf("fsck: %s", p)
	}
}

// edit changes the plan as the admin API does: by the name of an operation and its fields in JSON.
func (b *bench) edit(op, fields string) {
	b.t.Helper()
	edit, ok := ipam.NewEdit(op)
	if !ok {
		b.t.Fatalf("no edit is called %q", op)
	}
	if err := json.Unmarshal([]byte(fields), edit); err != nil {
		b.t.Fatalf("%s %s: %v", op, fields, err)
	}
	if _, err := b.service.Edit(context.Background(), ipam.EditOptions{}, edit); err != nil {
		b.t.Fatalf("%s %s: %v", op, fields, err)
	}
}

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

// post sends one call with exactly this body.
func post(h http.Handler, method, body string) (status int, reply string) {
	r := httptest.NewRequest(http.MethodPost, "/"+method, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// send sends a message and decodes the answer into res. It returns the text of a refusal.
func (b *bench) send(method string, req, res any) (refused string) {
	b.t.Helper()
	status, reply := post(b.handler, "IpamDriver."+method, encode(b.t, req))
	if status != http.StatusOK {
		var e api.ErrorResponse
		decodeReply(b.t, reply, &e)
		if e.Err == "" {
			b.t.Fatalf("%s: status %d without an error: %s", method, status, reply)
		}
		return e.Err
	}
	decodeReply(b.t, reply, res)
	return ""
}

type opts = map[string]string

// optsOf reads options that are written as key=value; key=value.
func optsOf(text string) opts {
	o := opts{}
	for one := range strings.SplitSeq(text, "; ") {
		if key, value, said := strings.Cut(one, "="); said {
			o[key] = value
		}
	}
	return o
}

// pool requests a pool in a space, and fails the test if it is refused.
func (b *bench) pool(space, cidr, sub string, o opts) api.RequestPoolResponse {
	b.t.Helper()
	res, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: space, Pool: cidr, SubPool: sub, Options: o})
	if refused != "" {
		b.t.Fatalf("RequestPool %s %s %s %v: %s", space, cidr, sub, o, refused)
	}
	return res
}

func (b *bench) tryPool(req api.RequestPoolRequest) (res api.RequestPoolResponse, refused string) {
	b.t.Helper()
	refused = b.send("RequestPool", req, &res)
	return res, refused
}

// take requests an address, and fails the test if it is refused. It returns the address without its prefix length.
func (b *bench) take(pool, addr string, o opts) string {
	b.t.Helper()
	got, refused := b.tryTake(pool, addr, o)
	if refused != "" {
		b.t.Fatalf("RequestAddress %q %v: %s", addr, o, refused)
	}
	return got
}

func (b *bench) tryTake(pool, addr string, o opts) (got, refused string) {
	b.t.Helper()
	var res api.RequestAddressResponse
	if refused := b.send("RequestAddress", api.RequestAddressRequest{PoolID: pool, Address: addr, Options: o},
		&res); refused != "" {
		return "", refused
	}
	p, err := netip.ParsePrefix(res.Address)
	if err != nil {
		b.t.Fatalf("RequestAddress answered %q: %v", res.Address, err)
	}
	return p.Addr().String(), ""
}

// holds checks that an address is leased to the holder that these options describe.
func (b *bench) holds(addr string, o opts) {
	b.t.Helper()
	for l, err := range b.service.Leases(context.Background(), ipam.LeaseFilter{}) {
		must(b.t, err)
		if l.Address.String() == addr && l.MAC.String() == o[optMAC] && l.Name == o[optName] {
			return
		}
	}
	b.t.Errorf("%s is not held by %v", addr, o)
}

// give releases an address, which always succeeds.
func (b *bench) give(pool, addr string) {
	b.t.Helper()
	if refused := b.send("ReleaseAddress", api.ReleaseAddressRequest{PoolID: pool, Address: addr},
		&struct{}{}); refused != "" {
		b.t.Fatalf("ReleaseAddress %s: %s", addr, refused)
	}
}

// drop releases a pool, which always succeeds.
func (b *bench) drop(pool string) {
	b.t.Helper()
	if refused := b.send("ReleasePool", api.ReleasePoolRequest{PoolID: pool}, &struct{}{}); refused != "" {
		b.t.Fatalf("ReleasePool: %s", refused)
	}
}

// subnets returns the subnets of a space as text.
func (b *bench) subnets(space string) []string {
	b.t.Helper()
	infos, err := b.service.Subnets(context.Background(), space)
	must(b.t, err)
	var all []string
	for _, info := range infos {
		all = append(all, info.CIDR.String())
	}
	return all
}

// mac returns the option of an engine that has RequiresMACAddress. Each n is another MAC.
func mac(n int) opts { return opts{optMAC: macText(n)} }

// named returns the options that an engine of the v29 line sends.
func named(name string, n int) opts { return opts{optMAC: macText(n), optName: name} }

// gatewayType marks a request for the gateway.
var gatewayType = opts{optAddressType: typeGateway}

// serveRaw sends one call and returns the whole answer.
func serveRaw(h http.Handler, method, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/"+method, strings.NewReader(body)))
	return w
}
