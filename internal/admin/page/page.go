package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/live"
	"berth/internal/admin/trend"
	"berth/internal/background"
	"berth/internal/ipam"
)

// Config is what a Page needs. Only Service is mandatory.
type Config struct {
	Service Records
	Host    string         // this host's name
	Zone    *time.Location // for the times on the page; default: the daemon's own
	Now     func() time.Time

	Writable func(context.Context) error // returns why the daemon's own store refuses writes
	// These are as in the configuration of package admin; nil: there is no shared store, or no witness.
	Cluster func() api.ClusterStatus
	Witness func() ipam.WitnessState
	SeenBy  func(space string, addr netip.Addr, lease uint64) *ipam.SeenBy
	// Findings returns the known findings. It does not query the engine.
	Findings func(context.Context) (ipam.CheckReport, error)

	Trend *trend.Recorder // the use over time; nil: not recorded
	Ended <-chan struct{} // closed when the server ends

	// MayChange reports whether the user may make changes; nil: nobody may. Release ends the lease of a container; nil:
	// there is no witness that knows whether it runs.
	MayChange func(*http.Request) bool
	Release   func(context.Context, ipam.LeaseRelease) (ipam.LeaseInfo, error)
}

// Records is what the views read. It is a service.Service or, if the host shares a store, a cluster.Service.
type Records interface {
	Use(context.Context) ([]ipam.PoolUse, error)
	Totals(context.Context) (ipam.Totals, error)
	Networks(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error)
	Network(ctx context.Context, ref string) (ipam.NetworkInfo, error)
	Layout(context.Context, ipam.ID, ipam.LayoutFilter) (ipam.Layout, error)
	Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error)
	Leases(context.Context, ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error]
	Reservations(context.Context, ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo, error]
	Who(context.Context, ipam.WhoFilter) ([]ipam.Tenure, error)
	Events(context.Context, ipam.EventFilter) ([]ipam.Event, error)
	Hosts(context.Context) ([]ipam.HostInfo, error)
	Find(context.Context, ipam.FindFilter) iter.Seq2[ipam.Found, error]
	Elastic(context.Context, netip.Addr) (ipam.ElasticInfo, error)
	Elastics(ctx context.Context, account string, after netip.Addr, limit int) ([]ipam.ElasticInfo, error)
	ElasticRanges(context.Context) ([]ipam.ElasticRangeInfo, error)
	NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error)
	Partial() error
	Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
	live.Records
}

// View is one path of the page.
type View struct {
	Method, Path string // in the syntax of http.ServeMux
	// Handle writes the answer. If an object does not exist or the request is invalid, it writes nothing and returns an
	// error of package ipam.
	Handle func(http.ResponseWriter, *http.Request) error
	Reads  bool // the view changes nothing
}

//go:embed templates/*.html style.css icon.svg
var files embed.FS

// Page serves the views.
type Page struct {
	cfg       Config
	templates *template.Template
	fixed     map[string][]byte // the constant files by name
	version   string            // the version of these files
	key       []byte            // the key for seals
	hub       *live.Hub         // notifies browsers that their view is stale
	packers   background.Packers
}

// New returns a Page.
func New(cfg Config) *Page {
	if cfg.Zone == nil {
		cfg.Zone = time.Local
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Page{cfg: cfg, templates: template.Must(template.ParseFS(files, "templates/*.html")),
		fixed: map[string][]byte{}, hub: live.New(cfg.Service), key: newKey()}
	sum := sha256.New()
	for _, name := range []string{"style.css", "icon.svg"} {
		text, err := files.ReadFile(name)
		if err != nil {
			panic("page: " + err.Error()) // the file is part of the program
		}
		p.fixed[name] = text
		_, _ = sum.Write(text)
	}
	_, _ = sum.Write(live.Script)
	p.version = hex.EncodeToString(sum.Sum(nil)[:6])
	return p
}

// Views lists the paths of the page.
func (p *Page) Views() []View {
	return append(slices.Concat(p.freshViews(), p.changeViews()), []View{
		{http.MethodGet, "/{$}", p.shows(p.home), true},
		{http.MethodGet, "/network/{network}", p.shows(p.network), true},
		{http.MethodGet, "/subnet/{subnet}", p.shows(p.subnet), true},
		{http.MethodGet, "/address/{address}", p.shows(p.address), true},
		{http.MethodGet, "/find", p.shows(p.find), true},
		{http.MethodGet, "/findings", p.shows(p.findings), true},
		{http.MethodGet, "/hosts", p.shows(p.hosts), true},
		{http.MethodGet, "/elastic", p.shows(p.elastic), true},
		{http.MethodGet, "/events", p.shows(p.events), true},
		{http.MethodGet, "/style.css", p.fixedAs("style.css", "text/css; charset=utf-8"), true},
		{http.MethodGet, "/icon.svg", p.fixedAs("icon.svg", "image/svg+xml"), true},
	}...)
}

// shows returns the handler of a view that is made of blocks.
func (p *Page) shows(view func(*http.Request) (*shown, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		form, err := formOf(r)
		if err != nil {
			return err
		}
		begun := time.Now()
		mark := p.markNow(r) // before anything is read
		s, err := view(r)
		if err != nil {
			return err
		}
		if s.To != "" {
			protect(w.Header())
			w.Header().Set("Location", s.To)
			w.WriteHeader(http.StatusSeeOther)
			return nil
		}
		s.mark = mark
		err = p.answer(w, r, form, s)
		p.hub.Drew(time.Since(begun))
		return err
	}
}

// fixedAs serves a file of the program. Its link has the version, so browsers may cache it.
func (p *Page) fixedAs(name, contentType string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		protect(w.Header())
		w.Header().Set("Cache-Control", "private, max-age=86400")
		w.Header().Set("Content-Type", contentType)
		return p.send(w, r, http.StatusOK, bytes.NewBuffer(p.fixed[name]))
	}
}
