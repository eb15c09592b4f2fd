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

// Relay stands on the plugin socket that an engine uses, in front of a daemon that listens elsewhere, and passes all
// on. A test may have it spoil what it passes.
type Relay struct {
	server *http.Server
	daemon *http.Client

	mu    sync.Mutex
	spoil func(w http.ResponseWriter, answer []byte) // what becomes of the next answer to RequestAddress
	drop  bool                                       // no release comes through
	// called before a RequestAddress is passed on, and before its answer is
	stop func(answered bool)
}

// startRelay listens in dir for the engine under a daemon's name.
func startRelay(d *Daemon, dir string) (*Relay, error) {
	r := &Relay{daemon: lab.Over(d.PluginSocket())}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	l, err := net.Listen("unix", filepath.Join(dir, d.Name+".sock"))
	if err != nil {
		return nil, err
	}
	go func() { _ = r.server.Serve(l) }() // its error is that it was closed
	return r, nil
}

// Close ends it, and what is under way in it.
func (r *Relay) Close() error { return r.server.Close() }

// Spoil has the next answer to RequestAddress, whose address has been given by then, written by another hand.
func (r *Relay) Spoil(by func(w http.ResponseWriter, answer []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoil = by
}

// Drop has releases of addresses answered with an error from now on, or no more.
func (r *Relay) Drop(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop = on
}

// Stop has a function called during each RequestAddress: before the daemon sees it, and when it has answered.
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
	_, _ = w.Write(answer) // who asked may be gone
}

// taken is how an answer is spoilt, nil if it is not; it is spoilt once.
func (r *Relay) taken(now bool) (by func(http.ResponseWriter, []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now {
		by, r.spoil = r.spoil, nil
	}
	return by
}

// pass has the daemon answer, whatever becomes of who asked.
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

// unreadable answers with half of what was said.
func unreadable(w http.ResponseWriter, answer []byte) {
	_, _ = w.Write(answer[:len(answer)/2])
}

// brokenOff ends the connection without a word.
func brokenOff(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) }
