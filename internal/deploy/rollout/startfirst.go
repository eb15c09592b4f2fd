package rollout

import (
	"context"
	"net/netip"
	"slices"
)

// Beside are the addresses, by owner, that containers have and that their successors, which start before they are
// stopped, would get: each of these is to have another one.
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

// startFirst has the successor of a container run beside it, with an address of its own, and ends the one before when
// that works. Where it fails, the one before goes on, and the successor is stopped and stays to be looked at: the next
// deploy removes it.
func (r *run) startFirst(ctx context.Context, s *Service, one *Instance, canary bool) (id string, err error) {
	if id, err = r.besides(ctx, s, one, canary); err == nil {
		err = r.works(ctx, s, one, id, canary)
	}
	if err == nil {
		err = r.down(ctx, one)
	}
	if err != nil {
		if id != "" && ctx.Err() == nil {
			_ = r.Engine.Stop(ctx, id) // that it does not work is what is told
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

// besides is the successor that an earlier deploy has started, or a new one, which is called otherwise until it has its
// place: as Compose calls what it exchanges, so that it is known for the same owner's.
func (r *run) besides(ctx context.Context, s *Service, one *Instance, canary bool) (string, error) {
	if one.Successor != "" {
		return one.Successor, nil
	}
	r.making.Lock()
	defer r.making.Unlock()
	wanted := s.replica(one)
	wanted.Aside = short(one.Container)
	return r.make(ctx, s, one, wanted, canary, nil)
}
