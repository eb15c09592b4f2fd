package rollout

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// canaryError is the error of a deploy whose canary failed.
type canaryError struct {
	service string
	err     error
}

func (e *canaryError) Error() string {
	return fmt.Sprintf("a canary of %s failed, and the others are unchanged: %v", e.service, e.err)
}

func (e *canaryError) Unwrap() error { return e.err }

// ended returns the error of a failed run. It starts again what was stopped, where possible, and names what does not
// run.
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

// restore starts again what this run has stopped and not replaced, in the order of the dependencies. The engine refuses
// a container that lost its address or what it shares. It returns an error for each instance that does not run.
func (r *run) restore(ctx context.Context) (failed []error) {
	for _, s := range r.plan.Services {
		for _, one := range s.Instances {
			d := r.downs[one] // every step has ended
			if one.Do != Recreate || d == nil || !d.done || !d.ran || d.left && r.turns[one] {
				continue
			}
			if err := r.back(ctx, one, d); err != nil {
				failed = append(failed, fmt.Errorf("%s ran before, but does not run now: %w", one.Owner, err))
			}
		}
	}
	return failed
}

// back makes a stopped container run as before, on the networks that it had to leave.
func (r *run) back(ctx context.Context, one *Instance, d *down) error {
	if d.left {
		return errors.New("its container was removed to make room for another one; the next deploy recreates it")
	}
	if err := r.Held(); err != nil {
		return err
	}
	for _, left := range r.left[one.Container] {
		err := r.Engine.Return(context.WithoutCancel(ctx), left, one.Container, one.fixed(left.Network))
		if err != nil {
			return fmt.Errorf("it is not on the network %s: %w", left.Network, err)
		}
	}
	return r.again(ctx, one)
}

// fixed returns the configured addresses of an instance on a network.
func (one *Instance) fixed(network string) []netip.Addr {
	i := slices.IndexFunc(one.On, func(a Address) bool { return a.Network == network && a.Fixed })
	if i < 0 {
		return nil
	}
	return one.On[i].Gets
}
