package compose

import (
	"context"
	"errors"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// lockLook is how often one who waits for another's deploy asks.
const lockLook = time.Second

// Locked tells whether a refusal is that of the lock of somebody else's deploy.
func Locked(err error) bool {
	var problem *api.Problem
	var refused *ipam.Refused
	return errors.As(err, &problem) && problem.Reason == string(ipam.DeployLocked) ||
		errors.As(err, &refused) && refused.Reason == ipam.DeployLocked
}

// Refused tells whether an error is the daemon's refusal.
func Refused(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem)
}

// Await tries something again while somebody else deploys the project, for as long as wait.
func Await(ctx context.Context, wait time.Duration, try func() error) error {
	deadline := time.Now().Add(wait)
	for {
		err := try()
		if !Locked(err) || !time.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(lockLook, time.Until(deadline))):
		}
	}
}
