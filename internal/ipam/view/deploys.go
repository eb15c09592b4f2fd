package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Deploys lists the projects that are being deployed, by name (BD-1).
func (s Views) Deploys(ctx context.Context) (all []ipam.DeployLock, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all = []ipam.DeployLock{}
		locks, err := edit.DeployLocks(c.Tx(), c.Now())
		for _, lock := range locks {
			all = append(all, *lock)
		}
		return err
	})
	return all, err
}

// Orphans lists the volumes of deployed projects that no service uses any more, by name (BD-5).
func (s Views) Orphans(ctx context.Context) (all []ipam.Orphan, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all, err = edit.Orphans(c.Tx())
		return err
	})
	return all, err
}

// Workers lists which workers of projects have run, by project and service (BD-6).
func (s Views) Workers(ctx context.Context) (all []ipam.WorkerRun, err error) {
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all, err = edit.Workers(c.Tx())
		return err
	})
	return all, err
}
