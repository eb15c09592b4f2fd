package cluster

import (
	"context"
	"errors"

	"berth/internal/ipam"
)

// ofDeploys tells whether edits lock projects, or end that.
func ofDeploys(edits []ipam.Edit) bool {
	for _, e := range edits {
		_, locks := e.(*ipam.LockDeploy)
		if _, ends := e.(*ipam.UnlockDeploy); !locks && !ends {
			return false
		}
	}
	return len(edits) > 0
}

// lockBoth locks projects in both stores, since a project may have addresses in each: the cluster's first, so that of
// two hosts one is refused before anything is locked. Each may be asked for again.
func (e *Estate) lockBoth(ctx context.Context, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	out, err := e.shared.Edit(ctx, opt, edits...)
	if err != nil {
		return out, err
	}
	own, err := e.local.Edit(ctx, opt, edits...)
	if errors.Is(err, ipam.ErrNotFound) {
		return out, nil // the deploy is on another host, in whose own store its lock ends with its time
	} else if err != nil {
		return ipam.Outcome{}, err
	}
	return and(out, own), nil
}

// DeployRuns is Service.DeployRuns of the cluster's store, which knows of the deploys on all hosts.
func (e *Estate) DeployRuns(ctx context.Context, project string, limit int) ([]ipam.DeployRun, error) {
	s, err := e.cluster("which deploys there were")
	if err != nil {
		return nil, err
	}
	return s.DeployRuns(ctx, project, limit)
}

// Deploys is Service.Deploys of the cluster's store, where each lock of a project is.
func (e *Estate) Deploys(ctx context.Context) ([]ipam.DeployLock, error) {
	s, err := e.cluster("which projects are deployed")
	if err != nil {
		return nil, err
	}
	return s.Deploys(ctx)
}

// Orphans is Service.Orphans of the host's own store: volumes are a host's, and what became of them has to be known
// also while the cluster's store is away, or was put back to an earlier state.
func (e *Estate) Orphans(ctx context.Context) ([]ipam.Orphan, error) { return e.local.Orphans(ctx) }

// Workers is Service.Workers of the host's own store: containers are a host's.
func (e *Estate) Workers(ctx context.Context) ([]ipam.WorkerRun, error) { return e.local.Workers(ctx) }
