package admin

import (
	"context"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// mend does this host's part of a mending. It has no time limit.
func (s *Server) mend(ctx context.Context, req api.Body[ipam.MendOptions]) (ipam.MendReport, error) {
	if s.cfg.Mend == nil {
		return ipam.MendReport{}, ipam.ErrNoShared
	}
	return s.cfg.Mend(ctx, req.Body)
}
