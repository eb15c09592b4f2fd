package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"berth/internal/admin/api"
	"berth/store"
)

// readyTime bounds the wait for the store's answer whether it accepts writes.
const readyTime = 2 * time.Second

// probes lists the operations for everybody who can connect. A supervisor uses them, which has no token and no group.
// They reveal nothing of the data.
func (s *Server) probes() []route {
	return []route{
		{api.GetHealth.Spec(), s.health},
		{api.GetReady.Spec(), s.ready},
	}
}

// probed answers the probes before authentication.
func (s *Server) probed(next http.Handler) http.Handler {
	byPath := map[string]route{}
	for _, r := range s.probes() {
		byPath[r.Path] = r
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probe, ok := byPath[r.URL.EscapedPath()]
		switch {
		case !ok:
			next.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			const allow = "GET, HEAD"
			w.Header().Set("Allow", allow)
			s.refuse(w, r, noSuchMethod(r.Method, r.URL.Path, allow))
		default:
			_ = probe.handle(w, r) // they always answer
		}
	})
}

// health answers that the daemon runs.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	return sayPlain(w, http.StatusOK, "ok")
}

// ready answers whether requests can be served now, or briefly why not. `berth status` gives details to callers with
// access.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if err := s.notReady(ctx); err != nil {
		return sayPlain(w, http.StatusServiceUnavailable, err.Error())
	}
	return sayPlain(w, http.StatusOK, "ready")
}

func (s *Server) notReady(ctx context.Context) error {
	if s.cfg.Ready != nil && s.cfg.Ready() != nil {
		return errors.New("not ready: the addresses in use are not known yet")
	}
	if err := s.writable(ctx); err != nil {
		return fmt.Errorf("not ready: %s; `berth status` shows more", refusedWrites(err))
	}
	if s.cfg.Cluster != nil {
		switch c := s.cfg.Cluster(); {
		case c.Mending != nil:
			return fmt.Errorf("not ready: the shared store has been in repair since %s, and waits for other hosts; "+
				"`berth status` lists them", c.Since.UTC().Format(time.RFC3339))
		case c.Back != nil:
			return fmt.Errorf("not ready: the shared store has been untrusted since %s, because it was restored to "+
				"an earlier state; `berth status` shows more", c.Since.UTC().Format(time.RFC3339))
		case c.NoSpace:
			return fmt.Errorf("not ready: the shared store has had no space left since %s; `berth status` shows more",
				c.Since.UTC().Format(time.RFC3339))
		case c.Away != "":
			return fmt.Errorf("not ready: the shared store has been out of reach since %s; `berth status` shows why",
				c.Since.UTC().Format(time.RFC3339))
		case c.Refused != "":
			return fmt.Errorf("not ready: this host has been unable to join the cluster since %s; `berth status` shows why",
				c.Since.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// writable returns why the daemon's own store refuses writes, or nil.
func (s *Server) writable(ctx context.Context) error {
	if s.cfg.Writable == nil {
		return nil
	}
	return s.cfg.Writable(ctx)
}

// refusedWrites explains briefly why a store refuses writes, and reveals nothing of the host.
func refusedWrites(err error) string {
	for _, why := range []struct {
		is   error
		text string
	}{
		{store.ErrUnknown, "a write failed half-way, and the store refuses writes until the daemon restarts"},
		{store.ErrAstray, "the state's file is not in its place, and the store refuses writes"},
		{store.ErrNoSpace, "the store has no space left, and refuses writes"},
	} {
		if errors.Is(err, why.is) {
			return why.text
		}
	}
	return "the store refuses writes"
}

// sayPlain answers with one line of text and closes the connection. A probe that kept its connection would take it from
// others.
func sayPlain(w http.ResponseWriter, status int, line string) error {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") // the server notices a client that is gone
	return nil
}
