// Package admin serves the admin API: HTTP under /v1/ on a unix socket or over TLS. Each operation is an entry in the
// table of package api. Answers are JSON of the declared type. Refusals are problems (RFC 9457) with stable codes.
// Outside /v1/ a browser gets an error page instead. access.go decides who may read and who may change. The cost of a
// slow, vanished or hostile client is bounded.
//
// A request passes the connection limit, authentication (access.go), panic recovery and the routes (server.go,
// router.go). It is decoded by the tags of its type (bind.go, parameters.go), and a handler asks the Service. The
// result is JSON or a problem (refuse.go), which the client gets also while it still sends its body (unread.go).
// Changes of the plan are decoded as edits (edits.go), and lists are paged (plan.go, page.go). Package apidoc describes
// the API, and package client is the other end.
package admin

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/apidoc"
	pages "berth/internal/admin/page"
	"berth/internal/admin/relay"
	"berth/internal/admin/trend"
	"berth/internal/drain"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// Limits for clients.
const (
	maxHeader      = 64 << 10
	maxConnections = 256
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 10 * time.Second
	stallTimeout   = 30 * time.Second // for each piece of a stream
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 10 * time.Second
)

// schemas is the part of the API description that does not come from the table and its types.
//
//go:embed openapi.yaml
var schemas []byte

// OpenAPI returns the description of all operations of a Server.
func OpenAPI() ([]byte, error) {
	var s Server
	var rows []api.Spec
	for _, r := range slices.Concat(s.probes(), s.routes()) {
		rows = append(rows, r.Spec)
	}
	return apidoc.Describe(schemas, rows)
}

// Config is what a Server needs. Service, Log and Version are mandatory.
type Config struct {
	Service Service
	Log     *logrus.Entry
	Version api.Version
	// Settings are the settings in force. Unknown lists the unknown variables of the environment.
	Settings []api.Setting
	Unknown  []string

	// Backup writes the state to a new file. BackupShared does so for the shared store and returns its id; nil: no
	// shared store. Fsck checks the file in use. They belong to the stores, which this package does not know.
	Backup       func(ctx context.Context, path string) error
	BackupShared func(ctx context.Context, path string) (id string, err error)
	Fsck         func(ctx context.Context) (api.FileReport, error)
	// Writable returns why the daemon's own store refuses writes; nil: it never does.
	Writable func(ctx context.Context) error
	// Save writes the daemon's state to the path of its state file, which no longer leads to the open file. nil: there
	// is no file.
	Save func(ctx context.Context) (api.SavedState, error)
	// Mend does this host's part in mending a shared store that went back to an earlier state; nil: no shared store.
	Mend func(context.Context, ipam.MendOptions) (ipam.MendReport, error)
	// Cluster returns the state of the shared store as this host knows it; nil: no shared store.
	Cluster func() api.ClusterStatus
	// Ready returns why no addresses are leased yet; nil: they always are.
	Ready func() error
	// Metrics answers GET /metrics; nil: there are none.
	Metrics http.Handler
	// Hooks counts the runs of hooks; nil: no hooks.
	Hooks func() *api.HookCounts

	// Webhooks returns the state of each receiver of events; nil: no webhooks.
	Webhooks func() []api.WebhookState

	// These functions belong to the witness. Check compares the records with the engine. Show passes on a view of an
	// engine, and Listen its events. SeenBy returns the container that holds a lease, or nil. Places returns where
	// Docker networks of a name are in Berth. Witness returns the state of the witness. Each is nil without a witness.
	Check   func(context.Context, ipam.CheckRequest) (ipam.CheckReport, error)
	Report  func() ipam.CheckReport // the result of the last comparison
	Release func(context.Context, ipam.LeaseRelease) (ipam.LeaseInfo, error)
	Show    func(context.Context, ipam.EngineView) error
	Listen  func(host string, by ipam.Onlooker) (hear func(*ipam.EngineNews), end func(), err error)
	SeenBy  func(space string, addr netip.Addr, lease uint64) *ipam.SeenBy
	Places  func(ctx context.Context, name string) ([]ipam.DockerPlace, error)
	Witness func() ipam.WitnessState

	// Found returns findings about this host that come neither from the records nor from the engine; nil: none.
	Found func(context.Context) []ipam.Finding

	// Trend has the usage over time that the page draws; nil: none is recorded.
	Trend *trend.Recorder

	// TempDir is the directory for the copy of a backup. It needs space for the state and must belong to the daemon
	// alone.
	TempDir string

	// Zone is the zone for which names are answered; empty: none. Names returns the state of the name server; nil:
	// none.
	Zone  string
	Names func() *api.NamesState

	// Host is this host's name. NoElastic turns elastic addresses off. Device reports whether the host has a
	// network device; nil: unknown.
	Host      string
	NoElastic bool
	Device    func(name string) bool
	// LAN passes questions to the edge of this host; nil: none.
	LAN *relay.Relay

	// GID is the group whose members may use the socket; negative: none. Members of ReadGID may only read; 0 or
	// negative: none.
	GID, ReadGID int

	// Tokens are the tokens for access over TLS; nil: tokens in memory, which a restart loses.
	Tokens *Tokens
}

// Server answers the admin API.
type Server struct {
	cfg      Config
	log      *logrus.Entry
	ended    chan struct{} // closed when the server ends, which ends streams
	end      func()        // closes it
	backups  chan struct{} // semaphore: one backup at a time
	imports  chan struct{} // semaphore: one import at a time
	views    chan struct{} // semaphore: one large view for the witness at a time
	large    chan struct{} // semaphore: maxLarge large bodies at a time
	edges    edges         // the connected edges
	devices  firsts        // of missing devices
	handlers http.Handler
	docs     *apidoc.Docs // of OpenAPI
	page     *pages.Page

	maxConnections int
	headerTimeout  time.Duration
	whoConnects    func(net.Conn) (name string, root bool) // on the socket
	newsTimeout    time.Duration                           // for each line of an engine's news
	now            func() time.Time                        // for certificates and findings
}

// New returns a Server. Call Serve and ServeTLS at most once each. Both end together.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, log: cfg.Log, ended: make(chan struct{}), backups: make(chan struct{}, 1),
		imports: make(chan struct{}, 1), large: make(chan struct{}, maxLarge),
		views: make(chan struct{}, 1), maxConnections: maxConnections, headerTimeout: headerTimeout,
		whoConnects: userOf, docs: apidoc.New(OpenAPI),
		newsTimeout: stallTimeout, now: time.Now}
	s.edges.since = s.now().UTC()
	s.end = sync.OnceFunc(func() { close(s.ended) })
	if s.cfg.LAN == nil {
		s.cfg.LAN = relay.New()
	}
	if s.cfg.Tokens == nil {
		s.cfg.Tokens = new(Tokens)
	}
	s.page = s.newPage()
	s.handlers = s.unread(s.recovered(s.probed(s.permitted(s.ownSite(s.bounded(s.mux()))))))
	return s
}

// routes binds the rows of the table to their handlers.
func (s *Server) routes() []route {
	return slices.Concat(s.planRoutes(), s.elasticRoutes(), []route{
		bind(api.GetVersion, s.version),
		bind(api.GetStatus, s.status),
		raw(api.GetMetrics, s.metrics),
		raw(api.GetDescription, s.description),
		raw(api.GetDocs, s.docsPage),
		listed(s, api.GetDeploys, Service.Deploys),
		listed(s, api.GetOrphans, Service.Orphans),
		listed(s, api.GetWorkers, Service.Workers),
		bind(api.GetDeployRuns, s.deployRuns),
		listed(s, api.GetHosts, Service.Hosts),
		bind(api.GetHost, s.host),
		listed(s, api.GetSpaces, Service.Spaces),
		bind(api.GetSubnets, s.subnets),
		raw(api.GetLeases, s.leases),
		each(api.GetWho, s.who),
		bind(api.GetFind, s.find),
		raw(api.GetEvents, s.events),
		bind(api.GetNames, s.names),
		each(api.GetExport, s.export),
		raw(api.PostImport, s.importPlan),
		bind(api.GetCheck, s.check),
		seen(s, api.PostCheck, func() bool { return s.cfg.Check != nil }, s.compare),
		seen(s, api.PostRelease, func() bool { return s.cfg.Release != nil }, s.releaseLease),
		seen(s, api.PutWitness, func() bool { return s.cfg.Show != nil }, s.showEngine),
		raw(api.PostNews, s.hearEngine),
		raw(api.PostBackup, s.backup),
		bind(api.PostFsck, s.fsck),
		bind(api.PostSave, s.saveState),
		bind(api.PostMend, s.mend),
		bind(api.GetTokens, s.tokens),
		bind(api.PostTokens, s.createToken),
		bind(api.DeleteToken, s.removeToken),
	})
}

func (s *Server) description(w http.ResponseWriter, r *http.Request, _ api.None) error {
	return s.docs.ServeDescription(w, r)
}

func (s *Server) docsPage(w http.ResponseWriter, r *http.Request, _ api.None) error {
	return s.docs.ServePage(w, r)
}

// Serve answers on a unix socket until ctx ends. Then it ends the streams, finishes other requests and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := s.newHTTP(logrus.DebugLevel)
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return withShare(withPeer(ctx, c), c) }
	limit := newShares(s.maxConnections, s.log)
	limit.who, limit.refuse = s.whoConnects, refusing()
	over := func(l net.Listener) net.Listener { return limit.over(&peerListener{l}) }
	if err := s.run(ctx, server, l, over); err != nil {
		return fmt.Errorf("the admin socket failed: %w", err)
	}
	return nil
}

// newHTTP returns the http.Server of one listener. level is the log level for errors of clients' connections.
func (s *Server) newHTTP(level logrus.Level) *http.Server {
	return &http.Server{
		Handler:           s.handlers,
		ReadHeaderTimeout: s.headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      api.AnswerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          ErrorLog(s.log, level),

		DisableGeneralOptionsHandler: true, // it would answer everybody
	}
}

// run serves on l, with its limit, until ctx ends.
func (s *Server) run(ctx context.Context, server *http.Server, l net.Listener,
	limit func(net.Listener) net.Listener) error {
	stop := context.AfterFunc(ctx, s.end)
	defer stop()
	return drain.Serve(ctx, server, l, drain.Config{Quiet: drain.Quiet, First: drain.Quiet, Longest: drainTimeout, Limit: limit})
}

// recovered limits a handler's panic to its request.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = &answer{ResponseWriter: w}
		w.Header().Set("X-Content-Type-Options", "nosniff") // a browser must not guess another type
		if s.isEnding() {
			w.Header().Set("Connection", "close")
		}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) { // aborts an answer that has begun
				panic(p)
			}
			s.log.WithFields(logrus.Fields{"method": r.Method, "path": pathOf(r)}).
				Errorf("panic: %v\n%s", p, bytes.TrimSpace(debug.Stack()))
			s.refuse(w, r, problem(http.StatusInternalServerError, api.CodeInternal,
				"an error inside Berth ended the request; see the daemon's log"))
		}()
		next.ServeHTTP(w, r)
	})
}

// answer records whether an answer has begun, because then a refusal comes too late.
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

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
