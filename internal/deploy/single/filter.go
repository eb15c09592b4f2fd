package single

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Replica is the container that is to be made.
type Replica struct {
	Service string
	Number  int
	Aside   string     // comes before the name that Compose gives it, with a _; empty: that is its name
	On      []Endpoint // what is set of its networks; on others it is what Compose says
	Hash    string     // is kept in docker.LabelMade; empty: nothing is
	Volumes []Volume   // of the container before it, which it takes over where nothing else is said of their paths
}

// Volume is one without a name of the files', as it is in the container before.
type Volume struct{ Name, Target string }

// Endpoint is what a container is to have on a Docker network.
type Endpoint struct {
	Network   string       // its name
	Addresses []netip.Addr // one of a family at most
}

// Filter is a handler that stands before an engine while one container is made.
type Filter struct {
	project string
	replica Replica
	engine  *httputil.ReverseProxy
	ask     *http.Client
	created func(ctx context.Context, id string) error // looks at it before it starts

	declared map[string]Declared // volumes that are to be seen as the files describe them

	mu      sync.Mutex
	id      string // of what was made
	made    int
	started bool
	refused []string
}

// newFilter returns a Filter before the engine that dial reaches.
func newFilter(project string, r Replica, dial func(ctx context.Context, network, address string) (net.Conn, error),
	created func(context.Context, string) error) *Filter {
	transport := &http.Transport{DialContext: dial, DisableCompression: true}
	f := &Filter{project: project, replica: r, created: created, ask: &http.Client{Transport: transport}}
	f.engine = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: "engine"})
			p.Out.Host = p.In.Host
		},
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: func(resp *http.Response) error { return errors.Join(f.answer(resp), f.asDeclared(resp)) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway) // Compose says it, or has ended
		},
	}
	return f
}

// close ends the connections to the engine that wait for more.
func (f *Filter) close() { f.ask.CloseIdleConnections() }

// version is the part of a path that says of which version of the API it is.
var version = regexp.MustCompile(`^/v[0-9.]+/`)

// route is a path without its version, as words.
func route(path string) []string {
	path = version.ReplaceAllString(path, "/")
	return strings.Split(strings.Trim(path, "/"), "/")
}

// is tells whether a path is of a form, in which * is any one word.
func is(words []string, form ...string) bool {
	if len(words) != len(form) {
		return false
	}
	for i, word := range form {
		if word != "*" && word != words[i] {
			return false
		}
	}
	return true
}

// ServeHTTP passes on what makes the one container, and what reads.
func (f *Filter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := route(r.URL.Path)
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		f.engine.ServeHTTP(w, r)
	case r.Method != http.MethodPost:
		f.refuse(w, r)
	case is(words, "containers", "create"):
		f.create(w, r)
	case is(words, "containers", "*", "start"):
		f.start(w, r, words[1])
	case is(words, "networks", "*", "connect"), is(words, "networks", "*", "disconnect"):
		f.connect(w, r, words[1], words[2] == "connect")
	case is(words, "networks", "create"), is(words, "volumes", "create"), is(words, "session"):
		f.engine.ServeHTTP(w, r)
	default:
		f.refuse(w, r)
	}
}

// refuse answers what would change something else.
func (f *Filter) refuse(w http.ResponseWriter, r *http.Request) {
	f.refuseWith(w, fmt.Sprintf("%s %s is not passed on: one container is made here, %s of %s", r.Method, r.URL.Path,
		f.replica.title(), f.project))
}

func (f *Filter) refuseWith(w http.ResponseWriter, why string) {
	f.mu.Lock()
	f.refused = append(f.refused, why)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": why})
}

func (r *Replica) title() string { return fmt.Sprintf("%s/%d", r.Service, r.Number) }

// start lets the new container start once it was looked at. Of others it says that they run already: which of them are
// to run is not decided here.
func (f *Filter) start(w http.ResponseWriter, r *http.Request, ref string) {
	id, err := f.idOf(r.Context(), ref)
	f.mu.Lock()
	ours := err == nil && f.id != "" && id == f.id
	f.mu.Unlock()
	if err != nil {
		f.refuseWith(w, err.Error())
		return
	}
	if !ours {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if err := f.created(r.Context(), id); err != nil {
		f.refuseWith(w, err.Error())
		return
	}
	f.mu.Lock()
	f.started = true
	f.mu.Unlock()
	f.engine.ServeHTTP(w, r)
}

// idOf is the id of a container that is named by a name, or by the beginning of its id.
func (f *Filter) idOf(ctx context.Context, ref string) (string, error) {
	var shown struct{ ID string }
	if err := f.get(ctx, "/containers/"+url.PathEscape(ref)+"/json", &shown); err != nil {
		return "", err
	}
	return shown.ID, nil
}

// get asks the engine itself.
func (f *Filter) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine"+path, nil)
	if err != nil {
		return err
	}
	resp, err := f.ask.Do(req)
	if err != nil {
		return fmt.Errorf("the engine does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the engine answers GET %s with %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// result is what came of it.
func (f *Filter) result() (id string, started bool, refused []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id, f.started, slices.Clone(f.refused)
}
