//go:build engine

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Recorder stands before an engine, passes all on, and writes down what changes something there.
type Recorder struct {
	Socket string
	server *http.Server
	engine *httputil.ReverseProxy

	mu     sync.Mutex
	owners map[string]string // service/number of containers, by id
	writes []Write
}

// Write is a request that changes something at the engine.
type Write struct {
	Do    string // create, start, stop, remove; others as METHOD PATH
	Owner string // service/number of the container; empty: it is none, or one that is not known
}

// startRecorder listens on a socket in a directory, before the engine of another one.
func startRecorder(dir, engine string) (*Recorder, error) {
	r := &Recorder{Socket: filepath.Join(dir, "recorder.sock"), owners: map[string]string{}}
	r.engine = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: "engine"})
			p.Out.Host = p.In.Host
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", engine)
		}},
		FlushInterval:  -1,
		ModifyResponse: r.made,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway) // whoever asked has gone, or says it
		},
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	l, err := net.Listen("unix", r.Socket)
	if err != nil {
		return nil, err
	}
	go func() { _ = r.server.Serve(l) }() // its error is that it was closed
	return r, nil
}

// Close ends it.
func (r *Recorder) Close() error { return r.server.Close() }

// Knows tells it whose a container is that is there already.
func (r *Recorder) Knows(id, owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[id] = owner
}

// Writes are those since the last call.
func (r *Recorder) Writes() []Write {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.writes
	r.writes = nil
	return all
}

// ownerKey is where a request carries whose container it makes.
type ownerKey struct{}

func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		owner := r.write(req)
		req = req.WithContext(context.WithValue(req.Context(), ownerKey{}, owner))
	}
	r.engine.ServeHTTP(w, req)
}

var apiVersion = regexp.MustCompile(`^/v[0-9.]+/`)

// write notes a request, and returns whose container it is about.
func (r *Recorder) write(req *http.Request) (owner string) {
	path := strings.Trim(apiVersion.ReplaceAllString(req.URL.Path, "/"), "/")
	words := strings.Split(path, "/")
	do := req.Method + " " + path
	switch {
	case path == "containers/create":
		do, owner = "create", labelled(req)
	case len(words) == 3 && words[0] == "containers" && (words[2] == "start" || words[2] == "stop"):
		do, owner = words[2], r.ownerOf(words[1])
	case len(words) == 2 && words[0] == "containers" && req.Method == http.MethodDelete:
		do, owner = "remove", r.ownerOf(words[1])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, Write{do, owner})
	return owner
}

func (r *Recorder) ownerOf(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owners[id]
}

// labelled reads whose the container is that a request makes.
func labelled(req *http.Request) string {
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	var c struct{ Labels map[string]string }
	if err != nil || json.Unmarshal(body, &c) != nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", c.Labels["com.docker.compose.service"], c.Labels["com.docker.compose.container-number"])
}

// made learns the id of a container that was made.
func (r *Recorder) made(resp *http.Response) error {
	owner, _ := resp.Request.Context().Value(ownerKey{}).(string)
	if owner == "" || resp.StatusCode != http.StatusCreated || !strings.HasSuffix(resp.Request.URL.Path, "/create") {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var c struct{ ID string }
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	r.Knows(c.ID, owner)
	return nil
}
