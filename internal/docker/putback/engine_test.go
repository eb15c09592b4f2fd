package putback

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

// object is a JSON object.
type object = map[string]any

// front is Berth's network in the tests. started is when its containers started.
var (
	front   = ipam.ID{1}
	started = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
)

// engine fakes an engine with containers on the network front. It gives them addresses as Berth would.
type engine struct {
	*testing.T
	dir string
	now time.Time

	deploys  []ipam.DeployLock
	networks []ipam.NetworkInfo

	mu     sync.Mutex
	at     map[string]object // settings on front by container; nil: it is disconnected
	homes  map[string][]netip.Addr
	calls  []string       // "off NAME" and "on NAME", in order
	refuse map[string]int // number of these calls that fail
	gone   bool           // front was removed
	ended  func()         // stops the previous daemon
	most   int            // most containers disconnected at once
	before func(call string)
	events []ipam.Event
	noted  chan struct{} // an event was written
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{T: t, dir: t.TempDir(), now: started.Add(time.Second), at: map[string]object{},
		networks: []ipam.NetworkInfo{{ID: front, Name: "front", Sticky: true}}, homes: map[string][]netip.Addr{},
		refuse: map[string]int{}, ended: func() {}, before: func(string) {}, noted: make(chan struct{}, 100)}
	l, err := net.Listen("unix", e.socket())
	must(t, err)
	server := &http.Server{Handler: e}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return e
}

func (e *engine) socket() string { return filepath.Join(e.dir, "docker.sock") }
func (e *engine) path() string   { return filepath.Join(e.dir, "put-back.json") }

// keeper starts a Keeper like a new daemon's, after the previous one has stopped.
func (e *engine) keeper(mode Mode) *Keeper {
	e.Helper()
	e.ended()
	hand, err := pin.OpenHand("unix://" + e.socket())
	must(e, err)
	e.ended = hand.Close
	e.Cleanup(hand.Close)
	log := logrus.New()
	log.SetOutput(io.Discard)
	k, err := New(Config{Mode: mode, Records: e, Hand: Local{hand}, Expect: e.expect, Notes: e.path(),
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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
	e.noted <- struct{}{}
	return nil
}

func (e *engine) expect(name string, homes []netip.Addr) (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.homes[name] = homes
	return func() { e.mu.Lock(); defer e.mu.Unlock(); delete(e.homes, name) }
}

func addrOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, byte(n)}) }

func idOf(name string) string { return fmt.Sprintf("%064x", name) }

// runs starts a container with an address that is not its own.
func (e *engine) runs(name string, has, home int) docker.Astray {
	a := docker.Astray{Container: name, ID: idOf(name), Network: "front", Space: "local", Planned: front,
		Has: addrOf(has), Home: addrOf(home), Started: started}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at[name] = object{"IPAddress": a.Has.String()}
	return a
}

// taken fills in which container has the own address of each.
func (e *engine) taken(all ...docker.Astray) []docker.Astray {
	for i := range all {
		for name, at := range e.at {
			if at["IPAddress"] == all[i].Home.String() {
				all[i].Taken = name
			}
		}
	}
	return all
}

// has is the last byte of a container's address; 0: it is disconnected.
func (e *engine) has(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	text, _ := e.at[name]["IPAddress"].(string)
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return 0
	}
	return int(addr.As4()[3])
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

// notes lists the containers that are noted on disk.
func (e *engine) notes() (names []string) {
	e.Helper()
	n, err := openNotes(e.path())
	must(e, err)
	for _, one := range n.list() {
		names = append(names, one.Endpoint.Container)
	}
	return names
}

// noNotes checks that no container is noted on disk.
func (e *engine) noNotes() {
	e.Helper()
	if names := e.notes(); len(names) > 0 {
		e.Errorf("left are the notes of %q", names)
	}
}

func (e *engine) called(want ...string) {
	e.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.calls, want) {
		e.Errorf("the engine was told %q, and not %q", e.calls, want)
	}
}

// ServeHTTP is the engine's API.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Api-Version", "1.51")
	var body struct {
		Container      string
		EndpointConfig object
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	call := r.URL.Path[strings.Index(r.URL.Path[1:], "/")+1:]
	code, answer := http.StatusOK, object{}
	switch name := e.named(body.Container); {
	case r.URL.Path == "/_ping":
		return
	case strings.HasPrefix(call, "/containers/"):
		name = e.named(strings.Split(call, "/")[2])
		code, answer = e.shown(name)
	case call == "/networks/front" && !e.gone:
	case call == "/networks/front/disconnect" && e.at[name] != nil:
		code, answer = e.told("off "+name, func() error { e.at[name] = nil; return nil })
	case call == "/networks/front/connect" && e.at[name] == nil && !e.gone:
		code, answer = e.told("on "+name, func() error { return e.connect(name, body.EndpointConfig) })
	default:
		code, answer = http.StatusNotFound, object{"message": "there is none"}
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (e *engine) named(id string) string {
	for name := range e.at {
		if idOf(name) == id {
			return name
		}
	}
	return ""
}

func (e *engine) shown(name string) (int, object) {
	networks := object{}
	switch at, there := e.at[name]; {
	case !there:
		return http.StatusNotFound, object{"message": "there is none"}
	case at != nil:
		networks["front"] = at
	}
	return http.StatusOK, object{"Id": idOf(name), "Name": "/" + name, "State": object{"Running": true},
		"HostConfig":      object{"NetworkMode": "front"},
		"Config":          object{"Labels": object{}, "MacAddress": "02:42:0a:09:00:77"},
		"NetworkSettings": object{"Networks": networks}}
}

// told records a call, runs it, and counts the disconnected containers. An error is final, so that no test waits for a
// retry.
func (e *engine) told(call string, do func() error) (int, object) {
	e.before(call)
	e.calls = append(e.calls, call)
	err := fmt.Errorf("user configured subnets only")
	if e.refuse[call] > 0 {
		e.refuse[call]--
	} else {
		err = do()
	}
	off := 0
	for _, at := range e.at {
		if at == nil {
			off++
		}
	}
	e.most = max(e.most, off)
	if err != nil {
		return http.StatusForbidden, object{"message": err.Error()}
	}
	return http.StatusOK, object{}
}

// connect gives a container the address that it asks for, or the expected one, or a free one.
func (e *engine) connect(name string, settings object) error {
	asked, _ := settings["IPAMConfig"].(object)
	text, _ := asked["IPv4Address"].(string)
	if text != "" && e.inUse(text) {
		return fmt.Errorf("%s is in use: user configured subnets only", text)
	}
	if homes := e.homes[name]; text == "" && len(homes) > 0 && !e.inUse(homes[0].String()) {
		text = homes[0].String()
	}
	for n := 200; text == ""; n++ {
		if free := addrOf(n).String(); !e.inUse(free) {
			text = free
		}
	}
	e.at[name] = maps.Clone(settings)
	e.at[name]["IPAddress"] = text
	return nil
}

func (e *engine) inUse(addr string) bool {
	for _, at := range e.at {
		if at["IPAddress"] == addr {
			return true
		}
	}
	return false
}
