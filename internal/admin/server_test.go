package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
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

func TestRefusals(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `
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
		# a body that nobody needs
		POST /v1/fsck x -> 200
	`)
}

// TestLongValuesRefused: a refusal does not repeat a caller's long value in full.
func TestLongValuesRefused(t *testing.T) {
	h := start(t, nil)
	long := strings.Repeat("x", 20_000)
	for _, c := range steps(`
		GET /v1/$LONG -> 404
		GET /v1/subnets?space=$LONG -> 404
		GET /v1/leases?subnet=$LONG -> 400
		GET /v1/leases?$LONG=1 -> 400
		GET /v1/events?after=$LONG -> 400
		edit {"op": "$LONG"} -> 400
		edit {"op": "network.create", "$LONG": 1} -> 400
		edit {"op": "network.create", "name": "$LONG"} -> 400
		edit {"op": "network.create", "name": "$MANY"} -> 400
		DELETE /v1/tokens/$LONG -> 404
	`, "$LONG", long, "$MANY", strings.Repeat("x ", 10_000)) {
		if p := h.play(t, c); len(p.body) > 2500 {
			t.Errorf("%.2500s", p.body)
		}
	}
}

// Each error of the inner packages has its code, however it is wrapped. An unknown error is a defect.
func TestProblemOf(t *testing.T) {
	for err, want := range map[error]string{
		ipam.ErrInvalid: "400 invalid", ipam.ErrNotFound: "404 not_found", ipam.ErrInUse: "409 in_use",
		ipam.ErrExhausted: "409 exhausted", ipam.ErrOverlap: "409 overlap", ipam.ErrDamaged: "500 damaged",
		store.ErrCorrupt: "500 damaged", store.ErrNoSpace: "507 no_space", store.ErrUnknown: "503 unknown_outcome",
		store.ErrClosed: "503 unavailable", context.DeadlineExceeded: "503 unavailable",
		errors.New("anything"): "500 internal", invalid("no"): "400 invalid",
	} {
		p := problemOf(fmt.Errorf("around: %w", err))
		if got := fmt.Sprint(p.Status, " ", p.Code); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// A store that accepts no more writes is not ready, though the daemon still reads and serves.
func TestHealth(t *testing.T) {
	h, faulty := startFaulty(t)
	h.plays(t, `
		GET /healthz -> 200 ok
		GET /readyz -> 200 ready
	`)
	faulty.Next(storetest.Fault{After: errors.New("the sync failed")})
	if _, err := h.server.cfg.Service.(*service.Service).RequestPool(t.Context(),
		ipam.PoolRequest{Space: "local"}); !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("the write succeeded: %v", err)
	}
	h.plays(t, `
		GET /healthz -> 200 ok
		GET /readyz
			-> 503 not ready: a write failed half-way, and the store refuses writes until the daemon restarts
		GET /v1/subnets -> 200
	`)
}

func TestPanicIsAnswered(t *testing.T) {
	h := start(t, func(s *Server) {
		s.cfg.Fsck = func(context.Context) (api.FileReport, error) { panic("on purpose") }
	})
	h.plays(t, `
		POST /v1/fsck -> 500 "code":"internal" without on purpose
		GET /v1/version -> 200
	`)
}

// A panic after the beginning of an answer must not look like its end.
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

// Garbage, a huge header and silent clients are refused or cut off. Other clients are not affected.
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
		fmt.Fprint(conn, garbage) // the server may cut it off in the middle
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

func (h *harness) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", h.socket)
	must(t, err)
	return conn
}

// The kernel names the process at the other end: here this process itself.
func TestPeerOfConnection(t *testing.T) {
	got := make(chan *peer, 1)
	h := start(t, func(s *Server) {
		s.handlers = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- peerOf(r.Context()) })
	})
	h.plays(t, `GET / -> 200`)
	p := <-got
	groups, err := os.Getgroups()
	must(t, errors.Join(err, p.err))
	if p.uid != os.Geteuid() || p.gid != os.Getegid() || p.pid != os.Getpid() || !slices.Equal(p.groups, groups) {
		t.Errorf("the peer is %+v, and has groups %v", p, groups)
	}
}
