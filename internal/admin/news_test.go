package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// newWatcher is one for whose news a test waits.
func newWatcher() *watcher {
	return &watcher{listens: make(chan string, 9), heard: make(chan *ipam.EngineNews, 99), ended: make(chan string, 9)}
}

// soon is what comes out of a channel, in a time that no stream of a test is to wait for.
func soon[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(drainTimeout / 2):
		t.Fatalf("%s: nothing in %s", what, drainTimeout/2)
	}
	return got
}

// allNews has everything in it that there can be.
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

// TestNewsAsDescribed: what the client tells is what the witness hears, in its order, and as it is described.
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
	// Held to the description.
	for _, news := range allNews(t) {
		text := inJSON(t, news)
		h.play(t, step{method: "POST", target: "/v1/witness/news?host=alpha", body: text, status: 200, has: `"ok"`,
			header: map[string]string{"Content-Type": "application/x-ndjson"}})
		soon(t, "the news", w.heard)
		soon(t, "the end", w.ended)
	}
}

// TestNewsQuestions: what the witness asks of whoever tells is answered while the news go on, and in nobody's name when
// he is gone or says nothing.
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

// answering is an onlooker that tells who is locked, and of an order that it has heard it.
type answering func(ipam.Question) ipam.Locked

func (a answering) Locked(_ context.Context, q ipam.Question) ipam.Locked { return a(q) }

func (a answering) Move(_ context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	text, err := json.Marshal(order)
	return ipam.MoveAnswer{Error: string(text)}, err
}

// TestNewsRefused: what is wrong is said at once, though the body goes on, and the witness hears of none of it.
func TestNewsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		query, body, has string
		err              error
		status           int
	}{
		"another host": {"?host=beta", "", "of host beta",
			fmt.Errorf("%w: the news are of host beta", ipam.ErrInvalid), 400},
		"an unknown question": {"?host=alpha&x=1", "", "no parameter", nil, 400},
		"no JSON":             {"?host=alpha", "{\n", "no proper JSON", nil, 400},
		"another field": {"?host=alpha", `{"at": "2026-01-02T03:04:05Z", "what": 1}` + "\n", `no field "what"`,
			nil, 400},
		"null":   {"?host=alpha", "null\n", "null", nil, 400},
		"a list": {"?host=alpha", "[]\n", "a list", nil, 400},
		"a wrong address": {"?host=alpha",
			`{"at": "2026-01-02T03:04:05Z", "listed": [{"name": "a", "endpoints": [{"network": "n", "wanted": ["x"]}]}]}` + "\n", "listed.0.endpoints.0.wanted.0", nil, 400},
		"too long": {"?host=alpha", strings.Repeat(" ", maxNews+1), "too long", nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			w.err = row.err
			h := start(t, w.join)
			from, to := io.Pipe()
			defer to.Close()
			go func() { _, _ = io.WriteString(to, row.body) }() // and then nothing more comes, and no end
			answered := make(chan error, 1)
			go func() {
				_, err := h.open(t.Context(), http.MethodPost, api.PostNews.Path+row.query, from)
				answered <- err
			}()
			err := soon(t, "the answer", answered)
			var p *api.Problem
			if !errors.As(err, &p) || p.Status != row.status || !strings.Contains(p.Detail, row.has) {
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
	h := start(t, nil)
	h.plays(t, `POST /v1/witness/news?host=alpha {"at": "2026-01-02T03:04:05Z"} -> 409 no_witness`)
}

// TestClientTellsNobody: whoever tells learns that nobody listens.
func TestClientTellsNobody(t *testing.T) {
	w := newWatcher()
	w.err = fmt.Errorf("%w: this Berth hears by itself", ipam.ErrInvalid)
	h := start(t, w.join)
	tell := h.client.TellEngine(t.Context(), "alpha", nil)
	answered := make(chan error, 1)
	go func() {
		for {
			if err := tell(&ipam.EngineNews{At: aMoment, Begins: true}); err != nil {
				answered <- err
				return
			}
		}
	}()
	soon(t, "the refusal", answered) // or the end of the connection, where that is noticed first
	must(t, h.stop())
	tell = h.client.TellEngine(t.Context(), "alpha", nil)
	if err := tell(nil); err == nil {
		t.Error("a daemon that is not there listens")
	}
}

// TestSilentNews: whoever says nothing for too long is gone.
func TestSilentNews(t *testing.T) {
	w := newWatcher()
	h := start(t, func(s *Server) { w.join(s); s.newsTimeout = 50 * time.Millisecond })
	tell := h.client.TellEngine(t.Context(), "alpha", nil)
	must(t, tell(&ipam.EngineNews{At: aMoment, Begins: true}))
	soon(t, "the beginning", w.heard)
	soon(t, "the end", w.ended)
	answered := make(chan error, 1)
	go func() {
		for {
			if err := tell(nil); err != nil {
				answered <- err
				return
			}
		}
	}()
	if err := soon(t, "the end of the connection", answered); err == nil {
		t.Error("it goes on")
	}
	if stallTimeout != h.server.newsTimeout && New(Config{}).newsTimeout != stallTimeout {
		t.Error("a server without a test has another time")
	}
}

// TestNewsEndWithServer: a server that ends waits for nobody who tells.
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
