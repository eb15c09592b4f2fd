package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newWatcher is a watcher whose news a test waits for.
func newWatcher() *watcher {
	return &watcher{listens: make(chan string, 9), heard: make(chan *ipam.EngineNews, 99), ended: make(chan string, 9)}
}

// soon is the next value of a channel. It fails if none comes in the time a test may wait for a stream.
func soon[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(drainTimeout / 2):
		t.Fatalf("%s: nothing in %s", what, drainTimeout/2)
	}
	return got
}

// allNews has every kind of news with every field.
func allNews(t testing.TB) []*ipam.EngineNews {
	view := aView()
	return outOfJSON[[]*ipam.EngineNews](strings.NewReplacer("$AT", `"at": "2026-01-02T03:04:05.000006Z"`,
		"$LISTED", inJSON(t, view.Containers), "$NETWORKS", inJSON(t, view.Networks),
		"$BRIDGES", inJSON(t, view.Bridges)).Replace(`[
		{$AT, "begins": true},
		{$AT, "ends": true},
		{$AT, "late": 1000000000, "event": {"action": "create",
			"container": {"id": "c1", "name": "shop-web-1", "project": "shop", "service": "web", "number": 1}}},
		{$AT, "event": {"action": "connect", "container": {"id": "c1"}, "network": "n1"}},
		{$AT, "listed": $LISTED},
		{$AT, "networks": {"networks": $NETWORKS, "bridges": $BRIDGES}},
		{$AT, "networks": {"networks": []}}]`))
}

// TestNewsAsDescribed: the witness hears the client's news, in order and as described.
func TestNewsAsDescribed(t *testing.T) {
	w := newWatcher()
	h := start(t, w.join)
	ctx, cancel := context.WithCancel(t.Context())
	tell := h.client.TellEngine(ctx, "alpha", nil)
	must(t, tell(nil))
	for _, news := range allNews(t) {
		must(t, tell(news))
		must(t, tell(nil))
		if diff := cmp.Diff(news, soon(t, "the news", w.heard),
			cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Error(diff)
		}
	}
	if host := soon(t, "the beginning", w.listens); host != "alpha" {
		t.Errorf("of %q", host)
	}
	cancel()
	soon(t, "the end", w.ended)
	// Compare them with the description.
	for _, news := range allNews(t) {
		text := inJSON(t, news)
		h.plays(t, `[Content-Type: application/x-ndjson] POST /v1/witness/news?host=alpha $NEWS -> 200 "ok"`,
			"$NEWS", text)
		soon(t, "the news", w.heard)
		soon(t, "the end", w.ended)
	}
}

// TestNewsQuestions: the sender of news answers the witness's questions while the news continue. If it has gone or
// stays silent, the witness gets an empty answer.
func TestNewsQuestions(t *testing.T) {
	w := newWatcher()
	h := start(t, w.join)
	ctx, cancel := context.WithCancel(t.Context())
	q := ipam.Question{Space: "local", CIDR: netip.MustParsePrefix("10.1.0.0/24")}
	silent := make(chan struct{})
	tell := h.client.TellEngine(ctx, "alpha", answering(func(got ipam.Question) ipam.Locked {
		if got.Address.IsValid() {
			<-silent
		}
		if got.Space != q.Space || got.CIDR != q.CIDR {
			t.Errorf("asked %+v", got)
		}
		return ipam.Locked{Told: true, Silent: []string{"web", "db"}}
	}))
	must(t, tell(nil))
	soon(t, "the beginning", w.listens)
	for range 3 {
		got := w.asks().Locked(ctx, q)
		if diff := cmp.Diff(ipam.Locked{Told: true, Silent: []string{"web", "db"}}, got); diff != "" {
			t.Error(diff)
		}
		must(t, tell(allNews(t)[0]))
		soon(t, "the news", w.heard)
	}
	other := q
	other.Address = netip.MustParseAddr("10.1.0.9")
	if got := w.asks().Locked(ctx, other); got.Told {
		t.Errorf("nobody answers, and that is %+v", got)
	}
	order := ipam.MoveOrder{Step: ipam.MoveOn, Container: "c1", Network: "front", Endpoint: json.RawMessage(`{"id":"c1"}`),
		Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.9")}}
	moved, err := w.asks().Move(ctx, order)
	must(t, err)
	if want := inJSON(t, order); moved.Error != want {
		t.Errorf("it was to do %s, and not %s", want, moved.Error)
	}
	close(silent)
	by := w.asks()
	cancel()
	soon(t, "the end", w.ended)
	if _, err := by.Move(t.Context(), order); err == nil {
		t.Error("who is gone has moved a container")
	}
	if got := w.asks().Locked(t.Context(), q); got.Told {
		t.Errorf("who is gone says %+v", got)
	}
}

// answering is an onlooker that reports who is locked, and answers an order with its text.
type answering func(ipam.Question) ipam.Locked

func (a answering) Locked(_ context.Context, q ipam.Question) ipam.Locked { return a(q) }

func (a answering) Move(_ context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	text, err := json.Marshal(order)
	return ipam.MoveAnswer{Error: string(text)}, err
}

// TestNewsRefused: an error is reported at once, though the body continues. The witness hears nothing of it.
func TestNewsRefused(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		another host | ?host=beta | | of host beta
		an unknown question | ?host=alpha&x=1 | | no parameter
		no JSON | ?host=alpha | { | not valid JSON
		another field | ?host=alpha | {"at": "2026-01-02T03:04:05Z", "what": 1} | no field "what"
		null | ?host=alpha | null | null
		a list | ?host=alpha | [] | a list
		a wrong address | ?host=alpha | $WRONG | listed.0.endpoints.0.wanted.0
		too long | ?host=alpha | $LONG | too long
	`) {
		t.Run(c[0], func(t *testing.T) {
			w := newWatcher()
			if c[0] == "another host" {
				w.err = fmt.Errorf("%w: the news are of host beta", ipam.ErrInvalid)
			}
			h := start(t, w.join)
			from, to := io.Pipe()
			defer to.Close()
			text := strings.NewReplacer("$LONG", strings.Repeat(" ", maxNews+1), "$WRONG", `
				{"at": "2026-01-02T03:04:05Z", "listed": [{"name": "a", "endpoints": [{"network": "n", "wanted": ["x"]}]}]}`).Replace(c[2])
			text = strings.ReplaceAll(text, "\n", "") + "\n"
			go func() { _, _ = io.WriteString(to, text) }() // and then nothing more, not even an end
			answered := make(chan error, 1)
			go func() {
				_, err := h.open(t, "POST /v1/witness/news"+c[1], from)
				answered <- err
			}()
			err := soon(t, "the answer", answered)
			if code(err) != api.CodeInvalid || !strings.Contains(err.Error(), c[3]) {
				t.Errorf("%v", err)
			}
			if len(w.heard) > 0 {
				t.Errorf("it heard %+v", <-w.heard)
			}
			if len(w.listens) > 0 {
				soon(t, "the end", w.ended)
			}
		})
	}
	start(t, nil).plays(t, `POST /v1/witness/news?host=alpha {"at": "2026-01-02T03:04:05Z"} -> 409 no_witness`)
}

// broken waits until sending fails: the listener has refused the news, or has gone.
func broken(t *testing.T, tell func() error) {
	t.Helper()
	for begun := time.Now(); tell() == nil; {
		if time.Since(begun) > drainTimeout {
			t.Fatal("it goes on")
		}
	}
}

// TestClientTellsNobody: the sender learns that nobody listens.
func TestClientTellsNobody(t *testing.T) {
	w := newWatcher()
	w.err = fmt.Errorf("%w: this Berth hears by itself", ipam.ErrInvalid)
	h := start(t, w.join)
	tell := h.client.TellEngine(t.Context(), "alpha", nil)
	broken(t, func() error { return tell(&ipam.EngineNews{At: aMoment, Begins: true}) })
	must(t, h.stop())
	tell = h.client.TellEngine(t.Context(), "alpha", nil)
	if err := tell(nil); err == nil {
		t.Error("a daemon that is not there listens")
	}
}

// TestSilentNews: a sender that is silent for too long counts as gone.
func TestSilentNews(t *testing.T) {
	w := newWatcher()
	h := start(t, func(s *Server) { w.join(s); s.newsTimeout = 50 * time.Millisecond })
	tell := h.client.TellEngine(t.Context(), "alpha", nil)
	must(t, tell(&ipam.EngineNews{At: aMoment, Begins: true}))
	soon(t, "the beginning", w.heard)
	soon(t, "the end", w.ended)
	broken(t, func() error { return tell(nil) })
	if New(Config{}).newsTimeout != stallTimeout {
		t.Error("a server without a test has another time")
	}
}

// TestNewsEndWithServer: a server that ends does not wait for senders.
func TestNewsEndWithServer(t *testing.T) {
	w := newWatcher()
	h := start(t, w.join)
	for range 3 {
		tell := h.client.TellEngine(t.Context(), "alpha", nil)
		must(t, tell(&ipam.EngineNews{At: aMoment, Begins: true}))
		soon(t, "the beginning", w.heard)
	}
	began := time.Now()
	must(t, h.stop())
	if took := time.Since(began); took >= drainTimeout/2 {
		t.Errorf("the server waited for %s", took)
	}
	for range 3 {
		soon(t, "the end", w.ended)
	}
}
