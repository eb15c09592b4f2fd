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

// Replica is the container to create.
type Replica struct {
	Service    string
	Number     int
	NamePrefix string     // a prefix of the name from Compose, followed by _; empty: no prefix
	On         []Endpoint // its places on networks with set addresses; on other networks Compose decides
	Hash       string     // for docker.LabelMade; empty: none
	Volumes    []Volume   // of its predecessor, taken over where nothing else is set for their paths
}

// Volume is an unnamed volume of the predecessor.
type Volume struct{ Name, Target string }

// Endpoint is a container's place on a Docker network.
type Endpoint struct {
	Network   string       // its name
	Addresses []netip.Addr // at most one per family
}

// Filter is a handler in front of an engine while one container is created.
type Filter struct {
	project string
	replica Replica
	engine  *httputil.ReverseProxy
	ask     *http.Client
	created func(ctx context.Context, id string) error // checks it before it starts

	declared map[string]Declared // volumes that must look as in the files

	mu      sync.Mutex
	id      string // of the created container
	made    int
	started bool
	refused []string
}

// newFilter returns a Filter in front of the engine that dial reaches.
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
			http.Error(w, err.Error(), http.StatusBadGateway) // Compose reports it, or has ended
		},
	}
	return f
}

// close closes idle connections to the engine.
func (f *Filter) close() { f.ask.CloseIdleConnections() }

// version matches the API version in a path.
var version = regexp.MustCompile(`^/v[0-9.]+/`)

// route splits a path without its version into words.
func route(path string) []string {
	path = version.ReplaceAllString(path, "/")
	return strings.Split(strings.Trim(path, "/"), "/")
}

// is reports whether a path matches a form, in which * is any one word.
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

// ServeHTTP forwards reads and what creates the one container. It refuses everything else.
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

// refuse refuses a request that would change something else.
func (f *Filter) refuse(w http.ResponseWriter, r *http.Request) {
	f.refuseWith(w, fmt.Sprintf("%s %s is refused: Berth makes only one container here, %s of %s", r.Method, r.URL.Path,
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

// start starts the new container after the check. For other containers it answers that they run already, because the
// caller decides which of them run.
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

// idOf returns the id of a container, given its name or the beginning of its id.
func (f *Filter) idOf(ctx context.Context, ref string) (string, error) {
	var shown struct{ ID string }
	if err := f.get(ctx, "/containers/"+url.PathEscape(ref)+"/json", &shown); err != nil {
		return "", err
	}
	return shown.ID, nil
}

// get sends a request to the engine itself.
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

// result returns what was created, and the refusals.
func (f *Filter) result() (id string, started bool, refused []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id, f.started, slices.Clone(f.refused)
}
