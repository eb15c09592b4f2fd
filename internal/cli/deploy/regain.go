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

// How long to wait for a lease that is too young to be ended, because its container may be starting, and the interval
// between looks at the engine.
const (
	regainWithin = 20 * time.Second
	regainEvery  = time.Second
)

// regain ends leases of an instance's addresses that no endpoint of the engine has any more. An engine forgets a
// release if its answer is lost. The lease then belongs to a container that is gone, and would be refused to its
// successor. The daemon decides whether an endpoint has the address, from the engine's state shown here.
func (s *site) regain(ctx context.Context, one *rollout.Instance) (free []netip.Addr, err error) {
	for _, on := range one.On {
		for _, addr := range on.Gets {
			held, err := s.Leases(ctx, ipam.LeaseFilter{Address: addr})
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

// endpoints reports whether a lease may belong to an endpoint. A lease without a name may look like an auxiliary
// address.
func endpoints(l *ipam.LeaseInfo) bool {
	switch l.Kind {
	case ipam.Automatic, ipam.Static, ipam.Auxiliary:
		return l.State == "held"
	}
	return false
}

// end ends a lease that no endpoint has, and reports whether it did. It is no error if it cannot: the engine's request
// is then refused, and the refusal names the holder.
func (s *site) end(ctx context.Context, l *ipam.LeaseInfo) (ended bool, err error) {
	for begun := time.Now(); ; {
		view, err := s.view()
		if err != nil || has(view, l.Address) {
			return false, err
		}
		_, err = s.ReleaseLease(ctx, ipam.LeaseRelease{Space: l.Space, Address: l.Address, View: view})
		switch {
		case err == nil:
			return true, nil
		case !compose.Refused(err):
			return false, err
		case time.Since(l.Since) >= regainWithin || time.Since(begun) >= regainWithin:
			return false, nil // refused for another reason than its age
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(regainEvery):
		}
	}
}

// view returns the engine's state of Berth's networks.
func (s *site) view() (*ipam.EngineView, error) {
	engine := cli.EngineFlags{Host: s.flags.engine}
	if driver := s.flags.Mapping.Driver; driver != "" {
		engine.Drivers = []string{driver}
	}
	return engine.View(s.Run)
}

// has reports whether a running container has an address on one of the networks.
func has(view *ipam.EngineView, addr netip.Addr) bool {
	return slices.ContainsFunc(view.Containers, func(c ipam.EngineContainer) bool {
		return slices.ContainsFunc(c.Endpoints, func(e ipam.EngineEndpoint) bool {
			return slices.Contains(e.Addresses, addr)
		})
	})
}
