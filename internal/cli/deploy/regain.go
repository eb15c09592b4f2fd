package deploy

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"berth/internal/cli"
	"berth/internal/cli/compose"
	"berth/internal/deploy/rollout"
	"berth/internal/ipam"
)

// How long a lease is waited for that is too young to be ended, since its container may be starting, and how often the
// engine is looked at meanwhile.
const (
	regainWithin = 20 * time.Second
	regainEvery  = time.Second
)

// regain ends the leases of what an instance gets that no endpoint of the engine has any more. Engines forget a release
// whose answer never came: the lease is held then by a container that is gone, and refused to its successor. Whether an
// endpoint has the address the daemon judges, by what the engine shows here.
func (s *site) regain(ctx context.Context, one *rollout.Instance) (free []netip.Addr, err error) {
	for _, on := range one.On {
		for _, addr := range on.Gets {
			held, err := s.client.Leases(ctx, ipam.LeaseFilter{Address: addr})
			if err != nil {
				return free, err
			}
			for i := range held {
				if held[i].Network != on.Planned || !endpoints(&held[i]) {
					continue
				}
				ended, err := s.end(ctx, &held[i])
				if ended {
					free = append(free, addr)
				}
				if err != nil {
					return free, err
				}
			}
		}
	}
	return free, nil
}

// endpoints tells whether a lease may be that of an endpoint. One that names nothing may be auxiliary by its looks.
func endpoints(l *ipam.LeaseInfo) bool {
	switch l.Kind {
	case ipam.Automatic, ipam.Static, ipam.Auxiliary:
		return l.State == "held"
	}
	return false
}

// end ends a lease that no endpoint has, and tells whether it did. One that cannot be ended is no error: the engine is
// refused then, with who has it.
func (s *site) end(ctx context.Context, l *ipam.LeaseInfo) (ended bool, err error) {
	for begun := time.Now(); ; {
		view, err := s.view(ctx)
		if err != nil || has(view, l.Address) {
			return false, err
		}
		_, err = s.client.ReleaseLease(ctx, ipam.LeaseRelease{Space: l.Space, Address: l.Address, View: view})
		switch {
		case err == nil:
			return true, nil
		case !compose.Refused(err):
			return false, err
		case time.Since(l.Since) >= regainWithin || time.Since(begun) >= regainWithin:
			return false, nil // not for its age
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(regainEvery):
		}
	}
}

// view is what the engine shows of Berth's networks.
func (s *site) view(ctx context.Context) (*ipam.EngineView, error) {
	engine := cli.EngineFlags{Host: s.flags.engine}
	if driver := s.flags.Mapping.Driver; driver != "" {
		engine.Drivers = []string{driver}
	}
	return engine.View(ctx, s.client)
}

// has tells whether a container that runs has an address on one of the networks.
func has(view *ipam.EngineView, addr netip.Addr) bool {
	return slices.ContainsFunc(view.Containers, func(c ipam.EngineContainer) bool {
		return slices.ContainsFunc(c.Endpoints, func(e ipam.EngineEndpoint) bool {
			return slices.Contains(e.Addresses, addr)
		})
	})
}
