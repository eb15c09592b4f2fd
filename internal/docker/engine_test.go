package docker

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moby/moby/client"
)

// load makes the fake engine return recorded answers of an engine 20.10.24.
func (f *fakeEngine) load(networks, containers string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for file, into := range map[string]*[]object{networks: &f.networks, containers: &f.containers} {
		raw, err := os.ReadFile(filepath.Join("testdata", file))
		must(f.t, err)
		must(f.t, json.Unmarshal(raw, into))
	}
}

var comparers = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.IgnoreFields(ipam.EngineView{}, "Taken"),
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func mac(t testing.TB, text string) ipam.MAC {
	t.Helper()
	m, err := ipam.ParseMAC(text)
	must(t, err)
	return m
}

// TestView: a view has our networks under either name of the driver, and the bridges of others. Its containers are
// running, stopped (with configured addresses), a swarm's load balancer, and Compose's replicas.
func TestView(t *testing.T) {
	f := newFakeEngine(t)
	f.load("networks.json", "containers.json")
	e := f.open()
	view, err := e.View(t.Context(), "h1", []string{"berth", "other:latest"})
	must(t, err)
	want := ipam.EngineView{Host: "h1", Engine: "AAAA:BBBB",
		Networks: []ipam.EngineNetwork{
			{ID: "n1", Name: "front", Driver: "berth:latest", Kind: "bridge",
				Options: map[string]string{"network": "front"},
				Subnets: []ipam.EngineSubnet{
					{CIDR: netip.MustParsePrefix("10.213.7.0/24"), Range: netip.MustParsePrefix("10.213.7.128/25"),
						Gateway: netip.MustParseAddr("10.213.7.128"),
						Aux:     map[string]netip.Addr{"r": netip.MustParseAddr("10.213.7.5")}},
					{CIDR: netip.MustParsePrefix("fd00:7::/64"), Gateway: netip.MustParseAddr("fd00:7::1")}}},
			{ID: "n5", Name: "mesh", Driver: "other", Kind: "overlay", Swarm: true, Subnets: []ipam.EngineSubnet{
				{CIDR: netip.MustParsePrefix("10.0.9.0/24"), Gateway: netip.MustParseAddr("10.0.9.1")}}},
			{ID: "n6", Name: "unborn", Driver: "berth", Kind: "overlay", Swarm: true},
		},
		Foreign: []ipam.EngineNetwork{
			{ID: "n7", Name: "alien", Driver: "vendor/ipam:1", Kind: "macvlan",
				Subnets: []ipam.EngineSubnet{{CIDR: netip.MustParsePrefix("10.44.0.0/24")}}},
			{ID: "n9", Name: "own", Driver: "vendor/ipam:1", Kind: "bridge", Link: "br9",
				Subnets: []ipam.EngineSubnet{{CIDR: netip.MustParsePrefix("10.45.0.0/24")}}}},
		Bridges: []ipam.EngineNetwork{
			{ID: "n2", Name: "legacy", Driver: "default", Kind: "bridge", Subnets: []ipam.EngineSubnet{
				{CIDR: netip.MustParsePrefix("172.20.0.0/16"), Gateway: netip.MustParseAddr("172.20.0.1")}}},
			{ID: "n8", Name: "bridge", Driver: "default", Kind: "bridge", Link: "docker0", Subnets: []ipam.EngineSubnet{
				{CIDR: netip.MustParsePrefix("172.17.0.0/16"), Gateway: netip.MustParseAddr("172.17.0.1")}}},
			{ID: "n9", Name: "own", Driver: "vendor/ipam:1", Kind: "bridge", Link: "br9",
				Subnets: []ipam.EngineSubnet{{CIDR: netip.MustParsePrefix("10.45.0.0/24")}}}},
		Containers: []ipam.EngineContainer{
			{Name: "ep-stale",
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", ID: "e9", MAC: mac(t, "02:42:0a:d5:07:90"),
					Addresses: addrs("10.213.7.144")}}},
			// with remains of its endpoint
			{ID: "c9", Name: "killed", State: "exited", Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}},
			{ID: "c4", Name: "made", State: "created",
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", Wanted: addrs("10.213.7.30")}}},
			{Name: "mesh-endpoint",
				Endpoints: []ipam.EngineEndpoint{{Network: "n5", ID: "e7", MAC: mac(t, "02:42:0a:00:09:02"),
					Addresses: addrs("10.0.9.2")}}},
			{ID: "c6", Name: "mesh_web.1.x", State: "running",
				Endpoints: []ipam.EngineEndpoint{{Network: "n5", ID: "e6", MAC: mac(t, "02:42:0a:00:09:05"),
					Addresses: addrs("10.0.9.5")}}},
			{ID: "c8", Name: "namesake", State: "running"}, // on another network of the same name
			{ID: "c5", Name: "out", State: "exited",
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", Wanted: addrs("10.213.7.31")}}},
			{ID: "c7", Name: "quick", State: "created",
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", ID: "e5", MAC: mac(t, "02:42:0a:d5:07:82"),
					Addresses: addrs("10.213.7.130"), Wanted: addrs("10.213.7.130")}}},
			{ID: "c1", Name: "shop-web-1", Project: "shop", Service: "web", Number: 1, State: "running",
				Published: []string{"80/tcp"},
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", ID: "e1",
					MAC: mac(t, "02:42:0a:d5:07:14"), Addresses: addrs("10.213.7.20", "fd00:7::20"),
					Wanted: addrs("10.213.7.20")}}},
			{ID: "c2", Name: "shop_web_run_0123", Project: "shop", Service: "web", State: "running",
				Endpoints: []ipam.EngineEndpoint{{Network: "n1", ID: "e2",
					MAC: mac(t, "02:42:0a:d5:07:81"), Addresses: addrs("10.213.7.129")}}},
			{ID: "c3", Name: "stranger", State: "running"},
		}}
	if diff := cmp.Diff(want, view, comparers); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
	if age := time.Since(view.Taken); age < 0 || age > time.Minute {
		t.Errorf("taken %s ago", age)
	}
	asked := f.asked()
	slices.Sort(asked)
	wantAsked := []string{"GET /containers/json", "GET /info", "GET /networks", "GET /networks/n1", "GET /networks/n5",
		"GET /networks/n6", "HEAD /_ping"}
	if !slices.Equal(asked, wantAsked) {
		t.Errorf("asked for %v, want %v", asked, wantAsked)
	}
	_, err = e.View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	if again := f.asked(); slices.Contains(again, "GET /info") || slices.Contains(again, "HEAD /_ping") ||
		slices.Contains(again, "GET /networks/n5") {
		t.Errorf("the second time it asked for %v", again)
	}
}

// TestNetworkOfAnyDriver: Network reads one network by name, with only the containers on it.
func TestNetworkOfAnyDriver(t *testing.T) {
	f := newFakeEngine(t)
	f.load("networks.json", "containers.json")
	view, err := f.open().Network(t.Context(), "legacy")
	must(t, err)
	want := ipam.EngineView{Engine: "AAAA:BBBB",
		Networks: []ipam.EngineNetwork{{ID: "n2", Name: "legacy", Driver: "default", Kind: "bridge",
			Subnets: []ipam.EngineSubnet{
				{CIDR: netip.MustParsePrefix("172.20.0.0/16"), Gateway: netip.MustParseAddr("172.20.0.1")}}}},
		Containers: []ipam.EngineContainer{{ID: "c3", Name: "stranger", State: "running",
			Endpoints: []ipam.EngineEndpoint{
				{Network: "n2", ID: "e3", MAC: mac(t, "02:42:ac:14:00:02"), Addresses: addrs("172.20.0.2")}}}}}
	if diff := cmp.Diff(want, view, comparers); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
	_, err = f.open().Network(t.Context(), "nowhere")
	if !errors.Is(err, ipam.ErrNotFound) || !strings.Contains(err.Error(), "has no network nowhere") {
		t.Errorf("of a network that is not there: %v", err)
	}
}

// TestOnlyReads: an Engine, and the client in it, send only GET, and HEAD of /_ping.
func TestOnlyReads(t *testing.T) {
	f := newFakeEngine(t)
	f.load("networks.json", "containers.json")
	f.plugins["p1"] = "berth:latest"
	e := f.open()
	_, err := e.View(t.Context(), "h1", []string{"berth", "default"})
	must(t, err)
	_, err = e.Network(t.Context(), "legacy")
	must(t, err)
	name, err := e.PluginName(t.Context(), "p1")
	must(t, err)
	if name != "berth:latest" {
		t.Errorf("plugin p1 is called %q", name)
	}
	for _, err := range e.Watch(t.Context()) {
		must(t, err)
		break
	}
	asked := f.asked()
	for _, request := range asked {
		if !strings.HasPrefix(request, "GET ") && request != "HEAD /_ping" {
			t.Errorf("it sent %s", request)
		}
	}
	if len(asked) < 10 {
		t.Errorf("only %v was recorded", asked)
	}
	_, err = e.client().ContainerStart(t.Context(), "c1", client.ContainerStartOptions{})
	if err == nil || !strings.Contains(err.Error(), "Berth only reads from the engine") {
		t.Errorf("a start of a container ended with %v", err)
	}
	_, err = e.client().NetworkRemove(t.Context(), "n1", client.NetworkRemoveOptions{})
	if err == nil || !strings.Contains(err.Error(), "Berth only reads from the engine") {
		t.Errorf("a removal of a network ended with %v", err)
	}
	if sent := f.asked(); len(sent) != 0 {
		t.Errorf("it sent %v", sent)
	}
}

// TestNetworkEndsMeanwhile: a network that is removed between two answers is not in the view.
func TestNetworkEndsMeanwhile(t *testing.T) {
	f := newFakeEngine(t)
	f.load("networks.json", "containers.json")
	f.ask = func(_, path string) {
		if strings.HasSuffix(path, "/containers/json") {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.networks = slices.DeleteFunc(f.networks, func(n object) bool { return n["Id"] == "n1" })
		}
	}
	view, err := f.open().View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	for _, n := range view.Networks {
		if n.ID == "n1" {
			t.Errorf("the view has %s", n.Name)
		}
	}
	for _, c := range view.Containers {
		if len(c.Endpoints) > 0 {
			t.Errorf("%s is on %v", c.Name, c.Endpoints)
		}
	}
	if len(view.Containers) < 5 {
		t.Errorf("the view has only %d containers", len(view.Containers))
	}
}

// TestEngineRefuses: after an error there is no view, rather than an incomplete one.
func TestEngineRefuses(t *testing.T) {
	for _, path := range []string{"/networks", "/networks/n1", "/containers/json"} {
		f := newFakeEngine(t)
		f.load("networks.json", "containers.json")
		f.refuse = path
		if view, err := f.open().View(t.Context(), "h1", []string{"berth"}); err == nil ||
			!strings.Contains(err.Error(), "it hurts") {
			t.Errorf("with an error of %s: %v, %v", path, view, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, host := range []string{"/var/run/docker.sock", "unix://", "unix://docker.sock", "tcp://", "ssh://host",
		"http://host", "npipe:////./pipe/x"} {
		if _, err := Open(host); !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), host) {
			t.Errorf("%q: %v", host, err)
		}
	}
	for _, host := range []string{"", "unix:///var/run/docker.sock", "tcp://127.0.0.1:2375"} {
		e, err := Open(host)
		must(t, err)
		must(t, e.Close())
	}
}

// TestEngineAway: the error names the address without an engine.
func TestEngineAway(t *testing.T) {
	f := newFakeEngine(t)
	e := f.open()
	f.stop()
	_, err := e.View(t.Context(), "h1", []string{"berth"})
	if err == nil || !strings.Contains(err.Error(), f.path) {
		t.Errorf("a view of none: %v", err)
	}
	if _, err := e.PluginName(t.Context(), "p1"); err == nil {
		t.Error("it told a plugin's name")
	}
	n := 0
	for _, err := range e.Watch(t.Context()) {
		if n++; err == nil {
			t.Error("it was connected")
		}
	}
	if n != 1 {
		t.Errorf("it yielded %d times", n)
	}
}

// TestWatch: it yields nil once, then each event, and an error when the engine ends.
func TestWatch(t *testing.T) {
	f := newFakeEngine(t)
	n := 0
	var last error
	for _, err := range f.open().Watch(t.Context()) {
		last = err
		switch n++; n {
		case 1:
			f.happen("network", "connect")
		case 2:
			f.happen("container", "rename")
		case 3:
			go f.stop()
		}
	}
	if n != 4 || last == nil {
		t.Errorf("it yielded %d times, at last %v", n, last)
	}
}

// TestWatchEnds: Watch ends with its context.
func TestWatchEnds(t *testing.T) {
	f := newFakeEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range f.open().Watch(ctx) {
		if n++; n == 1 {
			cancel()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	}
	if n != 2 {
		t.Errorf("it yielded %d times", n)
	}
}

// TestOlderEngine: if the engine was replaced by an older one, following its events again negotiates the version and
// reads the new id.
func TestOlderEngine(t *testing.T) {
	f := newFakeEngine(t)
	e := f.open()
	if _, err := e.View(t.Context(), "h1", nil); err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.mu.Lock()
	f.version, f.id = "1.40", "CCCC"
	f.mu.Unlock()
	f.start()
	for _, err := range e.Watch(t.Context()) {
		must(t, err)
		break
	}
	view, err := e.View(t.Context(), "h1", nil)
	must(t, err)
	if view.Engine != "CCCC" {
		t.Errorf("the engine is %s", view.Engine)
	}
}

// TestHangingEngine: a context ends the wait for a hanging engine.
func TestHangingEngine(t *testing.T) {
	f := newFakeEngine(t)
	hang, hung := make(chan struct{}), make(chan struct{}, 1)
	defer close(hang)
	f.ask = func(_, path string) {
		if strings.HasSuffix(path, "/containers/json") {
			hung <- struct{}{}
			<-hang
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	if _, err := f.open().View(ctx, "h1", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestMend: mended turns a gateway with a prefix length, from engines before v28, into an address, and changes nothing
// else.
func TestMend(t *testing.T) {
	for before, after := range map[string]string{
		`{"Subnet":"fd00::/64","Gateway":"fd00::1/64"}`:          `{"Subnet":"fd00::/64","Gateway":"fd00::1"}`,
		`{"Gateway": "10.0.0.1/8"}`:                              `{"Gateway": "10.0.0.1"}`,
		`{"Gateway":"10.0.0.1"}`:                                 `{"Gateway":"10.0.0.1"}`,
		`{"Gateway":""}`:                                         `{"Gateway":""}`,
		`{"Labels":{"x":"\"Gateway\":\"10.0.0.1/8\""}}`:          `{"Labels":{"x":"\"Gateway\":\"10.0.0.1/8\""}}`,
		`{"IPv6Gateway":"fd00::1/64","Address":"10.0.0.1/8"}`:    `{"IPv6Gateway":"fd00::1/64","Address":"10.0.0.1/8"}`,
		`[{"Gateway":"fd00::1/64"},{"Gateway":"fd00:1::1/112"}]`: `[{"Gateway":"fd00::1"},{"Gateway":"fd00:1::1"}]`,
	} {
		if got := string(mended([]byte(before))); got != after {
			t.Errorf("%s became %s, want %s", before, got, after)
		}
	}
}

func FuzzMend(f *testing.F) {
	f.Add([]byte(`{"Gateway":"fd00::1/64","x":"\"Gateway\":\"1/2\""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if json.Valid(b) && !json.Valid(mended(b)) {
			t.Errorf("%q became %q", b, mended(b))
		}
	})
}
