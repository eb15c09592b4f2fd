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
	"berth/internal/ipam/ipamtest"

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
	asked   map[string]int       // number of inspections, by container
	most    int                  // the most inspections of one container at once
	inspect map[string]int
}

// lockedContainer is one of its containers.
type lockedContainer struct {
	name, state string
	on          map[string]bool // its networks, and whether it has an endpoint there
	lock        bubbleLock
}

// bubbleLock is a mutex whose waiters do not stop the bubble's clock.
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
	e.begin(&Listener{Changed: func(bool) {}, Drivers: func() []string { return nil }})
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

// asks asks about the network n1. It returns the answer as text, and its duration.
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

// befalls makes a change before a request. Its forms are NAME=STATE:NETWORKS, a container, with a final "!" if it
// is locked, and VERB:NAME@NETWORK.
func (e *lockedEngine) befalls(word string) {
	name, what, is := strings.Cut(word, "=")
	if is {
		state, networks, _ := strings.Cut(what, ":")
		networks, locked := strings.CutSuffix(networks, "!")
		if c := e.add(name, state, strings.Split(networks, "+")...); locked {
			c.lock.Lock()
		}
		return
	}
	verb, of, _ := strings.Cut(word, ":")
	of, at, _ := strings.Cut(of, "@")
	switch verb {
	case "die":
		e.happens("die", of, "")
		time.Sleep(time.Millisecond)
	case "connect":
		e.happens("connect", of, at)
	case "late": // the event comes a second late
		e.hear(&ipam.EngineNews{At: time.Now(), Late: time.Second, Event: &ipam.EngineEvent{
			Action: "connect", Network: at, Container: ipam.EngineContainer{ID: of}}})
	case "unlock":
		go func() { time.Sleep(50 * time.Millisecond); e.find(of).lock.Unlock() }()
	case "soon":
		go func() { time.Sleep(50 * time.Millisecond); e.happens("connect", of, "n1") }()
	case "asked":
		e.asks()
		time.Sleep(longestSilence)
	case "slow":
		e.pause = func() time.Duration { return 20 * time.Millisecond }
	case "mute":
		e.mute = true
	case "end":
		e.end()
	case "crowd":
		for i := range 299 {
			e.add(fmt.Sprint("b", i), "exited", "n1")
			e.happens("die", fmt.Sprint("b", i), "")
		}
	}
}

// TestLocks: the container whose inspection gets no answer sends the request. The rows limit the time of the
// answer.
func TestLocks(t *testing.T) {
	for row := range ipamtest.Rows(5, `
		one of several | a=exited:n1 b=exited:n1! c=running:n1 d=exited:n2! | b | 4ms | 12ms
		the only one | a=created:n1! | a | 4ms | 12ms
		nobody | a=exited:n1 | | 0s | 5ms
		one that runs is connected | a=exited:n1 b=running:n2! | b | 4ms | 12ms
		one that runs here holds a lock for another reason | a=running:n1! b=exited:n1! | b | 4ms | 12ms
		several, in the order in which they ended | a=exited:n1! b=exited:n1! c=exited:n1! d=exited:n1! die:c die:a die:d die:b | c a d b | 130ms | 132ms
		several, until one is let go | a=exited:n1! b=exited:n1! unlock:b | a | 50ms | 60ms
		several, until one has its address | a=exited:n1! b=exited:n1! soon:b | a | 50ms | 60ms
		one got its address on another network | a=exited:n1+n2! connect:a@n2 | a | 4ms | 12ms
		one got its address, by an event that came late | a=exited:n1! b=exited:n1! late:b@n1 | a b | 130ms | 132ms
		one that ended since it got its address | a=exited:n1! connect:a@n1 die:a | a | 4ms | 12ms
		one that hangs for long says nothing | a=exited:n1! b=exited:n1 asked | | 0s | 5ms
		a slow engine | slow a=exited:n1! b=exited:n1 | a | 60ms | 120ms
		an engine that says nothing | a=exited:n1! mute | late | 130ms | 130ms
		an engine that boots | end mute | boots | 30ms | 30ms
		an engine that is not followed | end | late | 0s | 2ms
		the oldest of 300 | a=exited:n1! crowd | a | 4ms | 30ms
	`) {
		limit := func(text string) time.Duration {
			d, err := time.ParseDuration(text)
			must(t, err)
			return d
		}
		t.Run(row[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newLockedEngine(t)
				for word := range strings.FieldsSeq(row[1]) {
					e.befalls(word)
				}
				got, took := e.asks()
				if got != row[2] || took < limit(row[3]) || took > limit(row[4]) {
					t.Errorf("%q after %s; want %s", got, took, row[2:])
				}
			})
		})
	}
}

// TestLocksOfAnAddress: a question about a leased address waits longer for a busy engine. A container would be refused
// its own address without an answer, and does not get another one.
func TestLocksOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLockedEngine(t)
		e.add("a", "running", "n2").lock.Lock() // it is being connected to n1
		set := func(change func()) {            // after earlier requests
			e.mu.Lock()
			defer e.mu.Unlock()
			change()
		}
		set(func() { e.pause = func() time.Duration { return 200 * time.Millisecond } })
		if got, _ := e.asks(); got != "late" {
			t.Errorf("any address: %q", got)
		}
		q := lockQuestion("n1")
		q.Address, q.Held = q.CIDR.Addr().Next(), true
		begun := time.Now()
		if got := e.ask(t.Context(), q); !slices.Equal(got.All(), []string{"a"}) || time.Since(begun) > time.Second {
			t.Errorf("%s: %+v after %s", q.Address, got, time.Since(begun))
		}
		set(func() { e.mute = true })
		begun = time.Now()
		if got := e.ask(t.Context(), q); got.Told || time.Since(begun) != addressTime {
			t.Errorf("an engine that says nothing: %+v after %s", got, time.Since(begun))
		}
	})
}

// TestLocksAreAskedOnce: a hanging container is inspected once for all requests. A silent engine delays no
// request.
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

// TestLocksModel: many containers change at once, and events come late. If one container alone is reported, it
// sends the request.
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

// lockModel changes the containers of an engine as users do.
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

// random returns a duration of at most ms milliseconds.
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
			m.set(func() { delete(c.on, "n2") })
			m.tell("disconnect", c.name, "n2")
		}
		time.Sleep(m.random(1500))
	}
}

func (m *lockModel) set(change func()) {
	m.lockedEngine.mu.Lock()
	defer m.lockedEngine.mu.Unlock()
	change()
}

func (m *lockModel) stop(c *lockedContainer) {
	c.lock.Lock()
	m.set(func() { c.state, c.on["n1"] = "exited", false })
	m.tell("die", c.name, "")
	time.Sleep(30*time.Millisecond + m.random(30)) // its endpoint is removed meanwhile
	c.lock.Unlock()
}

func (m *lockModel) start(c *lockedContainer) {
	c.lock.Lock()
	defer c.lock.Unlock()
	m.request(c, "n1")
	time.Sleep(100*time.Millisecond + m.random(100)) // runc creates the process meanwhile
	m.set(func() { c.state = "running" })
	m.tell("start", c.name, "")
}

// request does what libnetwork does for a locked container. It holds the network's lock.
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
	m.set(func() { c.on[network] = true })
	m.tell("connect", c.name, network)
}
