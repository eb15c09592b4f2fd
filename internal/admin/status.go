package admin

import (
	"context"
	"net/http"
	"time"

	"berth/internal/admin/api"
)

// writeTime is how long the store has to say whether it takes writes.
const writeTime = 5 * time.Second

// metrics tells Prometheus how it stands.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if s.cfg.Metrics == nil {
		return noSuchPath(r.URL.Path)
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// plainly is an operation that takes no parameters.
func plainly(answer func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := query(r); err != nil {
			return err
		}
		return answer(w, r)
	}
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	st := api.Status{Version: s.cfg.Version, Uptime: time.Since(s.cfg.Version.Started).Seconds(), Writable: true}
	var err error
	if st.Totals, err = s.cfg.Service.Totals(r.Context()); err != nil {
		return err
	}
	if s.cfg.Hooks != nil {
		st.Hooks = s.cfg.Hooks()
	}
	if s.cfg.Webhooks != nil {
		st.Webhooks = s.cfg.Webhooks()
	}
	if s.cfg.Names != nil {
		st.Names = s.cfg.Names()
	}
	if s.cfg.Witness != nil {
		seen := s.cfg.Witness()
		st.Witness = &seen
	}
	st.Cluster = s.clusterStatus(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), writeTime)
	defer cancel()
	if err := s.writable(ctx); err != nil {
		st.Writable, st.Reason = false, err.Error()
	}
	return reply(w, st)
}
