package rollout

import (
	"context"
	"net/netip"
	"slices"
)

// Beside returns the addresses, by owner, of containers whose successors start before they stop. Each successor must
// get another address.
func (p *Plan) Beside() map[string][]netip.Addr {
	all := map[string][]netip.Addr{}
	for _, s := range p.Services {
		for _, one := range s.Instances {
			if one.Do != Recreate || !s.Update.StartFirst {
				continue
			}
			for _, a := range one.On {
				for _, addr := range a.Gets {
					if slices.Contains(a.Has, addr) {
						all[one.Owner] = append(all[one.Owner], addr)
					}
				}
			}
		}
	}
	return all
}

// startFirst runs the successor of a container with its own address, and ends the old container when the successor
// works. If the successor fails, the old container continues. The successor is stopped and kept for inspection, and the
// next deploy removes it.
func (r *run) startFirst(ctx context.Context, s *Service, one *Instance, canary bool) (id string, err error) {
	if id, err = r.besides(ctx, s, one, canary); err == nil {
		err = r.works(ctx, s, one, id, canary)
	}
	if err == nil {
		err = r.down(ctx, one)
	}
	if err != nil {
		if id != "" && ctx.Err() == nil {
			_ = r.Engine.Stop(ctx, id) // the reported error is that it does not work
		}
		return id, err
	}
	r.leaves(one) // the successor works
	r.making.Lock()
	defer r.making.Unlock()
	if err := r.may(ctx); err != nil {
		return id, err
	}
	r.tell(Event{Step: removing, Instance: one.Owner, Canary: canary, Detail: one.Name})
	return id, r.Engine.Remove(ctx, one.Container)
}

// besides returns the successor that an earlier deploy has started, or creates one. It has a temporary name in
// Compose's form, so that it is recognized as the same owner's.
func (r *run) besides(ctx context.Context, s *Service, one *Instance, canary bool) (string, error) {
	if one.Successor != "" {
		return one.Successor, nil
	}
	r.making.Lock()
	defer r.making.Unlock()
	wanted := s.replica(one)
	wanted.NamePrefix = short(one.Container)
	return r.make(ctx, s, one, wanted, canary, nil)
}
