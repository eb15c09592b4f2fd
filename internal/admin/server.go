// Package admin is the way into a running Berth for people and programs: HTTP under /v1/ on a unix socket, described by
// openapi.yaml. It promises that every answer is JSON of the shape written there, that every refusal is a problem
// (RFC 9457) with a code that does not change, that nobody is served but root, the daemon's own user and the
// members of one group, and that a client which is slow, gone or hostile costs a bounded amount and harms no other.
//
// A request passes the connection cap and the look at who asks (peer.go), the recovery and the route table (this file), its
// handler (handlers.go), which asks ipam.Service, and goes back as JSON or as a problem (problem.go). Client is the other
// end of it, for the command line (client.go).
package admin

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	"golang.org/x/net/netutil"
)

// Bounds on what a client may cost.
const (
	maxBody        = 1 << 20
	maxHeader      = 64 << 10
	maxConnections = 256
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 10 * time.Second
	answerTimeout  = time.Minute      // for all answers but the streams
	stallTimeout   = 30 * time.Second // for each piece of a stream
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 10 * time.Second
)

// OpenAPI is the description of everything that a Server answers.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Config is what a Server needs. Service, Log and Version are mandatory.
type Config struct {
	Service *ipam.Service
	Log     *logrus.Entry
	Version Version

	// Backup writes the state to a new file, Fsck checks the file that is in use: they belong to the store, which this
	// package does not know.
	Backup func(ctx context.Context, path string) error
	Fsck   func(ctx context.Context) (FileReport, error)
	// TempDir is where the copy of a backup lies while it is sent: a directory with room for the state, nobody else's.
	TempDir string

	// GID is the group whose members may use the socket; negative: none.
	GID int
}

// Server answers the admin API.
type Server struct {
	cfg      Config
	log      *logrus.Entry
	ended    chan struct{} // closed when Serve is to end: streams end then
	backups  chan struct{} // holds the one backup that may be taken at a time
	handlers http.Handler

	maxConnections int
	headerTimeout  time.Duration
}

// New returns a Server. It serves once.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, log: cfg.Log, ended: make(chan struct{}), backups: make(chan struct{}, 1),
		maxConnections: maxConnections, headerTimeout: headerTimeout}
	s.handlers = s.recovered(s.permitted(http.MaxBytesHandler(s.mux(), maxBody)))
	return s
}

// route is one operation. Streams set their own deadlines.
type route struct {
	method, path string
	handle       func(http.ResponseWriter, *http.Request) error
}

// routes lists the operations. openapi.yaml describes exactly these; a test holds the two together.
func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/healthz", s.health},
		{http.MethodGet, "/v1/version", s.version},
		{http.MethodGet, "/v1/spaces", s.spaces},
		{http.MethodGet, "/v1/subnets", s.subnets},
		{http.MethodGet, "/v1/leases", s.leases},
		{http.MethodGet, "/v1/events", s.events},
		{http.MethodPost, "/v1/backup", s.backup},
		{http.MethodPost, "/v1/fsck", s.fsck},
	}
}

// mux answers what is no path, and what is no method of a path, as the problems that they are.
func (s *Server) mux() http.Handler {
	byPath := map[string]map[string]route{}
	for _, r := range s.routes() {
		if byPath[r.path] == nil {
			byPath[r.path] = map[string]route{}
		}
		byPath[r.path][r.method] = r
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods, known := byPath[r.URL.Path]
		if !known {
			s.refuse(w, r, noSuchPath(r.URL.Path))
			return
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route, ok := methods[method]
		if !ok {
			allow := allowed(methods)
			w.Header().Set("Allow", allow)
			s.refuse(w, r, noSuchMethod(r.Method, r.URL.Path, allow))
			return
		}
		if err := route.handle(w, r); err != nil {
			s.refuse(w, r, problemOf(err))
		}
	})
}

// allowed lists the methods of a path, which has one.
func allowed(methods map[string]route) string {
	var all []string
	for method := range methods {
		all = append(all, method)
		if method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	return strings.Join(all, ", ")
}

// Serve answers on l until ctx ends; then it ends the streams, finishes what else is under way and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handlers,
		ReadHeaderTimeout: s.headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withPeer,
	}
	logged := s.log.WriterLevel(logrus.DebugLevel)
	defer logged.Close()
	server.ErrorLog = newErrorLog(logged)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		close(s.ended)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		err := server.Shutdown(drain)
		if err != nil {
			err = server.Close() // what is left is a client that does not read
		}
		stopped <- err
	})
	err := server.Serve(netutil.LimitListener(&peerListener{l}, s.maxConnections))
	if stop() {
		return fmt.Errorf("the admin socket: %w", err)
	}
	return <-stopped
}

// recovered keeps a panic of a handler to its request.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = &answer{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) { // an answer that has begun is cut off
				panic(p)
			}
			s.log.WithFields(logrus.Fields{"method": r.Method, "path": r.URL.Path}).
				Errorf("panic: %v\n%s", p, bytes.TrimSpace(debug.Stack()))
			s.refuse(w, r, &Problem{Status: http.StatusInternalServerError, Code: CodeInternal,
				Detail: "the request failed inside Berth; its log says where"})
		}()
		next.ServeHTTP(w, r)
	})
}

// answer notes whether an answer has begun: a refusal comes too late then.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// permitted serves only those who may use the socket. The mode of its file says the same; this holds where somebody has
// changed that, or has made the socket for us.
func (s *Server) permitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := peerOf(r.Context()).may(s.cfg.GID); err != nil {
			s.log.WithField("peer", r.RemoteAddr).Warn("refused a stranger on the admin socket")
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
