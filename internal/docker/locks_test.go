package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/client"
)

var locksAsked = flag.Int("locks.asked", 0, "how many requests TestLocksModel makes")

// lockedEngine fakes an engine's locks and lists, in a synctest bubble.
type lockedEngine struct {
	*locks
	rand *rand.Rand

	mu      sync.Mutex
	all     []*lockedContainer
	pause   func() time.Duration // before each answer
	mute    bool                 // it answers nothing
	asked   map[string]int       // number of inspections by container
	most    int                  // most inspections of one container at once
	inspect map[string]int
}

// lockedContainer is one of its containers.
type lockedContainer struct {
	name, state string
	on          map[string]bool // networks, and whether it has an endpoint there
	lock        bubbleLock
}

// bubbleLock is a mutex whose waiters do not stop the time of a bubble.
type bubbleLock chan struct{}

func (l bubbleLock) Lock()   { l <- struct{}{} }
func (l bubbleLock) Unlock() { <-l }

var lockNets = []ipam.EngineNetwork{
	{ID: "n1", Name: "n1", Subnets: []ipam.EngineSubnet{{CIDR: netip.MustParsePrefix("10.1.0.0/24")}}},
	{ID: "n2", Name: "n2", Subnets: []ipam.EngineSubnet{{CIDR: netip.MustParsePrefix("10.2.0.0/24")}}},
}

func lockQuestion(network string) ipam.Question {
	for _, n := range lockNets {
		if n.ID == network {
			return ipam.Question{Space: ipam.LocalSpace, CIDR: n.Subnets[0].CIDR}
		}
	}
	panic(network)
}

// newLockedEngine returns a followed engine that answers in a millisecond.
func newLockedEngine(t *testing.T) *lockedEngine {
	t.Helper()
	e := &lockedEngine{rand: rand.New(rand.NewPCG(1, 2)), asked: map[string]int{}, inspect: map[string]int{},
		pause: func() time.Duration { return time.Millisecond }}
	api, err := client.New(client.WithHost("tcp://engine:1"), client.WithHTTPClient(&http.Client{Transport: e}),
		client.WithAPIVersion("1.41"))
	must(t, err)
	e.locks = newLocks(&Engine{api: api}, nil)
	e.http = &http.Client{Transport: e}
	e.begin(&Listener{Stirred: func(bool) {}, Drivers: func() []string { return nil }})
	e.hear(&ipam.EngineNews{Networks: &ipam.EngineNetworkList{Networks: lockNets}})
	t.Cleanup(e.stop)
	return e
}

// add adds a container on networks. If it runs, it has endpoints there.
func (e *lockedEngine) add(name, state string, networks ...string) *lockedContainer {
	c := &lockedContainer{name: name, state: state, on: map[string]bool{}, lock: make(bubbleLock, 1)}
	for _, n := range networks {
		c.on[n] = state == "running"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, c)
	return c
}

// RoundTrip answers as the engine does: an inspection waits for the container's lock.
func (e *lockedEngine) RoundTrip(req *http.Request) (*http.Response, error) {
	e.mu.Lock()
	pause, mute := e.pause(), e.mute
	e.mu.Unlock()
	if mute {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	time.Sleep(pause)
	dir, name := path.Split(strings.TrimPrefix(req.URL.Path, "/v1.41"))
	var body any
	switch id := path.Base(dir); {
	case dir == "/containers/":
		body = e.list()
	case name == "json":
		e.note(id, 1)
		c := e.find(id)
		select {
		case c.lock <- struct{}{}:
			c.lock.Unlock()
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		e.note(id, -1)
		body = object{"Id": id}
	}
	text, err := json.Marshal(body)
	return &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(text))}, err
}

func (e *lockedEngine) note(id string, more int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[id] += max(more, 0)
	e.inspect[id] += more
	e.most = max(e.most, e.inspect[id])
}

func (e *lockedEngine) find(id string) *lockedContainer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[slices.IndexFunc(e.all, func(c *lockedContainer) bool { return c.name == id })]
}

func (e *lockedEngine) list() (all []object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.all {
		networks := object{}
		for n, has := range c.on {
			ep := object{"NetworkID": n}
			if has {
				ep["EndpointID"] = c.name + n
			}
			networks[n] = ep
		}
		all = append(all, object{"Id": c.name, "Names": []string{"/" + c.name}, "State": c.state,
			"NetworkSettings": object{"Networks": networks}})
	}
	return all
}

// happens sends an event at once.
func (e *lockedEngine) happens(action, name, network string) {
	e.hear(&ipam.EngineNews{At: time.Now(),
		Event: &ipam.EngineEvent{Action: action, Network: network, Container: ipam.EngineContainer{ID: name}}})
}

// asks asks about the network n1 and returns the answer as text, and how long it took.
func (e *lockedEngine) asks() (string, time.Duration) {
	begun := time.Now()
	l := e.ask(context.Background(), lockQuestion("n1"))
	took := time.Since(begun)
	switch {
	case l.Boots:
		return "boots", took
	case !l.Told:
		return "late", took
	}
	return strings.Join(l.All(), " "), took
}

// TestLocks: the container whose inspection is not answered is the one that asks. The rows limit the time of the
// answer.
func TestLocks(t *testing.T) {
	for _, row := range []struct {
		name  string
		begin func(*lockedEngine)
		want  string
		least time.Duration // time to the answer
		most  time.Duration
	}{
		{"one of several", func(e *lockedEngine) {
			e.add("a", "exited", "n1")
			e.add("b", "exited", "n1").lock.Lock()
			e.add("c", "running", "n1")
			e.add("d", "exited", "n2").lock.Lock()
		}, "b", 4 * time.Millisecond, 12 * time.Millisecond},
		{"the only one", func(e *lockedEngine) { e.add("a", "created", "n1").lock.Lock() }, "a", 4 * time.Millisecond,
			12 * time.Millisecond},
		{"nobody", func(e *lockedEngine) { e.add("a", "exited", "n1") }, "", 0, 5 * time.Millisecond},
		{"one that runs is connected", func(e *lockedEngine) {
			e.add("a", "exited", "n1")
			e.add("b", "running", "n2").lock.Lock()
		}, "b", 4 * time.Millisecond, 12 * time.Millisecond},
		{"one that runs here holds a lock for another reason", func(e *lockedEngine) {
			e.add("a", "running", "n1").lock.Lock()
			e.add("b", "exited", "n1").lock.Lock()
		}, "b", 4 * time.Millisecond, 12 * time.Millisecond},
		{"several, in the order in which they ended", func(e *lockedEngine) {
			for _, name := range []string{"a", "b", "c", "d"} {
				e.add(name, "exited", "n1").lock.Lock()
			}
			for _, name := range []string{"c", "a", "d", "b"} {
				e.happens("die", name, "")
				time.Sleep(time.Millisecond)
			}
		}, "c a d b", lockTime, lockTime + 2*time.Millisecond},
		{"several, until one is let go", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			b := e.add("b", "exited", "n1")
			b.lock.Lock()
			go func() { time.Sleep(50 * time.Millisecond); b.lock.Unlock() }()
		}, "a", 50 * time.Millisecond, 60 * time.Millisecond},
		{"several, until one has its address", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			e.add("b", "exited", "n1").lock.Lock()
			go func() { time.Sleep(50 * time.Millisecond); e.happens("connect", "b", "n1") }()
		}, "a", 50 * time.Millisecond, 60 * time.Millisecond},
		{"one got its address on another network", func(e *lockedEngine) {
			e.add("a", "exited", "n1", "n2").lock.Lock()
			e.happens("connect", "a", "n2")
		}, "a", 4 * time.Millisecond, 12 * time.Millisecond},
		{"one got its address, by an event that came late", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			e.add("b", "exited", "n1").lock.Lock()
			e.hear(&ipam.EngineNews{At: time.Now(), Late: time.Second, Event: &ipam.EngineEvent{
				Action: "connect", Network: "n1", Container: ipam.EngineContainer{ID: "b"}}})
		}, "a b", lockTime, lockTime + 2*time.Millisecond},
		{"one that ended since it got its address", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			e.happens("connect", "a", "n1")
			e.happens("die", "a", "")
		}, "a", 4 * time.Millisecond, 12 * time.Millisecond},
		{"one that hangs for long says nothing", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			e.add("b", "exited", "n1")
			e.asks()
			time.Sleep(longestSilence)
		}, "", 0, 5 * time.Millisecond},
		{"a slow engine", func(e *lockedEngine) {
			e.pause = func() time.Duration { return 20 * time.Millisecond }
			e.add("a", "exited", "n1").lock.Lock()
			e.add("b", "exited", "n1")
		}, "a", 60 * time.Millisecond, 120 * time.Millisecond},
		{"an engine that says nothing", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			e.mute = true
		}, "late", lockTime, lockTime},
		{"an engine that boots", func(e *lockedEngine) {
			e.end()
			e.mute = true
		}, "boots", silenceTime, silenceTime},
		{"an engine that is not followed", func(e *lockedEngine) { e.end() }, "late", 0,
			2 * time.Millisecond},
		{"the oldest of 300", func(e *lockedEngine) {
			e.add("a", "exited", "n1").lock.Lock()
			for i := range 299 {
				name := fmt.Sprint("b", i)
				e.add(name, "exited", "n1")
				e.happens("die", name, "")
			}
		}, "a", 4 * time.Millisecond, 30 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newLockedEngine(t)
				row.begin(e)
				got, took := e.asks()
				if got != row.want || took < row.least || took > row.most {
					t.Errorf("%q after %s; want %q between %s and %s", got, took, row.want, row.least, row.most)
				}
			})
		})
	}
}

// TestLocksAreAskedOnce: a hanging container is inspected once for all requests, and a silent engine delays nobody.
func TestLocksAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLockedEngine(t)
		e.add("a", "exited", "n1").lock.Lock()
		for range 100 {
			var asking sync.WaitGroup
			for range 3 {
				asking.Go(func() { e.asks() })
			}
			asking.Wait()
		}
		if e.asked["a"] != 1 || len(e.open) != 1 {
			t.Errorf("it was asked for %d times, and %d are open", e.asked["a"], len(e.open))
		}
		e.mute = true
		for range 100 {
			e.asks()
		}
		if len(e.open) != 1 {
			t.Errorf("%d are open", len(e.open))
		}
	})
}

// TestLocksModel: many containers change at once, and events come late. A container that is reported alone is the one
// that asks.
func TestLocksModel(t *testing.T) {
	requests := 10000
	if testing.Short() {
		requests = 2000
	}
	requests = max(requests, *locksAsked)
	synctest.Test(t, func(t *testing.T) {
		e := newLockedEngine(t)
		m := &lockModel{lockedEngine: e, t: t, left: requests, counts: map[string]int{},
			seat: map[string]bubbleLock{"n1": make(bubbleLock, 1), "n2": make(bubbleLock, 1)}}
		e.pause = func() time.Duration { return time.Duration(e.rand.ExpFloat64() * float64(2*time.Millisecond)) }
		events := make(chan func(), 1000)
		m.tell = func(action, name, network string) { // each within 20 ms, in order
			heard := time.Now().Add(m.random(20))
			events <- func() { time.Sleep(time.Until(heard)); e.happens(action, name, network) }
		}
		var telling, working sync.WaitGroup
		telling.Go(func() {
			for tell := range events {
				tell()
			}
		})
		for w := range 3 {
			var mine []*lockedContainer
			for i := range 5 {
				mine = append(mine, e.add(fmt.Sprintf("w%d-%d", w, i), "running", "n1"))
			}
			working.Go(func() { m.work(mine) })
		}
		copied := e.add("copied", "exited", "n1")
		working.Go(func() {
			for m.goesOn() {
				copied.lock.Lock()
				time.Sleep(m.random(300))
				copied.lock.Unlock()
				time.Sleep(m.random(300))
			}
		})
		working.Wait()
		close(events)
		telling.Wait()
		m.state.Lock()
		defer m.state.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		t.Logf("%v", m.counts)
		if m.counts["one"] < requests/5 || e.most > 1 {
			t.Errorf("%v; up to %d inspections of one container at once", m.counts, e.most)
		}
	})
}

// lockModel changes the containers of an engine as people do.
type lockModel struct {
	*lockedEngine
	t    *testing.T
	seat map[string]bubbleLock // the lock of each network
	tell func(action, name, network string)

	state  sync.Mutex
	left   int
	counts map[string]int
}

func (m *lockModel) goesOn() bool {
	m.state.Lock()
	defer m.state.Unlock()
	return m.left > 0
}

// random returns at most so many milliseconds.
func (m *lockModel) random(ms int) time.Duration {
	m.lockedEngine.mu.Lock()
	defer m.lockedEngine.mu.Unlock()
	return time.Duration(m.rand.Int64N(int64(ms)*int64(time.Millisecond))) + 1
}

func (m *lockModel) work(mine []*lockedContainer) {
	for m.goesOn() {
		c := mine[int(m.random(1000))%len(mine)]
		switch m.random(10) / time.Millisecond {
		case 0: // several at once
			var all sync.WaitGroup
			for _, c := range mine[:3] {
				all.Go(func() { m.stop(c); m.start(c) })
			}
			all.Wait()
		case 1, 2, 3, 4, 5:
			m.stop(c)
			time.Sleep(m.random(200))
			m.start(c)
		default:
			c.lock.Lock()
			m.request(c, "n2")
			c.lock.Unlock()
			time.Sleep(m.random(50))
			m.set(c, func() { delete(c.on, "n2") })
			m.tell("disconnect", c.name, "n2")
		}
		time.Sleep(m.random(1500))
	}
}

func (m *lockModel) set(_ *lockedContainer, change func()) {
	m.lockedEngine.mu.Lock()
	defer m.lockedEngine.mu.Unlock()
	change()
}

func (m *lockModel) stop(c *lockedContainer) {
	c.lock.Lock()
	m.set(c, func() { c.state, c.on["n1"] = "exited", false })
	m.tell("die", c.name, "")
	time.Sleep(30*time.Millisecond + m.random(30)) // its endpoint goes meanwhile
	c.lock.Unlock()
}

func (m *lockModel) start(c *lockedContainer) {
	c.lock.Lock()
	defer c.lock.Unlock()
	m.request(c, "n1")
	time.Sleep(100*time.Millisecond + m.random(100)) // runc makes the process meanwhile
	m.set(c, func() { c.state = "running" })
	m.tell("start", c.name, "")
}

// request does what libnetwork does for a locked container, under the lock of the network.
func (m *lockModel) request(c *lockedContainer, network string) {
	m.seat[network].Lock()
	defer m.seat[network].Unlock()
	got := m.ask(context.Background(), lockQuestion(network))
	m.state.Lock()
	defer m.state.Unlock()
	m.left--
	got.Silent = got.All()
	switch {
	case !got.Told:
		m.counts["late"]++
	case len(got.Silent) == 0:
		m.counts["none"]++
	case len(got.Silent) > 1:
		m.counts["several"]++
		if !slices.Contains(got.Silent, c.name) {
			m.counts["several, and another one"]++
		}
	case got.Silent[0] == c.name:
		m.counts["one"]++
	default:
		m.t.Errorf("%s asks on %s, and %s is said to", c.name, network, got.Silent[0])
	}
	m.set(c, func() { c.on[network] = true })
	m.tell("connect", c.name, network)
}

// TestGuessOthers: if the engine does not answer, containers that ended together share their old addresses, unless a
// new one may be asking.
func TestGuessOthers(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRoster(func() time.Time { return now })
	tell := func(action, id string) {
		now = now.Add(time.Millisecond)
		r.Hear(&ipam.EngineNews{At: now,
			Event: &ipam.EngineEvent{Action: action, Container: ipam.EngineContainer{ID: id, Name: id}}})
	}
	r.Hear(&ipam.EngineNews{At: now, Begins: true})
	view := ipam.EngineView{Taken: now, Networks: lockNets[:1]}
	for _, id := range []string{"b", "a", "idle"} {
		view.Containers = append(view.Containers, ipam.EngineContainer{ID: id, Name: id, State: "exited",
			Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}})
	}
	r.Show(&view)
	for _, id := range []string{"b", "a"} {
		tell("start", id)
		tell("die", id)
	}
	q := lockQuestion("n1")
	if hint := r.ask(t.Context(), q); !slices.Equal(hint.Others, []string{"b", "a"}) || hint.Name != "" {
		t.Errorf("%+v", hint)
	}
	tell("create", "new")
	if hint := r.ask(t.Context(), q); hint.Others != nil || hint.Name != "" {
		t.Errorf("with a new one: %+v", hint)
	}
}
