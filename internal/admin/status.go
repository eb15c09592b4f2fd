package admin

import (
	"context"
	"net/http"
	"time"

	"berth/internal/admin/api"
)

// writeTime bounds the wait for the store's answer whether it accepts writes.
const writeTime = 5 * time.Second

// metrics answers a scrape of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request, _ api.None) error {
	if s.cfg.Metrics == nil {
		return noSuchPath(r.URL.Path)
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

func (s *Server) version(context.Context, api.None) (api.Version, error) { return s.cfg.Version, nil }

func (s *Server) status(ctx context.Context, _ api.None) (api.Status, error) {
	st := api.Status{Version: s.cfg.Version, Uptime: time.Since(s.cfg.Version.Started).Seconds(), Writable: true,
		Settings: s.cfg.Settings, Unknown: s.cfg.Unknown, Waiting: s.cfg.Service.Waiting()}
	var err error
	if st.Totals, err = s.cfg.Service.Totals(ctx); err != nil {
		return st, err
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
		report, err := s.lastFindings(ctx) // the same number as on the page
		if err != nil {
			return st, err
		}
		seen.Counts = report.Counts
		st.Witness = &seen
	}
	st.Cluster = s.clusterStatus(ctx)
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := s.writable(ctx); err != nil {
		st.Writable, st.Reason = false, err.Error()
	}
	return st, nil
}
