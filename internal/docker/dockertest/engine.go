// Package dockertest has a fake Docker Engine for tests. It runs what a test sets, answers like engine 20.10.24 on
// a unix socket, and records its requests.
//
// An Engine (engine.go) answers from its fields; Set (view.go) fills them from a view. A test can send events
// (events.go). The containers of a Place can be disconnected and reconnected (place.go).
package dockertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/ipam"
)

// Object is a JSON object.
type Object = map[string]any

// Engine is a fake Docker Engine. Its mutex guards the fields. Of the hooks, only Place.Before is called with it
// held.
type Engine struct {
	testing.TB
	sync.Mutex

	Path       string // of the socket
	ID         string
	Release    string // its version
	API        int    // the minor version of its API
	Firewall   string
	Networks   []Object
	Containers []Object
	Plugins    map[string]string         // names by id
	Configs    map[string]Object         // HostConfig of containers, by id
	Place      Place                     // containers that can be moved
	Ask        func(method, path string) // called before each answer
	Broken     string                    // paths that contain this get an error
	Inspects   bool                      // it answers inspections of all Containers

	view     ipam.EngineView // that it runs
	requests []string
	streams  map[chan string]<-chan struct{} // with what ends when the client has left
	server   *http.Server
	stopped  chan struct{}
}

// New starts an engine, which ends with the test.
func New(t testing.TB) *Engine {
	t.Helper()
	e := At(t, filepath.Join(t.TempDir(), "docker.sock"))
	e.Start()
	t.Cleanup(e.Stop)
	return e
}

// At returns an engine that is not started yet, with its socket.
func At(t testing.TB, path string) *Engine {
	return &Engine{TB: t, Path: path, ID: "AAAA:BBBB", API: 41, Plugins: map[string]string{},
		Configs: map[string]Object{}, streams: map[chan string]<-chan struct{}{}}
}

// URL is the engine's address.
func (e *Engine) URL() string { return "unix://" + e.Path }

// Start starts the engine, also after Stop.
func (e *Engine) Start() {
	e.Helper()
	l, err := net.Listen("unix", e.Path)
	if err != nil {
		e.Fatal(err)
	}
	server, stopped := &http.Server{Handler: e}, make(chan struct{})
	e.Lock()
	defer e.Unlock()
	e.server, e.stopped = server, stopped
	go func() {
		defer close(stopped)
		_ = server.Serve(l)
	}()
}

// Stop ends the engine and all its connections, like a crash. It does nothing if the engine does not run.
func (e *Engine) Stop() {
	e.Lock()
	server, stopped := e.server, e.stopped
	e.Unlock()
	if server != nil {
		_ = server.Close()
		<-stopped
	}
}

// Asked returns the requests since its last call, without API versions.
func (e *Engine) Asked() []string {
	e.Lock()
	defer e.Unlock()
	all := e.requests
	e.requests = nil
	return all
}

// ServeHTTP is the engine's API.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, version := r.URL.Path, 0
	if n, _ := fmt.Sscanf(call, "/v1.%d/", &version); n == 1 {
		call = strings.TrimPrefix(call, fmt.Sprintf("/v1.%d", version))
	}
	e.Lock()
	e.requests = append(e.requests, r.Method+" "+call)
	ask, newest, broken := e.Ask, e.API, e.Broken
	e.Unlock()
	if ask != nil {
		ask(r.Method, r.URL.Path)
	}
	w.Header().Set("Api-Version", fmt.Sprintf("1.%d", newest))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case call == "/_ping":
		w.Header().Set("Content-Type", "text/plain")
	case version == 0 || version > newest:
		Reply(w, http.StatusBadRequest, fmt.Sprintf("client version 1.%d is too new", version))
	case broken != "" && strings.Contains(call, broken):
		Reply(w, http.StatusInternalServerError, "it hurts")
	case call == "/events":
		e.stream(w, r)
	case r.Method == http.MethodPost:
		e.move(w, r, call, version)
	default:
		e.answer(w, call, version, listedIDs(r))
	}
}

// listedIDs returns the containers in the filter of a list; nil means all.
func listedIDs(r *http.Request) map[string]bool {
	var filters struct {
		ID map[string]bool `json:"id"`
	}
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	return filters.ID
}

func (e *Engine) answer(w http.ResponseWriter, call string, version int, ids map[string]bool) {
	e.Lock()
	defer e.Unlock()
	dir, name := path.Split(call)
	id := path.Base(dir)
	inspects := strings.HasPrefix(dir, "/containers/") && name == "json"
	listed := slices.IndexFunc(e.Containers, func(c Object) bool { return c["Id"] == id })
	switch {
	case call == "/info":
		Reply(w, http.StatusOK, Object{"ID": e.ID, "ServerVersion": e.Release,
			"FirewallBackend": Object{"Driver": e.Firewall}})
	case call == "/version":
		Reply(w, http.StatusOK, Object{"Version": e.Release})
	case call == "/networks":
		Reply(w, http.StatusOK, e.Networks)
	case call == "/containers/json":
		Reply(w, http.StatusOK, slices.DeleteFunc(slices.Clone(e.Containers),
			func(c Object) bool { return ids != nil && !ids[c["Id"].(string)] }))
	case inspects && e.Configs[id] != nil:
		Reply(w, http.StatusOK, Object{"Id": id, "HostConfig": e.Configs[id],
			"Config": Object{"ExposedPorts": Object{"53/udp": Object{}}}})
	case inspects && e.Place.of(id) != nil:
		Reply(w, http.StatusOK, e.Place.of(id).shown(version))
	case inspects && e.Inspects && listed >= 0:
		c := e.Containers[listed]
		names, _ := c["Names"].([]string)
		Reply(w, http.StatusOK, Object{"Id": id, "Name": strings.Join(names, ""), "HostConfig": Object{},
			"State": Object{"Running": c["State"] == "running"}, "Config": Object{"Labels": c["Labels"]},
			"NetworkSettings": c["NetworkSettings"]})
	case dir == "/networks/" && name == Front && !e.Place.Gone && e.Place.Containers != nil:
		Reply(w, http.StatusOK, Object{"Id": "n1", "Name": Front})
	case dir == "/networks/":
		i := slices.IndexFunc(e.Networks, func(n Object) bool { return n["Id"] == name || n["Name"] == name })
		if i < 0 {
			Reply(w, http.StatusNotFound, "network "+name+" not found")
			return
		}
		Reply(w, http.StatusOK, e.Networks[i])
	case strings.HasPrefix(dir, "/plugins/") && e.Plugins[id] != "":
		Reply(w, http.StatusOK, Object{"Id": id, "Name": e.Plugins[id]})
	default:
		Reply(w, http.StatusNotFound, "page not found")
	}
}

// Reply sends an answer. A string is sent as an error message.
func Reply(w http.ResponseWriter, code int, body any) {
	if text, is := body.(string); is {
		body = Object{"message": text}
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
