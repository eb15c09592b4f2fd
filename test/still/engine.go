// Package still fakes an engine and a compose command for tests of deploys. They return prepared data and change
// nothing. Every request that would change an engine is counted.
//
// An Engine answers on a unix socket (engine.go); tests may change its data between requests. The compose command is a
// script that prints a version and hashes (command.go).
package still

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Engine is a fake Docker Engine. Change its fields only while no request is running.
type Engine struct {
	Containers []Container
	Images     map[string]string // ids by name
	Networks   []map[string]any  // as the engine shows them
	Volumes    []map[string]any  // likewise
	Look       func(call string) // called before each answer; nil: none

	mu     sync.Mutex
	writes []string
	asked  int
	server *http.Server
	done   chan struct{}
}

// Container is a container of a Compose project.
type Container struct {
	ID, Name, Project, Service string
	Number                     int
	OneOff                     bool
	Hash, ImageID, State       string
	On                         []Endpoint
	Volume                     string // a mounted volume; empty: none
	Broken                     string // the reason why inspecting it fails; empty: it succeeds
}

// Endpoint is a container's part of a network.
type Endpoint struct {
	Network  string
	Address  string // IPv4, while it runs
	Address6 string
	Fixed    string // IPv4, in its configuration
}

// Serve makes the engine answer on a socket in dir until Close, and returns its URL.
func (e *Engine) Serve(dir string) (host string, err error) {
	socket := filepath.Join(dir, "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	e.server, e.done = &http.Server{Handler: e}, make(chan struct{})
	go func() {
		defer close(e.done)
		_ = e.server.Serve(l)
	}()
	return "unix://" + socket, nil
}

// Close ends the engine.
func (e *Engine) Close() {
	_ = e.server.Close()
	<-e.done
}

// Writes are the requests that would have changed something.
func (e *Engine) Writes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writes
}

// Asked is the number of all requests.
func (e *Engine) Asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// ServeHTTP answers a request.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.asked++
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		e.writes = append(e.writes, r.Method+" "+r.URL.Path)
	}
	e.mu.Unlock()
	const version = "1.47"
	w.Header().Set("Api-Version", version)
	w.Header().Set("Content-Type", "application/json")
	call := strings.TrimPrefix(r.URL.Path, "/v"+version)
	if e.Look != nil {
		e.Look(call)
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(call, "/"), "/")
	name := strings.TrimSuffix(rest, "/json")
	switch {
	case kind == "_ping":
	case call == "/containers/json":
		e.list(w, r.URL.Query().Get("filters"))
	case kind == "containers":
		e.container(w, name)
	case kind == "images" && e.Images[name] != "":
		reply(w, http.StatusOK, map[string]any{"Id": e.Images[name]})
	case call == "/networks":
		reply(w, http.StatusOK, append([]map[string]any{}, e.Networks...))
	case kind == "networks":
		e.network(w, rest)
	case kind == "volumes" && rest == "":
		reply(w, http.StatusOK, map[string]any{"Volumes": append([]map[string]any{}, e.Volumes...)})
	case kind == "info":
		reply(w, http.StatusOK, map[string]any{"ID": "STILL"})
	default:
		missing(w, call)
	}
}

// list lists the containers with the requested labels.
func (e *Engine) list(w http.ResponseWriter, filters string) {
	var asked struct {
		Label map[string]bool `json:"label"`
	}
	_ = json.Unmarshal([]byte(filters), &asked)
	all := []map[string]any{}
	for i := range e.Containers {
		c := &e.Containers[i]
		labels, fits := c.labels(), true
		for label := range asked.Label {
			key, value, says := strings.Cut(label, "=")
			has, there := labels[key]
			fits = fits && there && (!says || has == value)
		}
		if fits {
			mounts := []map[string]any{}
			if c.Volume != "" {
				mounts = append(mounts, map[string]any{"Type": "volume", "Name": c.Volume, "Destination": "/data"})
			}
			all = append(all, map[string]any{"Id": c.ID, "Names": []string{"/" + c.Name}, "Labels": labels,
				"State": c.State, "Mounts": mounts})
		}
	}
	reply(w, http.StatusOK, all)
}

func (c *Container) labels() map[string]string {
	const of = "com.docker.compose."
	return map[string]string{of + "project": c.Project, of + "service": c.Service,
		of + "container-number": strconv.Itoa(c.Number), of + "oneoff": strconv.FormatBool(c.OneOff),
		of + "config-hash": c.Hash, of + "version": Version}
}

func (e *Engine) container(w http.ResponseWriter, ref string) {
	for i := range e.Containers {
		c := &e.Containers[i]
		switch {
		case c.ID != ref && c.Name != ref:
		case c.Broken != "":
			reply(w, http.StatusInternalServerError, map[string]any{"message": c.Broken})
			return
		default:
			reply(w, http.StatusOK, c.shown())
			return
		}
	}
	missing(w, "container "+ref)
}

// shown is a container as the engine shows it.
func (c *Container) shown() map[string]any {
	networks := map[string]any{}
	for _, on := range c.On {
		one := map[string]any{"IPAddress": "", "GlobalIPv6Address": ""}
		if c.State == "running" {
			one["IPAddress"], one["GlobalIPv6Address"] = on.Address, on.Address6
		}
		if on.Fixed != "" {
			one["IPAMConfig"] = map[string]any{"IPv4Address": on.Fixed}
		}
		networks[on.Network] = one
	}
	return map[string]any{"Id": c.ID, "Name": "/" + c.Name, "Image": c.ImageID,
		"State": map[string]any{"Status": c.State}, "Config": map[string]any{"Labels": c.labels()},
		"HostConfig": map[string]any{}, "NetworkSettings": map[string]any{"Networks": networks}}
}

func (e *Engine) network(w http.ResponseWriter, ref string) {
	for _, n := range e.Networks {
		if n["Id"] == ref || n["Name"] == ref {
			reply(w, http.StatusOK, n)
			return
		}
	}
	missing(w, "network "+ref)
}

func missing(w http.ResponseWriter, what string) {
	reply(w, http.StatusNotFound, map[string]any{"message": fmt.Sprintf("there is no %s", what)})
}

func reply(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
