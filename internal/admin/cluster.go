package admin

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"berth/internal/admin/api"
)

// tellsAge sets these headers.
func (s *Server) tellsAge(h http.Header) {
	if s.cfg.Cluster == nil {
		return
	}
	c := s.cfg.Cluster()
	if c.Away == "" && (c.Refused == "" || !c.Fresh.IsZero()) { // who is refused may read on
		return
	}
	h.Set(api.AwayHeader, c.Since.UTC().Format(time.RFC3339))
	if !c.Fresh.IsZero() {
		h.Set(api.AgeHeader, strconv.FormatInt(int64(c.Age), 10))
	}
}

// clusterStatus adds to what the daemon knows by itself what the store says of the hosts, as far as it was read.
func (s *Server) clusterStatus(ctx context.Context) *api.ClusterStatus {
	if s.cfg.Cluster == nil {
		return nil
	}
	c := s.cfg.Cluster()
	c.Others = []string{}
	hosts, err := s.cfg.Service.Hosts(ctx)
	if err != nil {
		return &c // out of reach, which it says
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
