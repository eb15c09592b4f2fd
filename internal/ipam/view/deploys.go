package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Deploys lists the projects that are being deployed, by name. The locks of all projects are in the cluster's store.
func (s Views) Deploys(ctx context.Context) ([]ipam.DeployLock, error) {
	l, err := s.homes.Cluster("the list of deploys")
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
// store, because a volume belongs to a host. They must also be known while the cluster's store is unreachable or was
// rolled back.
func (s Views) Orphans(ctx context.Context) ([]ipam.Orphan, error) {
	return ledger.View(ctx, s.homes.Own, edit.Orphans)
}

// Workers lists which workers of projects have run, by project and service. They are in the host's own store, because a
// container belongs to a host.
func (s Views) Workers(ctx context.Context) ([]ipam.WorkerRun, error) {
	return ledger.View(ctx, s.homes.Own, edit.Workers)
}
