package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Deploys lists the projects that are being deployed, by name: those of the cluster, where each lock of a project is.
func (s Views) Deploys(ctx context.Context) ([]ipam.DeployLock, error) {
	l, err := s.homes.Cluster("which projects are deployed")
	if err != nil {
		return nil, err
	}
	return locksOf(ctx, l)
}

func locksOf(ctx context.Context, l *ledger.Ledger) ([]ipam.DeployLock, error) {
	return ledger.Look(ctx, l, func(c *ledger.Change) ([]ipam.DeployLock, error) {
		return edit.DeployLocks(c.Tx(), c.Now())
	})
}

// Orphans lists the volumes of deployed projects that no service uses any more, by name. They are in the host's own
// store: volumes are a host's, and what became of them has to be known also while the cluster's store is away, or was
// put back to an earlier state.
func (s Views) Orphans(ctx context.Context) ([]ipam.Orphan, error) {
	return ledger.View(ctx, s.homes.Own, edit.Orphans)
}

// Workers lists which workers of projects have run, by project and service . They are in the host's own store, as
// containers are a host's.
func (s Views) Workers(ctx context.Context) ([]ipam.WorkerRun, error) {
	return ledger.View(ctx, s.homes.Own, edit.Workers)
}
