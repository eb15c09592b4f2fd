package rollout

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// canaryError is the end of a deploy by a canary that failed.
type canaryError struct {
	service string
	err     error
}

func (e *canaryError) Error() string {
	return fmt.Sprintf("a canary of %s failed, and the others are as they were: %v", e.service, e.err)
}

func (e *canaryError) Unwrap() error { return e.err }

// ended is the error of a run that ends by another one: what was stopped to make way is started again where it can be,
// and what does not run is told.
func (r *run) ended(ctx context.Context, err error) error {
	failed := r.restore(ctx)
	if len(failed) == 0 {
		return err
	}
	if canary := (*canaryError)(nil); errors.As(err, &canary) {
		err = fmt.Errorf("a canary of %s failed: %w", canary.service, canary.err)
	}
	return errors.Join(append([]error{err}, failed...)...)
}

// restore starts again, in the order of the dependencies, what this run has stopped for others and not exchanged. The
// engine refuses what has its address no more, or has lost what it shares. The errors are of each that does not run.
func (r *run) restore(ctx context.Context) (failed []error) {
	for _, s := range r.plan.Services {
		for _, one := range s.Instances {
			d := r.downs[one] // all that was begun has ended
			if one.Do != Recreate || d == nil || !d.done || !d.ran || d.left && r.turns[one] {
				continue
			}
			if err := r.back(ctx, one, d); err != nil {
				failed = append(failed, fmt.Errorf("%s ran and does not now: %w", one.Owner, err))
			}
		}
	}
	return failed
}

// back has a container that was stopped run as before, on the networks that it had to leave.
func (r *run) back(ctx context.Context, one *Instance, d *down) error {
	if d.left {
		return errors.New("its container had to go for another one; the next deploy makes it")
	}
	if err := r.Held(); err != nil {
		return err
	}
	for _, seat := range r.seats[one.Container] {
		if err := r.Engine.Return(context.WithoutCancel(ctx), seat, one.Container, one.fixed(seat.Network)); err != nil {
			return fmt.Errorf("it is off the network %s: %w", seat.Network, err)
		}
	}
	return r.again(ctx, one)
}

// fixed are the addresses that an instance gets on a network by its own configuration.
func (one *Instance) fixed(network string) []netip.Addr {
	i := slices.IndexFunc(one.On, func(a Address) bool { return a.Network == network && a.Fixed })
	if i < 0 {
		return nil
	}
	return one.On[i].Gets
}
