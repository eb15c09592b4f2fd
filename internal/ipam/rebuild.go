package ipam

import (
	"context"
	"errors"
	"fmt"
)

// parseNetwork reads what a Docker network wished for when it was made, for one of its subnets.
type parseNetwork = func(EngineNetwork, EngineSubnet) (PoolRequest, error)

// Rebuild makes this host's attachments and leases out of what an engine says that runs, in a store that forgets (BO-4). parse
// reads a Docker network's wish for a subnet. What cannot be made is told of together in the end, and the rest is there: an
// address that runs twice is refused with AlreadyInUse.
func (s *Service) Rebuild(ctx context.Context, view EngineView, parse parseNetwork) error {
	pools := map[string][]PoolGrant{} // by the Docker network
	var failed []error
	for _, n := range view.Networks {
		grants, err := s.rebuildNetwork(ctx, n, parse)
		if err != nil {
			failed = append(failed, fmt.Errorf("the Docker network %s: %w", n.Name, err))
		}
		pools[n.ID] = grants
	}
	for _, container := range view.Containers {
		for _, e := range container.Endpoints {
			failed = append(failed, s.rebuildLeases(ctx, container.Name, e, pools[e.Network]))
		}
	}
	return errors.Join(failed...)
}

// rebuildNetwork makes the attachments of a Docker network, and what it has for itself.
func (s *Service) rebuildNetwork(ctx context.Context, n EngineNetwork, parse parseNetwork) (grants []PoolGrant, err error) {
	var reqs []PoolRequest
	for _, sub := range n.Subnets {
		req, err := parse(n, sub)
		if err != nil {
			return nil, err
		}
		reqs = append(reqs, req)
	}
	if err := s.replan(ctx, n, reqs); err != nil {
		return nil, err
	}
	var failed []error
	for i, req := range reqs {
		grant, err := s.rebuildPool(ctx, req, n.Subnets[i])
		failed = append(failed, err)
		if grant.ID != (ID{}) {
			grants = append(grants, grant)
		}
	}
	return grants, errors.Join(failed...)
}

// rebuildPool asks for what a Docker network asked for when it was made.
func (s *Service) rebuildPool(ctx context.Context, req PoolRequest, sub EngineSubnet) (PoolGrant, error) {
	grant, err := s.RequestPool(ctx, req)
	if err != nil {
		return PoolGrant{}, err
	}
	if sub.Gateway.IsValid() && !grant.Gateway.IsValid() {
		_, err = s.RequestAddress(ctx, AddressRequest{Pool: grant.ID, Preferred: sub.Gateway, Gateway: true})
	}
	for _, addr := range sub.Aux {
		if err == nil {
			_, err = s.RequestAddress(ctx, AddressRequest{Pool: grant.ID, Preferred: addr})
		}
	}
	return grant, err
}

// replan makes the planned network that a Docker network names, where it was forgotten: with its subnets, and a pool of the whole
// of each.
func (s *Service) replan(ctx context.Context, n EngineNetwork, reqs []PoolRequest) error {
	if len(reqs) == 0 || reqs[0].Network == "" {
		return nil
	}
	_, err := s.Network(ctx, reqs[0].Network)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	create := &CreateNetwork{Name: reqs[0].Network, Space: reqs[0].Space}
	edits := []Edit{create}
	for i, sub := range n.Subnets {
		create.Subnets = append(create.Subnets, SubnetSpec{CIDR: sub.CIDR, Gateway: sub.Gateway})
		edits = append(edits, &AddPool{Network: create.Name, Subnet: sub.CIDR.String(), Name: reqs[i].Pool})
	}
	_, err = s.Edit(ctx, EditOptions{}, edits...)
	return err
}

// rebuildLeases takes the addresses of an endpoint that runs.
func (s *Service) rebuildLeases(ctx context.Context, name string, e EngineEndpoint, pools []PoolGrant) error {
	var failed []error
	for _, addr := range e.Addresses {
		for _, pool := range pools {
			if !pool.CIDR.Contains(addr) {
				continue
			}
			_, err := s.RequestAddress(ctx, AddressRequest{Pool: pool.ID, Preferred: addr, MAC: e.MAC, Name: name})
			if err != nil {
				err = fmt.Errorf("the container %s: %w", name, err)
			}
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
