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

	"berth/internal/docker/dockertest"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moby/moby/client"
)

// recorded returns a fake engine with the recorded answers of an engine 20.10.24.
func recorded(t *testing.T) *dockertest.Engine {
	t.Helper()
	f := dockertest.New(t)
	f.Lock()
	defer f.Unlock()
	readJSON(f, "networks.json", &f.Networks)
	readJSON(f, "containers.json", &f.Containers)
	return f
}

// readJSON reads a file of testdata.
func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	must(t, err)
	must(t, json.Unmarshal(raw, into))
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

// TestView: a view has Berth's networks under either name of the driver, and the bridges of other drivers. Its
// containers are running, stopped (with configured addresses), a swarm's load balancer, and Compose's replicas.
// The engine still has remains of the endpoint of the container killed. The container namesake is on another
// network of the same name (testdata/view.json).
func TestView(t *testing.T) {
	f := recorded(t)
	e := open(f)
	view, err := e.View(t.Context(), "h1", []string{"berth", "other:latest"})
	must(t, err)
	var want ipam.EngineView
	readJSON(t, "view.json", &want)
	if diff := cmp.Diff(want, view, comparers); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
	if age := time.Since(view.Taken); age < 0 || age > time.Minute {
		t.Errorf("taken %s ago", age)
	}
	asked := f.Asked()
	slices.Sort(asked)
	wantAsked := []string{"GET /containers/json", "GET /info", "GET /networks", "GET /networks/n1", "GET /networks/n5",
		"GET /networks/n6", "HEAD /_ping"}
	if !slices.Equal(asked, wantAsked) {
		t.Errorf("asked for %v, want %v", asked, wantAsked)
	}
	_, err = e.View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	if again := f.Asked(); slices.Contains(again, "GET /info") || slices.Contains(again, "HEAD /_ping") ||
		slices.Contains(again, "GET /networks/n5") {
		t.Errorf("the second time it asked for %v", again)
	}
}

// TestNetworkOfAnyDriver: Network reads one network by name, and only the containers on it.
func TestNetworkOfAnyDriver(t *testing.T) {
	f := recorded(t)
	view, err := open(f).Network(t.Context(), "legacy")
	must(t, err)
	var want ipam.EngineView
	readJSON(t, "legacy.json", &want)
	if diff := cmp.Diff(want, view, comparers); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
	_, err = open(f).Network(t.Context(), "nowhere")
	if !errors.Is(err, ipam.ErrNotFound) || !strings.Contains(err.Error(), "has no network nowhere") {
		t.Errorf("of a network that is not there: %v", err)
	}
}

// TestOnlyReads: an Engine, and the client in it, send only GET, and HEAD of /_ping.
func TestOnlyReads(t *testing.T) {
	f := recorded(t)
	f.Plugins["p1"] = "berth:latest"
	e := open(f)
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
	asked := f.Asked()
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
	if sent := f.Asked(); len(sent) != 0 {
		t.Errorf("it sent %v", sent)
	}
}

// TestNetworkEndsMeanwhile: the view leaves out a network that is removed between two answers.
func TestNetworkEndsMeanwhile(t *testing.T) {
	f := recorded(t)
	f.Ask = func(_, path string) {
		if strings.HasSuffix(path, "/containers/json") {
			f.Lock()
			defer f.Unlock()
			f.Networks = slices.DeleteFunc(f.Networks, func(n object) bool { return n["Id"] == "n1" })
		}
	}
	view, err := open(f).View(t.Context(), "h1", []string{"berth"})
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

// TestEngineRefuses: an error gives no view, not an incomplete one.
func TestEngineRefuses(t *testing.T) {
	for _, path := range []string{"/networks", "/networks/n1", "/containers/json"} {
		f := recorded(t)
		f.Broken = path
		if view, err := open(f).View(t.Context(), "h1", []string{"berth"}); err == nil ||
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

// TestEngineAway: the error names the address that no engine answers.
func TestEngineAway(t *testing.T) {
	f := dockertest.New(t)
	e := open(f)
	f.Stop()
	_, err := e.View(t.Context(), "h1", []string{"berth"})
	if err == nil || !strings.Contains(err.Error(), f.Path) {
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

// TestWatch: it yields nil once, then each event, and an error when the engine or the context ends.
func TestWatch(t *testing.T) {
	f := dockertest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, ends := range []func(){func() { go f.Stop() }, cancel} {
		n := 0
		var last error
		for _, err := range open(f).Watch(ctx) {
			last = err
			switch n++; n {
			case 1:
				f.Happen("network", "connect")
			case 2:
				f.Happen("container", "rename")
			case 3:
				ends()
			}
		}
		if n != 4 || last == nil || ctx.Err() != nil && !errors.Is(last, context.Canceled) {
			t.Errorf("it yielded %d times, at last %v", n, last)
		}
		if ctx.Err() == nil {
			f.Start()
		}
	}
}

// TestOlderEngine: if an older engine replaces the engine, following its events again negotiates the version and
// reads the new id.
func TestOlderEngine(t *testing.T) {
	f := dockertest.New(t)
	e := open(f)
	if _, err := e.View(t.Context(), "h1", nil); err != nil {
		t.Fatal(err)
	}
	f.Stop()
	f.Lock()
	f.API, f.ID = 40, "CCCC"
	f.Unlock()
	f.Start()
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
	f := dockertest.New(t)
	hang, hung := make(chan struct{}), make(chan struct{}, 1)
	defer close(hang)
	f.Ask = func(_, path string) {
		if strings.HasSuffix(path, "/containers/json") {
			hung <- struct{}{}
			<-hang
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	if _, err := open(f).View(ctx, "h1", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestMend: engines before v28 give a gateway with a prefix length. mended makes it an address and changes nothing
// else.
func TestMend(t *testing.T) {
	for row := range ipamtest.Rows(2, `
		{"Subnet":"fd00::/64","Gateway":"fd00::1/64"} | {"Subnet":"fd00::/64","Gateway":"fd00::1"}
		{"Gateway": "10.0.0.1/8"} | {"Gateway": "10.0.0.1"}
		{"Gateway":"10.0.0.1"} | {"Gateway":"10.0.0.1"}
		{"Gateway":""} | {"Gateway":""}
		{"Labels":{"x":"\"Gateway\":\"10.0.0.1/8\""}} | {"Labels":{"x":"\"Gateway\":\"10.0.0.1/8\""}}
		{"IPv6Gateway":"fd00::1/64","Address":"10.0.0.1/8"} | {"IPv6Gateway":"fd00::1/64","Address":"10.0.0.1/8"}
		[{"Gateway":"fd00::1/64"},{"Gateway":"fd00:1::1/112"}] | [{"Gateway":"fd00::1"},{"Gateway":"fd00:1::1"}]
	`) {
		if got := string(mended([]byte(row[0]))); got != row[1] {
			t.Errorf("%s became %s, want %s", row[0], got, row[1])
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
