package admin

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"berth/internal/admin/api"
)

// tellsAge sets the headers about an unreachable shared store.
func (s *Server) tellsAge(h http.Header) {
	if s.cfg.Cluster == nil {
		return
	}
	c := s.cfg.Cluster()
	if c.Away == "" && (c.Refused == "" || !c.Fresh.IsZero()) { // a refused host may still read
		return
	}
	h.Set(api.AwayHeader, c.Since.UTC().Format(time.RFC3339))
	if !c.Fresh.IsZero() {
		h.Set(api.AgeHeader, strconv.FormatInt(int64(c.Age), 10))
	}
}

// clusterStatus returns the daemon's own knowledge and the store's records of the hosts, as far as they were read.
func (s *Server) clusterStatus(ctx context.Context) *api.ClusterStatus {
	if s.cfg.Cluster == nil {
		return nil
	}
	c := s.cfg.Cluster()
	c.Others = []string{}
	hosts, err := s.cfg.Service.Hosts(ctx)
	if err != nil {
		return &c // the store is unreachable, as the status shows
	}
	for _, h := range hosts {
		switch {
		case h.Self:
			c.HostState = h.State
		case h.Present:
			c.Others = append(c.Others, h.Name)
		}
	}
	return &c
}
