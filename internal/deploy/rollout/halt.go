package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// halt stops what must stop and stay. It stops a service before those that it needs, and at most the number in
// flight of its replicas at the same time. Their reservations stay.
func (r *run) halt(ctx context.Context) error {
	for _, s := range slices.Backward(r.plan.Services) {
		var all []*Instance
		for _, one := range s.Instances {
			if one.Do == Stop {
				all = append(all, one)
			}
		}
		err := several(all, s.Update.MaxInFlight, func(one *Instance) error {
			if err := r.down(ctx, one); err != nil {
				return r.fail(ctx, one, false, err)
			}
			r.tell(Event{Step: Done, Instance: one.Owner, Detail: "stopped"})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// several calls do for each instance, at most atOnce at the same time. After a failure it starts no further one.
func several(all []*Instance, atOnce int, do func(*Instance) error) error {
	var mu sync.Mutex
	var failed []error
	var done sync.WaitGroup
	places := make(chan struct{}, max(1, atOnce))
	for _, one := range all {
		places <- struct{}{}
		mu.Lock()
		stop := len(failed) > 0
		mu.Unlock()
		if stop {
			break
		}
		done.Go(func() {
			defer func() { <-places }()
			if err := do(one); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	done.Wait()
	return errors.Join(failed...)
}
