package admin

import (
	"context"

	"berth/internal/admin/api"
)

// deployRuns lists the deploys of a project, the latest first.
func (s *Server) deployRuns(ctx context.Context, req api.DeployRunsRequest) (api.DeployRunList, error) {
	all, err := s.cfg.Service.DeployRuns(ctx, req.Project, req.Last)
	return api.DeployRunList{Deploys: all}, err
}
