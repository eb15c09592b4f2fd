package client

import (
	"context"
	"net/http"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Deploys lists the projects that are locked for a deploy.
func (c *Client) Deploys(ctx context.Context) ([]ipam.DeployLock, error) {
	var list struct {
		Deploys []ipam.DeployLock `json:"deploys"`
	}
	err := c.call(ctx, http.MethodGet, api.DeploysPath, nil, nil, &list)
	return list.Deploys, err
}
