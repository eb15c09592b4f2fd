package admin

import (
	"context"
	"net/http"
	"time"

	"berth/internal/ipam"
)

// Status is the answer of GET /v1/status.
type Status struct {
	Version
	Uptime   float64           `json:"uptime"` // seconds
	Totals   ipam.Totals       `json:"totals"`
	Writable bool              `json:"writable"`
	Reason   string            `json:"reason,omitempty"` // why it is not
	Import   *ipam.ImportState `json:"import,omitempty"` // one that is under way or was cut off
	Hooks    *HookCounts       `json:"hooks,omitempty"`  // where there are hooks (serve --hook)

	Witness *ipam.WitnessState `json:"witness,omitempty"` // where there is one
	Cluster *ClusterStatus     `json:"cluster,omitempty"` // where the host shares a store with others (serve --store etcd)
}

// HookCounts tell what became of hooks since the daemon began.
type HookCounts struct {
	Runs     uint64 `json:"runs"`
	Failures uint64 `json:"failures"` // of these
}

// The operations that are about the daemon, and not about what it keeps.
const (
	statusPath  = "/v1/status"
	versionPath = "/v1/version"
)

// writeTime is how long the store has to say whether it takes writes.
const writeTime = 5 * time.Second

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	st := Status{Version: s.cfg.Version, Uptime: time.Since(s.cfg.Version.Started).Seconds(), Writable: true}
	var err error
	if st.Totals, err = s.cfg.Service.Totals(r.Context()); err != nil {
		return err
	}
	if st.Import, err = s.cfg.Service.ImportState(r.Context()); err != nil {
		return err
	}
	if s.cfg.Hooks != nil {
		st.Hooks = s.cfg.Hooks()
	}
	if s.cfg.Witness != nil {
		seen := s.cfg.Witness()
		st.Witness = &seen
	}
	st.Cluster = s.clusterStatus(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), writeTime)
	defer cancel()
	if err := s.cfg.Service.Writable(ctx); err != nil {
		st.Writable, st.Reason = false, err.Error()
	}
	return reply(w, st)
}

// Status asks how the server is.
func (c *Client) Status(ctx context.Context) (st Status, err error) {
	return st, c.call(ctx, http.MethodGet, statusPath, nil, nil, &st)
}
