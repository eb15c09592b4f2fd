package client

import (
	"context"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Deploys lists the projects with a deploy lock.
func (c *Client) Deploys(ctx context.Context) ([]ipam.DeployLock, error) {
	list, err := ask(ctx, c, api.GetDeploys)
	return list.Deploys, err
}

// Orphans lists the volumes of this host's projects that no service uses any more.
func (c *Client) Orphans(ctx context.Context) ([]ipam.Orphan, error) {
	list, err := ask(ctx, c, api.GetOrphans)
	return list.Orphans, err
}

// DeployRuns lists the last deploys of a project, the latest first; last 0: all.
func (c *Client) DeployRuns(ctx context.Context, project string, last int) ([]ipam.DeployRun, error) {
	list, err := call(ctx, c, api.GetDeployRuns, api.DeployRunsRequest{Project: project, Last: last})
	return list.Deploys, err
}

// Workers lists the workers of this host's projects, with what they ran from last.
func (c *Client) Workers(ctx context.Context) ([]ipam.WorkerRun, error) {
	list, err := ask(ctx, c, api.GetWorkers)
	return list.Workers, err
}
