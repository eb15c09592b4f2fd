package compose

import (
	"context"
	"errors"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// lockLook is the pause between attempts while somebody else deploys.
const lockLook = time.Second

// Locked reports whether an error is the refusal because of somebody else's deploy.
func Locked(err error) bool {
	var problem *api.Problem
	var refused *ipam.Refused
	return errors.As(err, &problem) && problem.Reason == string(ipam.DeployLocked) ||
		errors.As(err, &refused) && refused.Reason == ipam.DeployLocked
}

// Refused reports whether an error is a refusal by the daemon.
func Refused(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem)
}

// Await repeats try while somebody else deploys the project, at most for wait.
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
