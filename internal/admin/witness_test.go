package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// watcher is a witness that gives the answers a test wants, and records the questions.
type watcher struct {
	mu     sync.Mutex
	asked  []ipam.CheckRequest
	shown  []ipam.EngineView
	report ipam.CheckReport
	err    error
	during func(context.Context) // runs while it checks

	by      ipam.Onlooker         // the last listener's
	listens chan string           // hosts whose engines a sender begins to report on; nil: not awaited
	heard   chan *ipam.EngineNews // the reports; nil: not awaited
	ended   chan string           // hosts whose reports have ended; nil: not awaited
}

func (w *watcher) listen(host string,
	by ipam.Onlooker) (hear func(*ipam.EngineNews), end func(), err error) {
	if w.err != nil {
		return nil, nil, w.err
	}
	pass := func(to chan string) {
		if to != nil {
			to <- host
		}
	}
	w.mu.Lock()
	w.by = by
	w.mu.Unlock()
	pass(w.listens)
	return func(news *ipam.EngineNews) {
		if w.heard != nil {
			w.heard <- news
		}
	}, func() { pass(w.ended) }, nil
}

// asks is the last listener, for questions.
func (w *watcher) asks() ipam.Onlooker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by
}

func (w *watcher) check(ctx context.Context, req ipam.CheckRequest) (ipam.CheckReport, error) {
	w.mu.Lock()
	w.asked = append(w.asked, req)
	during := w.during
	w.mu.Unlock()
	if during != nil {
		during(ctx)
	}
	return w.report, w.err
}

func (w *watcher) show(_ context.Context, view ipam.EngineView) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown = append(w.shown, view)
	return w.err
}

// join makes it the witness of a server.
func (w *watcher) join(s *Server) {
	s.cfg.Check, s.cfg.Show, s.cfg.Listen = w.check, w.show, w.listen
	s.cfg.Release = func(_ context.Context, req ipam.LeaseRelease) (ipam.LeaseInfo, error) {
		if !req.Force {
			return ipam.LeaseInfo{}, fmt.Errorf("%w: a container has it", ipam.ErrInUse)
		}
		return ipam.LeaseInfo{ID: 7, NetworkID: ipam.ID{7}, Address: req.Address, Subnet: netip.MustParsePrefix("10.1.0.0/24"),
			Space: req.Space, Kind: ipam.Automatic,
			State: "held", Host: "alpha", Since: aMoment}, nil
	}
	s.cfg.SeenBy = func(space string, addr netip.Addr, lease uint64) *ipam.SeenBy {
		if space != "lab" || addr.String() != "10.1.0.2" || lease == 0 {
			return nil
		}
		return &ipam.SeenBy{Container: "shop-web-1", ID: "c1", Project: "shop", Service: "web", State: "running",
			Network: "shop_default"}
	}
	s.cfg.Witness = func() ipam.WitnessState {
		return ipam.WitnessState{Engine: "unreachable", Detail: "connection refused", Seen: aMoment, Runs: 3,
			Last: aMoment, Counts: map[ipam.FindingKind]int{ipam.UnusedLease: 2}}
	}
}

var aMoment = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// aReport and aView use every field and every value they can have.
func aReport() ipam.CheckReport {
	return outOfJSON[ipam.CheckReport](`{"host": "alpha", "taken": "2026-01-02T03:04:05.000006Z", "engine": "reachable",
		"trouble": "slow", "repaired": 1, "counts": {"unused_lease": 1, "wrong_gateway": 0}, "findings": [
			{"kind": "unused_lease", "space": "lab", "address": "10.1.0.2", "network": "net1", "host": "alpha",
				"owner": "web", "seen": "2026-01-02T03:04:05.000006Z", "repairable": true, "repaired": true,
				"detail": "nobody uses it", "lease": 7, "pool": "01000000-0000-0000-0000-000000000000",
				"subnet": "10.1.0.0/24", "mac": "02:00:00:00:00:01"},
			{"kind": "unknown_pool", "seen": "2026-01-02T03:04:05.000006Z", "detail": "no pool"}]}`)
}

func aView() ipam.EngineView {
	return outOfJSON[ipam.EngineView](`{"host": "alpha", "engine": "E1", "taken": "2026-01-02T03:04:05.000006Z",
		"networks": [{"id": "n1", "name": "shop_default", "driver": "berth", "swarm": true,
			"options": {"network": "net1"}, "subnets": [{"cidr": "10.1.0.0/24", "range": "10.1.0.128/25",
				"gateway": "10.1.0.1", "aux": {"a": "10.1.0.3"}}]}],
		"containers": [{"id": "c1", "name": "shop-web-1", "project": "shop", "service": "web", "number": 1,
			"state": "running", "endpoints": [{"network": "n1", "id": "e1", "mac": "02:00:00:00:00:01",
				"addresses": ["10.1.0.2"], "wanted": ["10.1.0.2"]}]}, {"name": "lb-net1"}],
		"bridges": [{"id": "n2", "name": "bridge", "driver": "default", "link": "docker0",
			"subnets": [{"cidr": "172.17.0.0/16"}]}]}`)
}

// outOfJSON decodes JSON from the wire format, and refuses unknown fields.
func outOfJSON[T any](text string) (v T) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func inJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// TestWitnessAsDescribed calls everything that the witness answers, and compares it with the description.
func TestWitnessAsDescribed(t *testing.T) {
	w := &watcher{report: aReport()}
	h := start(t, w.join)
	h.furnish(t)
	view, report := inJSON(t, aView()), inJSON(t, aReport())
	h.plays(t, `
		GET /v1/check -> 200 "kind":"unused_lease"
		POST /v1/check {} -> 200 "counts":{"unused_lease":1,"wrong_gateway":0}
		POST /v1/check {"repair": true} -> 200 "repaired":1
		POST /v1/check {"repair": true, "only": $REPORT} -> 200 "lease":7
		POST /v1/check {"view": $VIEW} -> 200 "engine":"reachable"
		PUT /v1/witness $VIEW -> 200 "ok"
		PUT /v1/witness {"host": "alpha", "engine": "E1", "taken": "2026-01-02T03:04:05Z",
			"networks": null, "containers": null} -> 200 "ok"
		POST /v1/leases/release {"space": "lab", "address": "10.1.0.2", "force": true}
			-> 200 "address":"10.1.0.2"
		POST /v1/leases/release {"address": "10.1.0.2", "view": $VIEW} -> 409 a container has it
		GET /v1/status
			-> 200 "witness":{"engine":"unreachable","live":false,"detail":"connection refused",
		GET /v1/leases?space=lab
			-> 200 "seen_by":{"container":"shop-web-1","id":"c1","project":"shop","service":"web","state":"running","network":"shop_default"}
		GET /v1/leases?space=lab&limit=2 -> 200 "seen_by":{"container":"shop-web-1"
	`, "$REPORT", report, "$VIEW", view)
	same := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
	only, seen := aReport(), aView()
	want := []ipam.CheckRequest{{}, {}, {Repair: true}, {Repair: true, Only: &only}, {View: &seen}}
	if diff := cmp.Diff(want, w.asked, same); diff != "" {
		t.Errorf("asked was:\n%s", diff)
	}
	if diff := cmp.Diff(aView(), w.shown[0], same); diff != "" {
		t.Errorf("shown was:\n%s", diff)
	}
	w.report = ipam.CheckReport{Host: "alpha", Taken: aMoment, Engine: "none"}
	h.plays(t, `GET /v1/check -> 200 "findings":[],"counts":{}`)
	w.err = fmt.Errorf("%w: the view is of host beta", ipam.ErrInvalid)
	h.plays(t, `
		GET /v1/check -> 400 host beta
		PUT /v1/witness $VIEW -> 400 host beta
	`, "$VIEW", view)
}

// TestSeenBy: only a held lease that the witness knows names its container.
func TestSeenBy(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	h.server.cfg.SeenBy = func(space string, addr netip.Addr, lease uint64) *ipam.SeenBy {
		if space != "lab" {
			return nil
		}
		return &ipam.SeenBy{Container: fmt.Sprint(addr, " ", lease)}
	}
	all, err := h.client.Leases(t.Context(), ipam.LeaseFilter{Remembered: true})
	must(t, err)
	seen := 0
	for _, l := range all {
		known := l.Space == "lab" && l.State == "held"
		if known != (l.SeenBy != nil) || known && l.SeenBy.Container != fmt.Sprint(l.Address, " ", l.ID) {
			t.Errorf("%s (%s, lease %d) is seen by %+v", l.Address, l.State, l.ID, l.SeenBy)
		}
		if known {
			seen++
		}
	}
	if seen == 0 || seen == len(all) {
		t.Errorf("%d of %d are seen", seen, len(all))
	}
}

// Without a witness the answer says so and what to do. Everything else works.
func TestNoWitness(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	h.plays(t, `
		GET /v1/check -> 409 no_witness && --docker-host
		POST /v1/check {"repair": true} -> 409 no_witness && --docker-host
		PUT /v1/witness $VIEW -> 409 no_witness && --docker-host
		GET /v1/status -> 200 without witness
		GET /v1/status -> 200 without seen_by
		GET /v1/leases -> 200 without witness
		GET /v1/leases -> 200 without seen_by
	`, "$VIEW", inJSON(t, aView()))
}

// A wrong body is refused with its reason, and the witness hears nothing of it.
func TestBadWitnessBodies(t *testing.T) {
	w := new(watcher)
	h := start(t, w.join)
	for _, s := range steps(`
		GET /v1/check?repair=true -> 400 no parameter
		POST /v1/check?repair=true {} -> 400 no parameter
		PUT /v1/witness?host=a {} -> 400 no parameter
		POST /v1/check -> 400 empty
		POST /v1/check null -> 400 null
		POST /v1/check [] -> 400 a list; it must be an object
		POST /v1/check {"repair": "yes"} -> 400 the field "repair" is a string
		POST /v1/check {"fix": true} -> 400 no field "fix"
		POST /v1/check {"repair": true, "repair": false} -> 400 duplicate
		POST /v1/check {"only": {"findings": [{"kind": "unused_lease", "address": "10.1.0"}]}}
			-> 400 the field "only.findings.0.address" is wrong
		POST /v1/check {"view": {"hosts": []}} -> 400 no field "view.hosts"
		PUT /v1/witness -> 400 empty
		PUT /v1/witness [] -> 400 a list; it must be an object
		PUT /v1/witness {"host": 7} -> 400 the field "host" is a number
		PUT /v1/witness {"containers": [{"name": "a", "endpoints": [{"network": "n",
			"mac": "02"}]}]} -> 400 the field "containers.0.endpoints.0.mac" is wrong
		PUT /v1/witness {"networks": [{"subnets": [{"cidr": "10.1.0.0"}]}]}
			-> 400 the field "networks.0.subnets.0.cidr" is wrong
		PUT /v1/witness {"host": "a" -> 400 not valid JSON
	`) {
		s.has += ` && "code":"invalid"`
		h.play(t, s)
	}
	h.plays(t, `[Content-Type: text/plain] PUT /v1/witness {} -> 415 media_type`)
	if len(w.asked)+len(w.shown) > 0 {
		t.Errorf("the witness was asked: %+v, %+v", w.asked, w.shown)
	}
}

// TestClientCheck: a caller that may only read may send the zero request.
func TestClientCheck(t *testing.T) {
	w := &watcher{report: aReport()}
	methods := ""
	h := start(t, func(s *Server) {
		w.join(s)
		inner := s.handlers
		s.handlers = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			methods += r.Method + " "
			inner.ServeHTTP(rw, r)
		})
	})
	for _, req := range []ipam.CheckRequest{{}, {Repair: true}} {
		report, err := h.client.Check(t.Context(), req)
		must(t, err)
		if diff := cmp.Diff(w.report, report, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Error(diff)
		}
	}
	if methods != "GET POST " {
		t.Errorf("asked was by %s", methods)
	}
}

// limits is a recorder that records the deadlines of a handler.
type limits struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

// Read is the beginning of a body. The client has limited time to send it.
func (l *limits) Read([]byte) (int, error) {
	if !l.read.After(time.Now()) {
		return 0, fmt.Errorf("the body has until %s", l.read)
	}
	return 0, io.EOF
}

func (l *limits) SetReadDeadline(t time.Time) error  { l.read = t; return nil }
func (l *limits) SetWriteDeadline(t time.Time) error { l.write = t; return nil }

// A check takes as long as the engine does. No limit of the server ends it. Its answer has a limit again.
func TestCheckHasTime(t *testing.T) {
	for _, body := range []string{"", "{}"} {
		l := &limits{ResponseRecorder: httptest.NewRecorder(), read: aMoment, write: aMoment}
		w := &watcher{}
		w.during = func(context.Context) {
			if !l.read.IsZero() || !l.write.IsZero() {
				t.Errorf("while it checks the limits are %s and %s", l.read, l.write)
			}
		}
		h := start(t, w.join)
		req := httptest.NewRequest("GET", "/v1/check", http.NoBody)
		if body != "" {
			req = httptest.NewRequest("POST", "/v1/check", io.MultiReader(l, strings.NewReader(body)))
			req.ContentLength = int64(len(body))
			req.Header.Set("Content-Type", api.JSONType)
		}
		h.server.recovered(h.server.mux()).ServeHTTP(l, req.WithContext(as(t.Context(), api.RoleAdmin)))
		if l.Code != http.StatusOK || len(w.asked) != 1 || l.write.IsZero() {
			t.Errorf("%d, %s, the answer has until %s", l.Code, l.Body, l.write)
		}
	}
}

// A check ends when its client leaves, and when the server ends.
func TestCheckIsEnded(t *testing.T) {
	for _, leaves := range []string{"the client", "the server"} {
		t.Run(leaves, func(t *testing.T) {
			inside := make(chan struct{})
			w := &watcher{during: func(ctx context.Context) { close(inside); <-ctx.Done() }, err: context.Canceled}
			h := start(t, w.join)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan error, 1)
			go func() {
				_, err := h.client.Check(ctx, ipam.CheckRequest{Repair: true})
				answered <- err
			}()
			<-inside
			if leaves == "the client" {
				cancel()
			} else {
				began := time.Now()
				must(t, h.stop())
				if took := time.Since(began); took >= drainTimeout {
					t.Errorf("the server waited for %s", took)
				}
			}
			if err := <-answered; err == nil {
				t.Error("it was answered")
			}
			must(t, h.stop()) // which waits for running requests
		})
	}
}
