//go:build engine

package engine

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"berth/test/lab"
)

// Relay listens on the plugin socket of an engine, in front of a daemon that listens elsewhere, and forwards
// everything. A test may make it spoil answers.
type Relay struct {
	server *http.Server
	daemon *http.Client

	mu    sync.Mutex
	spoil func(w http.ResponseWriter, answer []byte) // writes the next answer to RequestAddress
	drop  bool                                       // releases fail
	// called before a RequestAddress is passed on, and before its answer is
	stop func(answered bool)
}

// startRelay listens in dir, as the engine's daemon of the same name.
func startRelay(d *Daemon, dir string) (*Relay, error) {
	r := &Relay{daemon: lab.Over(d.PluginSocket())}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	l, err := net.Listen("unix", filepath.Join(dir, d.Name+".sock"))
	if err != nil {
		return nil, err
	}
	go func() { _ = r.server.Serve(l) }() // it fails only because the server is closed
	return r, nil
}

// Close ends the relay and its open requests.
func (r *Relay) Close() error { return r.server.Close() }

// Spoil makes a function write the next answer to RequestAddress. The daemon has given the address by then.
func (r *Relay) Spoil(by func(w http.ResponseWriter, answer []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoil = by
}

// Drop turns on or off that releases of addresses are answered with an error.
func (r *Relay) Drop(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop = on
}

// Stop sets a function that is called during each RequestAddress: before the daemon sees it, and when it has answered.
// nil: none.
func (r *Relay) Stop(by func(answered bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = by
}

func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	asked := strings.HasSuffix(req.URL.Path, "RequestAddress")
	r.mu.Lock()
	stop, drop := r.stop, r.drop
	r.mu.Unlock()
	if drop && strings.HasSuffix(req.URL.Path, "ReleaseAddress") {
		http.Error(w, `{"Err": "it went astray"}`, http.StatusInternalServerError)
		return
	}
	if asked && stop != nil {
		stop(false)
	}
	status, answer, err := r.pass(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if asked && stop != nil {
		stop(true)
	}
	w.Header().Set("Content-Type", "application/json")
	if by := r.taken(asked && status == http.StatusOK); by != nil {
		by(w, answer)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // the client may be gone
}

// taken returns the function that spoils this answer, or nil. It spoils one answer only.
func (r *Relay) taken(now bool) (by func(http.ResponseWriter, []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now {
		by, r.spoil = r.spoil, nil
	}
	return by
}

// pass forwards a request to the daemon, even if its sender goes away.
func (r *Relay) pass(req *http.Request) (status int, answer []byte, err error) {
	out, err := http.NewRequestWithContext(context.WithoutCancel(req.Context()), req.Method, "http://plugin"+
		req.URL.Path, req.Body)
	if err != nil {
		return 0, nil, err
	}
	out.Header = req.Header
	resp, err := r.daemon.Do(out)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// unreadable answers with half of the daemon's answer.
func unreadable(w http.ResponseWriter, answer []byte) {
	_, _ = w.Write(answer[:len(answer)/2])
}

// brokenOff closes the connection without an answer.
func brokenOff(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) }
