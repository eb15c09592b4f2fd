package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

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

// Orphans lists the volumes of this host's projects that no service uses any more.
func (c *Client) Orphans(ctx context.Context) ([]ipam.Orphan, error) {
	var list struct {
		Orphans []ipam.Orphan `json:"orphans"`
	}
	err := c.call(ctx, http.MethodGet, api.OrphansPath, nil, nil, &list)
	return list.Orphans, err
}

// DeployRuns lists the last deploys of a project, the latest first; 0: all that are kept.
func (c *Client) DeployRuns(ctx context.Context, project string, last int) ([]ipam.DeployRun, error) {
	var list struct {
		Deploys []ipam.DeployRun `json:"deploys"`
	}
	q := params{}
	if last > 0 {
		q["last"] = strconv.Itoa(last)
	}
	path := strings.Replace(api.DeployRunsPath, "{project}", url.PathEscape(project), 1)
	err := c.call(ctx, http.MethodGet, path, q, nil, &list)
	return list.Deploys, err
}

// Workers lists of what the workers of this host's projects were made when they ran last.
func (c *Client) Workers(ctx context.Context) ([]ipam.WorkerRun, error) {
	var list struct {
		Workers []ipam.WorkerRun `json:"workers"`
	}
	err := c.call(ctx, http.MethodGet, api.WorkersPath, nil, nil, &list)
	return list.Workers, err
}
