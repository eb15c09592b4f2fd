package putback

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/internal/docker"
	"berth/internal/docker/dockertest"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

// object is a JSON object.
type object = dockertest.Object

// front is Berth's network in the tests. started is when its containers started.
var (
	front   = ipam.ID{1}
	started = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
)

// engine is an engine with containers on the network front, and the records that a Worker reads.
type engine struct {
	*dockertest.Engine
	dir string
	now time.Time

	deploys  []ipam.DeployLock
	networks []ipam.NetworkInfo
	homes    map[string][]netip.Addr
	ended    func() // stops the previous daemon
	events   []ipam.Event
	noted    chan struct{} // an event was written
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{Engine: dockertest.New(t), dir: t.TempDir(), now: started.Add(time.Second),
		networks: []ipam.NetworkInfo{{ID: front, Name: "front", Sticky: true}}, homes: map[string][]netip.Addr{},
		ended: func() {}, noted: make(chan struct{}, 100)}
	e.Place.Refuse = map[string][]string{}
	e.Place.Expect = func(name string) string {
		if homes := e.homes[name]; len(homes) > 0 {
			return homes[0].String()
		}
		return ""
	}
	return e
}

func (e *engine) path() string { return filepath.Join(e.dir, "put-back.json") }

// keeper starts a Worker like a new daemon's, after the previous one has stopped.
func (e *engine) keeper(mode Mode) *Worker {
	e.Helper()
	e.ended()
	connector, err := pin.OpenConnector(e.URL())
	must(e, err)
	e.ended = connector.Close
	e.Cleanup(connector.Close)
	log := logrus.New()
	log.SetOutput(io.Discard)
	k, err := New(Config{Mode: mode, Records: e, Connector: Local{connector}, Expect: e.expect, Notes: e.path(),
		Now: func() time.Time { return e.now }, Log: logrus.NewEntry(log)})
	must(e, err)
	return k
}

// Deploys implements Records.
func (e *engine) Deploys(context.Context) ([]ipam.DeployLock, error) { return e.deploys, nil }

// Networks implements Records.
func (e *engine) Networks(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error) {
	return e.networks, nil
}

// Note implements Records.
func (e *engine) Note(_ context.Context, event ipam.Event) error {
	e.Lock()
	defer e.Unlock()
	e.events = append(e.events, event)
	e.noted <- struct{}{}
	return nil
}

func (e *engine) expect(name string, homes []netip.Addr) (end func()) {
	e.Lock()
	defer e.Unlock()
	e.homes[name] = homes
	return func() { e.Lock(); defer e.Unlock(); delete(e.homes, name) }
}

func addrOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, byte(n)}) }

func idOf(name string) string { return fmt.Sprintf("%064x", name) }

// runs starts a container with an address that is not its own.
func (e *engine) runs(name string, has, home int) docker.Astray {
	a := docker.Astray{Container: name, ID: idOf(name), Network: "front", Space: "local", Planned: front,
		Has: addrOf(has), Home: addrOf(home), Started: started}
	e.Lock()
	defer e.Unlock()
	c := e.named(name)
	if c == nil {
		c = &dockertest.Container{ID: idOf(name), Name: name, MAC: "02:42:0a:09:00:77"}
		e.Place.Containers = append(e.Place.Containers, c)
	}
	c.On = object{"IPAddress": a.Has.String()}
	return a
}

// named returns the container with this name, or nil.
func (e *engine) named(name string) *dockertest.Container {
	for _, c := range e.Place.Containers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// destroy removes a container.
func (e *engine) destroy(name string) {
	e.Place.Containers = slices.DeleteFunc(e.Place.Containers,
		func(c *dockertest.Container) bool { return c.Name == name })
}

// refuse makes the engine refuse a call that many times. Each refusal is final, so no test waits for a retry.
func (e *engine) refuse(call string, times int) {
	e.Place.Refuse[call] = slices.Repeat([]string{dockertest.Refused}, times)
}

// taken sets, for each container, which container has its own address.
func (e *engine) taken(all ...docker.Astray) []docker.Astray {
	for i := range all {
		for _, c := range e.Place.Containers {
			if c.On["IPAddress"] == all[i].Home.String() {
				all[i].Taken = c.Name
			}
		}
	}
	return all
}

// has returns the last byte of a container's address, or 0 if it is disconnected.
func (e *engine) has(name string) int {
	e.Lock()
	defer e.Unlock()
	return e.named(name).Last()
}

// home checks that each container has its own address.
func (e *engine) home(all []docker.Astray) {
	e.Helper()
	for _, a := range all {
		if got := addrOf(e.has(a.Container)); got != a.Home {
			e.Errorf("%s has %s and not %s", a.Container, got, a.Home)
		}
	}
}

// notes lists the containers with a note on disk.
func (e *engine) notes() (names []string) {
	e.Helper()
	n, err := openNotes(e.path())
	must(e, err)
	for _, one := range n.list() {
		names = append(names, one.Endpoint.Container)
	}
	return names
}

// noNotes checks that no container has a note on disk.
func (e *engine) noNotes() {
	e.Helper()
	if names := e.notes(); len(names) > 0 {
		e.Errorf("left are the notes of %q", names)
	}
}

func (e *engine) called(want ...string) {
	e.Helper()
	e.Lock()
	defer e.Unlock()
	if !slices.Equal(e.Place.Moves, want) {
		e.Errorf("the engine was told %q, and not %q", e.Place.Moves, want)
	}
}
