package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

// clock is moved by hand. It wakes a waiter when its time has come.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	waiting []waiter
	asked   chan time.Duration // each wait that begins
}

type waiter struct {
	at   time.Time
	wake chan time.Time
}

func newClock() *clock { return &clock{now: time.Now(), asked: make(chan time.Duration, 10_000)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := waiter{c.now.Add(d), make(chan time.Time, 1)}
	c.waiting = append(c.waiting, w)
	c.asked <- d
	return w.wake
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.waiting = slices.DeleteFunc(c.waiting, func(w waiter) bool {
		if w.at.After(c.now) {
			return false
		}
		w.wake <- c.now
		return true
	})
}

// sent is a message that a receiver got.
type sent struct {
	header http.Header
	body   []byte
	envelope
	event ipam.Event
	gap   gap
}

// inbox is a receiver.
type inbox struct {
	*httptest.Server
	got    chan sent
	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request, *sent) // nil: 204
}

func (in *inbox) answers(how func(http.ResponseWriter, *http.Request, *sent)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.answer = how
}

func refuses(status int) func(http.ResponseWriter, *http.Request, *sent) {
	return func(w http.ResponseWriter, _ *http.Request, _ *sent) { w.WriteHeader(status) }
}

func newInbox(t *testing.T, serve func(http.Handler) *httptest.Server) *inbox {
	t.Helper()
	in := &inbox{got: make(chan sent, 10_000)}
	in.Server = serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one, err := read(r)
		if err != nil {
			t.Error(err)
		}
		in.mu.Lock()
		answer := in.answer
		in.mu.Unlock()
		in.got <- *one
		if answer == nil {
			answer = refuses(http.StatusNoContent)
		}
		answer(w, r, one)
	}))
	t.Cleanup(in.Close)
	return in
}

func read(r *http.Request) (*sent, error) {
	one := &sent{header: r.Header}
	var err error
	if one.body, err = io.ReadAll(r.Body); err != nil {
		return one, err
	}
	var data json.RawMessage
	one.Data = &data
	if err := json.Unmarshal(one.body, &one.envelope); err != nil {
		return one, err
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return one, fmt.Errorf("%s with the type %q", r.Method, r.Header.Get("Content-Type"))
	}
	if one.Type == typeGap {
		return one, json.Unmarshal(data, &one.gap)
	}
	return one, json.Unmarshal(data, &one.event)
}

// next returns the next message that came.
func (in *inbox) next(t *testing.T) sent {
	t.Helper()
	select {
	case one := <-in.got:
		return one
	case <-time.After(30 * time.Second):
		t.Fatal("no message came")
		return sent{}
	}
}

// none checks that no message has come.
func (in *inbox) none(t *testing.T) {
	t.Helper()
	select {
	case one := <-in.got:
		t.Errorf("a message came: %s", one.body)
	default:
	}
}

// harness is a service whose webhooks can be stopped and started again.
type harness struct {
	t       *testing.T
	store   store.Store
	service *service.Service
	clock   *clock
	dir     string
	cfg     Config
	hooks   *Webhooks
	stop    func()
	n       int
}

func newHarness(t *testing.T, keep ipam.Retention, urls ...string) *harness {
	t.Helper()
	h := &harness{t: t, clock: newClock(), dir: t.TempDir(), store: storetest.NewModel()}
	t.Cleanup(func() { h.store.Close() })
	var err error
	h.service, err = service.Open(t.Context(), service.Config{Store: h.store, Host: "alpha", Retention: keep,
		Now: h.clock.Now})
	must(t, err)
	_, err = h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.1.0.0/16"), Pool: true}}})
	must(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	h.cfg = Config{Service: h.service, URLs: urls, Dir: h.dir, Host: "alpha", StoreID: "S", Log: logrus.NewEntry(log),
		Version: "1.2", Clock: Clock{h.clock.Now, h.clock.After, func() float64 { return 0 }}}
	return h
}

// begin opens and runs the webhooks.
func (h *harness) begin() {
	h.t.Helper()
	h.open()
	h.run()
}

func (h *harness) open() {
	h.t.Helper()
	var err error
	h.hooks, err = Open(h.t.Context(), h.cfg)
	must(h.t, err)
}

func (h *harness) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.hooks.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		must(h.t, <-ended)
	})
	h.t.Cleanup(h.stop)
}

// take makes events, and returns the owners that they name.
func (h *harness) take(n int) (owners []string) {
	h.t.Helper()
	for range n {
		h.n++
		owner := fmt.Sprintf("o%d", h.n)
		h.clock.advance(time.Microsecond)
		_, err := h.service.Edit(h.t.Context(), ipam.EditOptions{}, &ipam.TakeAddress{Network: "net1", Owner: owner})
		must(h.t, err)
		owners = append(owners, owner)
	}
	return owners
}

// receives waits for the events of the owners, in order, with nothing in between.
func (in *inbox) receives(t *testing.T, owners []string) (all []sent) {
	t.Helper()
	for _, owner := range owners {
		one := in.next(t)
		if one.Type != "lease.take" || one.event.Name != owner {
			t.Fatalf("%s came, want the lease of %s", one.body, owner)
		}
		all = append(all, one)
	}
	return all
}

// turns moves the clock by a step each time a receiver waits, until a condition holds.
func (h *harness) turns(step time.Duration, what string, so func() bool) {
	h.t.Helper()
	late := time.After(30 * time.Second)
	for !so() {
		h.clock.advance(step)
		select {
		case <-h.clock.asked:
		case <-late:
			h.t.Fatal("it never came to this: " + what)
		}
	}
}

// comes waits until a condition holds.
func comes(t *testing.T, what string, so func() bool) {
	t.Helper()
	late := time.Now().Add(30 * time.Second)
	for !so() {
		if time.Now().After(late) {
			t.Fatal("it never came to this: " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

// writtenSince tells whether a place says that nothing was left to send at a time, or later.
func writtenSince(t *testing.T, text []byte, at time.Time) bool {
	t.Helper()
	var p place
	must(t, json.Unmarshal(text, &p))
	return !p.Whole.Before(at)
}
