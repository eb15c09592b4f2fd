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

	"github.com/sirupsen/logrus"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/bolt"
)

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

// house is a service over its own store, and an engine that asks it for addresses.
type house struct {
	t       rapid.TB
	close   func() error // closes its store
	service *service.Service
	clock   *clock
	view    ipam.EngineView // what the engine runs
	pools   map[string]ipam.ID
	number  int // of the last MAC and endpoint
}

func newHouse(t rapid.TB, dir string) *house { return openHouse(t, dir, ipam.Known{}) }

func openHouse(t rapid.TB, dir string, known ipam.Known) *house {
	t.Helper()
	st, err := bolt.Open(context.Background(), bolt.Config{Path: filepath.Join(dir, "berth.db"), NoSync: true})
	must(t, err)
	h := &house{t: t, close: st.Close, clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		pools: map[string]ipam.ID{}}
	h.service, err = service.Open(context.Background(),
		service.Config{Store: st, Host: "h1", Now: h.clock.Now, Known: known})
	h.must(err)
	h.view = ipam.EngineView{Host: "h1", Networks: []ipam.EngineNetwork{}}
	return h
}

func (h *house) must(err error) {
	h.t.Helper()
	must(h.t, err)
}

// taken returns the engine's view now.
func (h *house) taken() ipam.EngineView {
	view := h.view
	view.Taken = h.clock.Now()
	view.Networks, view.Containers = slices.Clone(view.Networks), slices.Clone(view.Containers)
	return view
}

// network creates a Docker network, as the engine does.
func (h *house) network(name, cidr string) {
	h.t.Helper()
	grant, err := h.service.RequestPool(context.Background(),
		ipam.PoolRequest{Space: "local", CIDR: netip.MustParsePrefix(cidr)})
	h.must(err)
	gateway, err := h.service.RequestAddress(context.Background(), ipam.AddressRequest{Pool: grant.ID, Gateway: true})
	h.must(err)
	h.pools[name] = grant.ID
	h.view.Networks = append(h.view.Networks,
		ipam.EngineNetwork{ID: "id-" + name, Name: name, Driver: "berth",
			Subnets: []ipam.EngineSubnet{{CIDR: grant.CIDR, Gateway: gateway.Addr()}}})
}

// lease requests an address for a MAC, as the engine does without names.
func (h *house) lease(network string, mac ipam.MAC, preferred netip.Addr) netip.Addr {
	h.t.Helper()
	got, err := h.service.RequestAddress(context.Background(),
		ipam.AddressRequest{Pool: h.pools[network], MAC: mac, Preferred: preferred})
	h.must(err)
	return got.Addr()
}

// run starts a container on a network.
func (h *house) run(name, network string) netip.Addr {
	h.t.Helper()
	h.number++
	got := h.lease(network, macN(h.number), netip.Addr{})
	h.appear(name, network, got)
	return got
}

// appear adds a container with an address and the last number's MAC to the view, whatever the records contain.
func (h *house) appear(name, network string, addr netip.Addr) {
	h.view.Containers = append(h.view.Containers,
		ipam.EngineContainer{ID: "id-" + name, Name: name, State: "running", Endpoints: []ipam.EngineEndpoint{
			{Network: "id-" + network, ID: fmt.Sprintf("e%d", h.number), MAC: macN(h.number),
				Addresses: []netip.Addr{addr}}}})
}

// vanish removes a container without a word to Berth.
func (h *house) vanish(name string) {
	h.view.Containers = slices.DeleteFunc(slices.Clone(h.view.Containers),
		func(c ipam.EngineContainer) bool { return c.Name == name })
}

func (h *house) vanishNetwork(name string) {
	h.view.Networks = slices.DeleteFunc(slices.Clone(h.view.Networks),
		func(n ipam.EngineNetwork) bool { return n.Name == name })
}

func (h *house) release(network string, addr netip.Addr) {
	h.t.Helper()
	h.must(h.service.ReleaseAddress(context.Background(), h.pools[network], addr))
}

// leaseOf returns the lease or memory of an address, or the zero value.
func (h *house) leaseOf(addr netip.Addr) ipam.LeaseInfo {
	h.t.Helper()
	for l, err := range h.service.Leases(context.Background(), ipam.LeaseFilter{Remembered: true}) {
		h.must(err)
		if l.Address == addr {
			return l
		}
	}
	return ipam.LeaseInfo{}
}

func (h *house) edit(edits ...ipam.Edit) {
	h.t.Helper()
	_, err := h.service.Edit(context.Background(), ipam.EditOptions{}, edits...)
	h.must(err)
}

// lastEvent returns the last event of a verb.
func (h *house) lastEvent(verb ipam.Verb) ipam.Event {
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

// witness returns a Witness that reads the engine or, if it is nil, gets pushed views.
func (h *house) witness(engine *Engine, change func(*Config)) *Witness {
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

// town is a house whose engine is read over its socket.
type town struct {
	*house
	t      *testing.T
	engine *fakeEngine
	w      *Witness
}

func newTown(t *testing.T) *town {
	t.Helper()
	h := newHouse(t, t.TempDir())
	t.Cleanup(func() { must(t, h.close()) })
	tn := &town{house: h, t: t, engine: newFakeEngine(t)}
	tn.w = h.witness(tn.engine.open(), nil)
	h.network("front", "10.8.0.0/24")
	tn.settle(time.Second)
	return tn
}

// settle makes the engine run the view, and moves the clock.
func (tn *town) settle(d time.Duration) {
	tn.engine.set(tn.view)
	tn.clock.wait(d)
}

// check runs a check, which must succeed.
func (tn *town) check(req ipam.CheckRequest) ipam.CheckReport {
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

func wantTold(t testing.TB, r ipam.CheckReport, want ...string) {
	t.Helper()
	if got := told(&r); !slices.Equal(got, append([]string{}, want...)) {
		t.Errorf("found %q, want %q", got, want)
	}
	if r.Engine != ipam.EngineReachable || r.Trouble != "" {
		t.Errorf("the engine is %s: %s", r.Engine, r.Trouble)
	}
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in 30 seconds it did not come to this: %s", what)
		}
	}
}
