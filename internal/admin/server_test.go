package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// ask sends one request as it is given.
func (h *house) ask(t *testing.T, method, target, body string) (http.Header, *api.Problem) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://berth"+target, strings.NewReader(body))
	must(t, err)
	res, err := h.http.Do(req)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return res.Header, nil
	}
	var p *api.Problem
	if err := refusal(res); !errors.As(err, &p) {
		t.Fatalf("%s %s: the refusal is no problem: %v", method, target, err)
	}
	if p.Status != res.StatusCode {
		t.Errorf("the problem says %d, the answer %d", p.Status, res.StatusCode)
	}
	return res.Header, p
}

func TestRefusals(t *testing.T) {
	h := start(t, nil)
	for _, c := range steps(`
		GET /v1 -> 404 no_such_path
		GET /v1/nothing -> 404 no_such_path
		GET /v1/leases/ -> 404 no_such_path
		GET //v1/leases -> 404 no_such_path
		GET /v1/../v1/leases -> 404 no_such_path
		POST /v1/leases -> 405 no_such_method
		DELETE /v1/spaces -> 405 no_such_method
		GET /v1/backup -> 405 no_such_method
		BREW /v1/fsck -> 405 no_such_method
		PUT /v1/check -> 405 no_such_method
		GET /v1/witness -> 405 no_such_method
		POST /v1/who -> 405 no_such_method
		GET /v1/owners -> 404 no_such_path
		GET /v1/owners/web -> 404 no_such_path
		# its slash is to be %2F
		GET /v1/networks/net1/env/shop/web -> 404 no_such_path
		# what changes the plan is an edit
		POST /v1/networks -> 405 no_such_method
		DELETE /v1/networks/net1 -> 405 no_such_method
		PATCH /v1/networks/net1/pools -> 405 no_such_method
		DELETE /v1/hosts/beta -> 405 no_such_method
		# which is in the body
		POST /v1/edits?dry_run=true -> 400 invalid
		GET /v1/spaces?space=x -> 400 invalid
		GET /v1/subnets?spaec=local -> 400 invalid
		GET /v1/subnets?space=local&space=global -> 400 invalid
		GET /v1/subnets?space=%zz -> 400 invalid
		GET /v1/leases?subnet=10.1.0.0 -> 400 invalid
		GET /v1/leases?remembered=yes -> 400 invalid
		GET /v1/leases?brief=1 -> 400 invalid
		GET /v1/events?last=10001 -> 400 invalid
		GET /v1/events?last=-1 -> 400 invalid
		GET /v1/events?after=5 -> 400 invalid
		GET /v1/events?since=yesterday -> 400 invalid
		GET /v1/events?follow=1 -> 400 invalid
		POST /v1/fsck?deep=true -> 400 invalid
		POST /v1/backup?store=theirs -> 400 invalid
		POST /v1/backup?store=shared -> 409 no_cluster
		POST /v1/backup?to=/tmp/x -> 400 invalid
	`) {
		header, p := h.ask(t, c.method, c.target, "")
		if p == nil || p.Code != c.has || p.Status != c.status || p.Title == "" || p.Detail == "" {
			t.Errorf("%+v: problem %+v", c, p)
		}
		if c.status == http.StatusMethodNotAllowed && header.Get("Allow") == "" {
			t.Errorf("%+v: the answer does not say which methods there are", c)
		}
	}
}

// TestLongValuesRefused: what a caller sends is not repeated at full length.
func TestLongValuesRefused(t *testing.T) {
	h := start(t, nil)
	long := strings.Repeat("x", 20_000)
	for _, c := range [][3]string{{"GET", "/v1/" + long, ""}, {"GET", "/v1/subnets?space=" + long, ""},
		{"GET", "/v1/leases?subnet=" + long, ""}, {"GET", "/v1/leases?" + long + "=1", ""},
		{"GET", "/v1/events?after=" + long, ""}, {"POST", "/v1/edits", `{"op":"` + long + `"}`},
		{"POST", "/v1/edits", `{"op":"network.create","` + long + `":1}`},
		{"POST", "/v1/edits", `{"op":"network.create","name":"` + long + `"}`},
		{"POST", "/v1/edits", `{"op":"network.create","name":"` + strings.Repeat("x ", 10_000) + `"}`},
		{"DELETE", "/v1/tokens/" + long, ""}} {
		_, p := h.ask(t, c[0], c[1], c[2])
		if p == nil || len(p.Detail) > 2000 {
			t.Errorf("%.80s %.80s: %.2500s", c[1], c[2], fmt.Sprint(p))
		}
	}
}

// Each error of the rooms inside has its code, whatever is wrapped around it; an unknown one is a defect.
func TestProblemOf(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   string
		status int
	}{
		{ipam.ErrInvalid, api.CodeInvalid, 400},
		{ipam.ErrNotFound, api.CodeNotFound, 404},
		{ipam.ErrInUse, api.CodeInUse, 409},
		{ipam.ErrExhausted, api.CodeExhausted, 409},
		{ipam.ErrOverlap, api.CodeOverlap, 409},
		{ipam.ErrDamaged, api.CodeDamaged, 500},
		{store.ErrCorrupt, api.CodeDamaged, 500},
		{store.ErrNoSpace, api.CodeNoSpace, 507},
		{store.ErrUnknown, api.CodeUnknownOutcome, 503},
		{store.ErrClosed, api.CodeUnavailable, 503},
		{context.DeadlineExceeded, api.CodeUnavailable, 503},
		{errors.New("anything"), api.CodeInternal, 500},
		{invalid("no"), api.CodeInvalid, 400},
	} {
		p := problemOf(fmt.Errorf("around: %w", c.err))
		if p.Code != c.code || p.Status != c.status {
			t.Errorf("%v: %d %s, want %d %s", c.err, p.Status, p.Code, c.status, c.code)
		}
	}
}

// A store that takes no writes any more is not ready, though the daemon still reads, and serves.
func TestHealth(t *testing.T) {
	var faulty *storetest.Faulty
	h := start(t, func(s *Server) {
		model := storetest.NewModel()
		faulty = storetest.NewFaulty(model)
		service, err := service.Open(t.Context(), service.Config{Store: faulty, Host: "alpha"})
		must(t, err)
		s.cfg.Service = service
		s.cfg.Writable = func(ctx context.Context) error {
			return faulty.Update(ctx,
				func(store.Tx) error { return nil })
		}
	})
	probe := func(path string, want int, line string) {
		t.Helper()
		res, err := h.http.Get("http://berth" + path)
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		if res.StatusCode != want || string(body) != line+"\n" {
			t.Errorf("%s: %d %q, want %d %q", path, res.StatusCode, body, want, line)
		}
	}
	probe("/healthz", http.StatusOK, "ok")
	probe("/readyz", http.StatusOK, "ready")
	faulty.Next(storetest.Fault{After: errors.New("the sync failed")})
	if _, err := h.server.cfg.Service.(*service.Service).RequestPool(t.Context(),
		ipam.PoolRequest{Space: "local"}); !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("the write succeeded: %v", err)
	}
	probe("/healthz", http.StatusOK, "ok")
	probe("/readyz", http.StatusServiceUnavailable,
		"not ready: a write failed half-way, and the store refuses writes until the daemon is started again; `berth "+
			"status` shows more")
	if _, err := h.client.Subnets(t.Context(), ""); err != nil {
		t.Errorf("it does not read any more: %v", err)
	}
}

func TestPanicIsAnswered(t *testing.T) {
	h := start(t, func(s *Server) {
		s.cfg.Fsck = func(context.Context) (api.FileReport, error) { panic("on purpose") }
	})
	_, err := h.client.Fsck(t.Context())
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeInternal || strings.Contains(p.Detail, "on purpose") {
		t.Errorf("the answer to a panic: %v", err)
	}
	if _, err := h.client.Version(t.Context()); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

// A panic behind the beginning of an answer must not look like its end.
func TestLatePanicCutsTheAnswer(t *testing.T) {
	h := start(t, func(s *Server) {
		s.handlers = s.recovered(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			begin(w, "application/json")
			fmt.Fprint(w, `{"spaces":[`)
			_ = http.NewResponseController(w).Flush()
			panic("on purpose")
		}))
	})
	if all, err := h.client.Spaces(t.Context()); err == nil {
		t.Errorf("half an answer was taken for a whole one: %v", all)
	}
}

// Garbage, a huge header, and clients that say nothing are refused or cut off, and harm nobody else.
func TestHostileClients(t *testing.T) {
	const most = 8
	h := start(t, func(s *Server) { s.maxConnections, s.headerTimeout = most, 100*time.Millisecond })
	for _, garbage := range []string{
		"", "\x16\x03\x01\x02\x00\x01\x00", "GET\r\n\r\n", "GET /v1/spaces HTTP/1.1\r\n\r\n",
		"GET /v1/spaces HTTP/9.9\r\nHost: a\r\n\r\n", "GET /" + strings.Repeat("x", 1<<20) +
			" HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /v1/fsck HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
	} {
		conn := h.dial(t)
		fmt.Fprint(conn, garbage) // it may be cut off in the middle
		_ = conn.(*net.UnixConn).CloseWrite()
		answer, _ := io.ReadAll(conn)
		if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") &&
			!strings.HasPrefix(string(answer), "HTTP/1.1 505") {
			t.Errorf("%.40q was answered with %.60q", garbage, answer)
		}
		conn.Close()
	}
	var silent []net.Conn
	for range 4 * most {
		silent = append(silent, h.dial(t))
	}
	if _, err := h.client.Version(t.Context()); err != nil {
		t.Errorf("beside %d silent clients: %v", len(silent), err)
	}
	for _, conn := range silent {
		conn.Close()
	}
}

func (h *house) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", h.socket)
	must(t, err)
	return conn
}

// TestBodyBound: no operation reads a body, and a body without end is cut off.
func TestBodyBound(t *testing.T) {
	h := start(t, nil)
	s := h.server
	read := make(chan error, 1)
	wrapped := http.MaxBytesHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	}), api.MaxBody)
	s.recovered(wrapped).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest("POST", "/v1/fsck", strings.NewReader(strings.Repeat("x", api.MaxBody+1))))
	var tooLarge *http.MaxBytesError
	if err := <-read; !errors.As(err, &tooLarge) {
		t.Errorf("reading more than the bound: %v", err)
	}
	if _, p := h.ask(t, "POST", "/v1/fsck", strings.Repeat("x", 1<<10)); p != nil {
		t.Errorf("a body that nobody needs: %v", p)
	}
}

// The kernel's word on who is at the other end: here it is this process itself.
func TestPeerOfConnection(t *testing.T) {
	got := make(chan *peer, 1)
	h := start(t, func(s *Server) {
		s.handlers = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- peerOf(r.Context()) })
	})
	if _, p := h.ask(t, "GET", "/", ""); p != nil {
		t.Fatal(p)
	}
	p := <-got
	if p.err != nil {
		t.Fatal(p.err)
	}
	uid, gid, pid, groups := own(t)
	if p.uid != uid || p.gid != gid || p.pid != pid || !slices.Equal(p.groups, groups) {
		t.Errorf("the peer is %+v, this process is uid %d, gid %d, pid %d, groups %v", p, uid, gid, pid, groups)
	}
}
