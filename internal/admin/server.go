// Package admin serves the admin API: HTTP under /v1/ on a unix socket or over TLS. Each operation is an entry in the
// table of package api. Answers are JSON of the declared type. Refusals are problems (RFC 9457) with stable codes.
// Outside /v1/ a browser gets an error page instead. access.go decides who may read and who may change. The cost of a
// slow, vanished or hostile client is bounded.
//
// A request passes the connection limit, authentication (access.go), panic recovery and the routes (server.go,
// router.go). It is decoded by the tags of its type (bind.go, parameters.go), and a handler asks the Service. The
// result is JSON or a problem (refuse.go). Changes of the plan are decoded as edits (edits.go), and lists are paged
// (plan.go, page.go). Package apidoc describes the API, and package client is the other end.
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
	"berth/internal/ipam"
	"berth/internal/places"

	"github.com/sirupsen/logrus"
)

// Bounds on what a client may cost.
const (
	maxHeader      = 64 << 10
	maxConnections = 256
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 10 * time.Second
	stallTimeout   = 30 * time.Second // for each piece of a stream
	idleTimeout    = 2 * time.Minute
	drainTimeout   = 10 * time.Second
)

// schemas is what the description says besides the rows of the table and their types.
//
//go:embed openapi.yaml
var schemas []byte

// OpenAPI is the description of everything that a Server answers.
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
	// Settings are those in force, Unknown the variables of the environment that are none.
	Settings []api.Setting
	Unknown  []string

	// Backup writes the state to a new file, BackupShared that of the store which several hosts share (nil where there
	// is none) with the id that it answers, Fsck checks the file that is in use: they belong to the stores, which this
	// package does not know.
	Backup       func(ctx context.Context, path string) error
	BackupShared func(ctx context.Context, path string) (id string, err error)
	Fsck         func(ctx context.Context) (api.FileReport, error)
	// Writable tells why the daemon's own store takes no writes at present; nil: it always does.
	Writable func(ctx context.Context) error
	// Save writes all that the daemon holds to the place of its state's file, which does not lead to it any more; nil:
	// it has none.
	Save func(ctx context.Context) (api.SavedState, error)
	// Mend does this host's part in mending a shared store that was put back to an earlier state; nil where it shares
	// none.
	Mend func(context.Context, ipam.MendOptions) (ipam.MendReport, error)
	// Cluster tells how it stands with the store that this host shares with others; nil where it shares none.
	Cluster func() api.ClusterStatus
	// Ready tells why no addresses are given yet; nil where they always are.
	Ready func() error
	// Metrics answers GET /metrics; nil: there are none.
	Metrics http.Handler
	// Hooks tells what became of the hooks; nil where there are none.
	Hooks func() *api.HookCounts

	// Webhooks tells how it stands with each receiver of events; nil where there is none.
	Webhooks func() []api.WebhookState

	// The witness, who sees what runs: Check compares the records with it, Show tells him of an engine, Listen of
	// what happens there, SeenBy says which container holds a lease, nil where nobody knows, Places where the Docker
	// networks of a name are among Berth's, and Witness how it stands with him. Each is nil where there is none.
	Check   func(context.Context, ipam.CheckRequest) (ipam.CheckReport, error)
	Report  func() ipam.CheckReport // what the last comparison came to
	Release func(context.Context, ipam.LeaseRelease) (ipam.LeaseInfo, error)
	Show    func(context.Context, ipam.EngineView) error
	Listen  func(host string, by ipam.Onlooker) (hear func(*ipam.EngineNews), end func(), err error)
	SeenBy  func(space string, addr netip.Addr, lease uint64) *ipam.SeenBy
	Places  func(ctx context.Context, name string) ([]ipam.DockerPlace, error)
	Witness func() ipam.WitnessState

	// Found is what is wrong on this host that neither the records nor the engine tell; nil: nobody looks.
	Found func(context.Context) []ipam.Finding

	// Trend is what the page draws of how much was used; nil: nobody remembers.
	Trend *trend.Book

	// TempDir is where the copy of a backup lies while it is sent: a directory with room for the state, nobody else's.
	TempDir string

	// Zone is that of which names are answered; empty: of none. Names tells how it stands with them; nil: none are.
	Zone  string
	Names func() *api.NamesState

	// Host is this host's name; NoElastic tells that elastic addresses are turned off (CS-11). Device tells whether the
	// host has a network device; nil: nobody knows.
	Host      string
	NoElastic bool
	Device    func(name string) bool
	// LAN brings questions to the edge of this host; nil: nobody asks any.
	LAN *relay.Relay

	// GID is the group whose members may use the socket; negative: none. Those of ReadGID may look and change nothing;
	// 0 or negative: none.
	GID, ReadGID int

	// Tokens are those with which one may ask over TLS; nil: none that a restart keeps.
	Tokens *Tokens
}

// Server answers the admin API.
type Server struct {
	cfg      Config
	log      *logrus.Entry
	ended    chan struct{} // closed when the server is to end: streams end then
	end      func()        // closes it
	backups  chan struct{} // holds the one backup that may be taken at a time
	imports  chan struct{} // holds the one import that may be worked on at a time
	views    chan struct{} // holds the one large body that the witness is given at a time
	large    chan struct{} // holds those whose turn it is
	edges    edges         // that are told what they are to map
	devices  firsts        // that are missing
	handlers http.Handler
	docs     *apidoc.Docs // of OpenAPI
	page     *pages.Page

	maxConnections int
	headerTimeout  time.Duration
	whoConnects    func(net.Conn) (name string, root bool) // on the socket
	newsTimeout    time.Duration                           // for each line of what an engine says
	now            func() time.Time                        // for certificates and findings
}

// New returns a Server. It serves once on each of Serve and ServeTLS, until the same end.
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
	s.handlers = s.recovered(s.probed(s.permitted(s.ownSite(s.bounded(s.mux())))))
	return s
}

// routes binds the rows of the table to what answers them.
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
		letGo(raw(api.PostNews, s.hearEngine)),
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

// Serve answers on a unix socket until ctx ends; then it ends the streams, finishes what else is under way and returns
// nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := s.newHTTP(logrus.DebugLevel)
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return withShare(withPeer(ctx, c), c) }
	limit := newShares(s.maxConnections, s.log)
	limit.who, limit.refuse = s.whoConnects, refusing()
	if err := s.run(ctx, server, limit.over(&peerListener{l})); err != nil {
		return fmt.Errorf("the admin socket: %w", err)
	}
	return nil
}

// newHTTP returns what serves on one listener. level is that at which it logs what clients do to their connections.
func (s *Server) newHTTP(level logrus.Level) *http.Server {
	return &http.Server{
		Handler:           s.handlers,
		ReadHeaderTimeout: s.headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      api.AnswerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          ErrorLog(s.log, level),

		DisableGeneralOptionsHandler: true, // it would answer to anybody
	}
}

// run serves on l until ctx ends.
func (s *Server) run(ctx context.Context, server *http.Server, l net.Listener) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.end()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		err := server.Shutdown(drain)
		if err != nil {
			err = server.Close() // what is left is a client that does not read
		}
		stopped <- err
	})
	err := server.Serve(l)
	if stop() {
		return err
	}
	return <-stopped
}

// recovered keeps a panic of a handler to its request.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer places.Answering(r.Context())()
		w = &answer{ResponseWriter: w}
		w.Header().Set("X-Content-Type-Options", "nosniff") // a browser takes it for nothing but what it says it is
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) { // an answer that has begun is cut off
				panic(p)
			}
			s.log.WithFields(logrus.Fields{"method": r.Method, "path": pathOf(r)}).
				Errorf("panic: %v\n%s", p, bytes.TrimSpace(debug.Stack()))
			s.refuse(w, r, &api.Problem{Status: http.StatusInternalServerError, Code: api.CodeInternal,
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
