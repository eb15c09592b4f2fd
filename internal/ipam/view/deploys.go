package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Deploys lists the projects that are being deployed, by name: those of the cluster, where each lock of a project is.
func (s Views) Deploys(ctx context.Context) (all []ipam.DeployLock, err error) {
	l, err := s.homes.Cluster("which projects are deployed")
	if err != nil {
		return nil, err
	}
	err = l.Look(ctx, func(c *ledger.Change) error {
		all = []ipam.DeployLock{}
		locks, err := edit.DeployLocks(c.Tx(), c.Now())
		for _, lock := range locks {
			all = append(all, *lock)
		}
		return err
	})
	return all, err
}

// Orphans lists the volumes of deployed projects that no service uses any more, by name. They are in the host's own
// store: volumes are a host's, and what became of them has to be known also while the cluster's store is away, or was
// put back to an earlier state.
func (s Views) Orphans(ctx context.Context) (all []ipam.Orphan, err error) {
	err = s.homes.Own.Look(ctx, func(c *ledger.Change) error {
		all, err = edit.Orphans(c.Tx())
		return err
	})
	return all, err
}

// Workers lists which workers of projects have run, by project and service . They are in the host's own store, as
// containers are a host's.
func (s Views) Workers(ctx context.Context) (all []ipam.WorkerRun, err error) {
	err = s.homes.Own.Look(ctx, func(c *ledger.Change) error {
		all, err = edit.Workers(c.Tx())
		return err
	})
	return all, err
}
