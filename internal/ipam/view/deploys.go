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
