package docker

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/internal/docker/dockertest"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/bolt"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

// object is a JSON object.
type object = dockertest.Object

// open returns an Engine that reads the fake one.
func open(f *dockertest.Engine) *Engine {
	f.Helper()
	e, err := Open(f.URL())
	must(f, err)
	f.Cleanup(func() { must(f, e.Close()) })
	return e
}

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) wait(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// keeper is the records of a host that is alone or in a cluster.
type keeper interface {
	Records
	RequestPool(context.Context, ipam.PoolRequest) (ipam.PoolGrant, error)
	ReleaseAddress(context.Context, ipam.ID, netip.Addr) error
	Events(context.Context, ipam.EventFilter) ([]ipam.Event, error)
	Subnets(context.Context, string) ([]ipam.SubnetInfo, error)
	Import(context.Context, ipam.Plan, ipam.ImportOptions) (ipam.ImportReport, error)
}

// harness is the records of a host, and an engine that asks them for addresses.
type harness struct {
	t       rapid.TB
	close   func() error // closes its store
	service keeper
	clock   *clock
	view    ipam.EngineView // what the engine runs
	pools   map[string]ipam.ID
	number  int // of the newest MAC and endpoint
}

func newHarness(t rapid.TB, dir string) *harness { return openHarness(t, dir, ipam.Known{}) }

func openHarness(t rapid.TB, dir string, known ipam.Known) *harness {
	t.Helper()
	st, err := bolt.Open(context.Background(), bolt.Config{Path: filepath.Join(dir, "berth.db"), NoSync: true})
	must(t, err)
	h := &harness{t: t, close: st.Close, clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		pools: map[string]ipam.ID{}}
	h.service, err = service.Open(context.Background(),
		service.Config{Store: st, Host: "h1", Now: h.clock.Now, Known: known})
	h.must(err)
	h.view = ipam.EngineView{Host: "h1", Networks: []ipam.EngineNetwork{}}
	return h
}

func (h *harness) must(err error) {
	h.t.Helper()
	must(h.t, err)
}

// taken returns the engine's view now.
func (h *harness) taken() ipam.EngineView {
	view := h.view
	view.Taken = h.clock.Now()
	view.Networks, view.Containers = slices.Clone(view.Networks), slices.Clone(view.Containers)
	return view
}

// network creates a Docker network of a subnet, as the engine does.
func (h *harness) network(name, cidr string) {
	h.t.Helper()
	h.attach(name, ipam.PoolRequest{Space: "local", CIDR: netip.MustParsePrefix(cidr)})
}

// attach creates a Docker network with its own subnet, or on a planned network.
func (h *harness) attach(name string, req ipam.PoolRequest) {
	h.t.Helper()
	grant, err := h.service.RequestPool(context.Background(), req)
	h.must(err)
	h.pools[name] = grant.ID
	gateway := grant.Gateway
	if !gateway.IsValid() {
		gateway, err = h.service.RequestAddress(context.Background(),
			ipam.AddressRequest{Pool: grant.ID, Gateway: true})
		h.must(err)
	}
	n := ipam.EngineNetwork{ID: "id-" + name, Name: name, Driver: "berth",
		Subnets: []ipam.EngineSubnet{{CIDR: grant.CIDR, Gateway: gateway.Addr()}}}
	if req.Network != "" {
		n.Options = map[string]string{"network": req.Network}
	}
	h.view.Networks = append(h.view.Networks, n)
}

// lease requests an address for a MAC, like an engine that sends no names.
func (h *harness) lease(network string, mac ipam.MAC, preferred netip.Addr) netip.Addr {
	h.t.Helper()
	got, err := h.service.RequestAddress(context.Background(),
		ipam.AddressRequest{Pool: h.pools[network], MAC: mac, Preferred: preferred})
	h.must(err)
	return got.Addr()
}

// run starts a container on a network.
func (h *harness) run(name, network string) netip.Addr {
	h.t.Helper()
	h.number++
	got := h.lease(network, macN(h.number), netip.Addr{})
	h.appear(name, network, got)
	return got
}

// appear adds a container with an address and the newest MAC to the view, whatever the records contain.
func (h *harness) appear(name, network string, addr netip.Addr) {
	h.view.Containers = append(h.view.Containers,
		ipam.EngineContainer{ID: "id-" + name, Name: name, State: "running", Endpoints: []ipam.EngineEndpoint{
			{Network: "id-" + network, ID: fmt.Sprintf("e%d", h.number), MAC: macN(h.number),
				Addresses: []netip.Addr{addr}}}})
}

// vanish removes a container without telling Berth.
func (h *harness) vanish(name string) {
	h.view.Containers = slices.DeleteFunc(slices.Clone(h.view.Containers),
		func(c ipam.EngineContainer) bool { return c.Name == name })
}

func (h *harness) vanishNetwork(name string) {
	h.view.Networks = slices.DeleteFunc(slices.Clone(h.view.Networks),
		func(n ipam.EngineNetwork) bool { return n.Name == name })
}

func (h *harness) release(network string, addr netip.Addr) {
	h.t.Helper()
	h.must(h.service.ReleaseAddress(context.Background(), h.pools[network], addr))
}

// leaseOf returns the lease or memory of an address, or the zero value.
func (h *harness) leaseOf(addr netip.Addr) ipam.LeaseInfo {
	h.t.Helper()
	for l, err := range h.service.Leases(context.Background(), ipam.LeaseFilter{Remembered: true}) {
		h.must(err)
		if l.Address == addr {
			return l
		}
	}
	return ipam.LeaseInfo{}
}

func (h *harness) edit(edits ...ipam.Edit) {
	h.t.Helper()
	_, err := h.service.Edit(context.Background(), ipam.EditOptions{}, edits...)
	h.must(err)
}

// lastEvent returns the last event of a verb.
func (h *harness) lastEvent(verb ipam.Verb) ipam.Event {
	h.t.Helper()
	all, err := h.service.Events(context.Background(), ipam.EventFilter{})
	h.must(err)
	for _, e := range slices.Backward(all) {
		if e.Verb == verb {
			return e
		}
	}
	h.t.Fatalf("there is no event %s", verb)
	return ipam.Event{}
}

// witness returns a Witness that reads the engine. If engine is nil, it gets pushed views.
func (h *harness) witness(engine *Engine, change func(*Config)) *Witness {
	cfg := Config{Service: h.service, Host: "h1", Engine: engine, Drivers: []string{"berth"}, Now: h.clock.Now,
		Log: quiet()}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

// scenario is a harness whose engine is read over its socket. Without an engine, views are pushed.
type scenario struct {
	*harness
	t      *testing.T
	engine *dockertest.Engine
	w      *Witness
	last   ipam.CheckReport // of the last check of a script
	kept   ipam.CheckReport // the report that "keep" saved
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	h := newHarness(t, t.TempDir())
	t.Cleanup(func() { must(t, h.close()) })
	tn := &scenario{harness: h, t: t, engine: dockertest.New(t)}
	tn.w = h.witness(open(tn.engine), nil)
	h.network("front", "10.8.0.0/24")
	tn.settle(time.Second)
	return tn
}

// newPushed returns a scenario whose witness gets pushed views.
func newPushed(t *testing.T) *scenario {
	t.Helper()
	h := newHarness(t, t.TempDir())
	t.Cleanup(func() { must(t, h.close()) })
	h.network("front", "10.8.0.0/24")
	h.clock.wait(time.Second)
	return &scenario{harness: h, t: t, w: h.witness(nil, nil)}
}

// settle makes the engine run the view, and moves the clock.
func (tn *scenario) settle(d time.Duration) {
	tn.engine.Set(tn.view)
	tn.clock.wait(d)
}

// show pushes the current view.
func (tn *scenario) show() {
	tn.t.Helper()
	must(tn.t, tn.w.Show(tn.t.Context(), tn.taken()))
}

// check runs a check, which must succeed.
func (tn *scenario) check(req ipam.CheckRequest) ipam.CheckReport {
	tn.t.Helper()
	r, err := tn.w.Check(tn.t.Context(), req)
	must(tn.t, err)
	return r
}

// told lists findings: kind, address or subnet, and the repair.
func told(r *ipam.CheckReport) []string {
	all := []string{}
	for _, f := range r.Findings {
		text := string(f.Kind) + " "
		if f.Address.IsValid() {
			text += f.Address.String()
		} else {
			text += f.Subnet.String()
		}
		switch {
		case f.Repaired:
			text += " repaired"
		case f.Repairable:
			text += " repairable"
		}
		all = append(all, text)
	}
	return all
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in 30 seconds it did not come to this: %s", what)
		}
	}
}
