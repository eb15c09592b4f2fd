package service

import (
	"context"
	"errors"
	"fmt"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
)

// parseNetwork reads what a Docker network requested for one of its subnets when it was created.
type parseNetwork = func(ipam.EngineNetwork, ipam.EngineSubnet) (ipam.PoolRequest, error)

// Rebuild recreates this host's attachments and leases from the running containers, for a store that forgets.
// parse reads a Docker network's request for a subnet. Rebuild does not stop at an error. It returns all errors
// together at the end; if two containers run with one address, that is AlreadyInUse.
func (s *Service) Rebuild(ctx context.Context, view ipam.EngineView, parse parseNetwork) error {
	pools := map[string][]ipam.PoolGrant{} // by the Docker network
	var failed []error
	for _, n := range view.Networks {
		grants, err := rebuildNetwork(ctx, s.Ledger, n, parse)
		if err != nil {
			failed = append(failed, fmt.Errorf("the Docker network %s: %w", n.Name, err))
		}
		pools[n.ID] = grants
	}
	for _, container := range view.Containers {
		for _, e := range container.Endpoints {
			failed = append(failed, rebuildLeases(ctx, s.Ledger, container.Name, e, pools[e.Network]))
		}
	}
	return errors.Join(failed...)
}

// rebuildNetwork recreates the attachments of a Docker network and the network's own addresses.
func rebuildNetwork(ctx context.Context, s *ledger.Ledger, n ipam.EngineNetwork,
	parse parseNetwork) (grants []ipam.PoolGrant, err error) {
	var reqs []ipam.PoolRequest
	for _, sub := range n.Subnets {
		req, err := parse(n, sub)
		if err != nil {
			return nil, err
		}
		reqs = append(reqs, req)
	}
	if err := replan(ctx, s, n, reqs); err != nil {
		return nil, err
	}
	var failed []error
	for i, req := range reqs {
		grant, err := rebuildPool(ctx, s, req, n.Subnets[i])
		failed = append(failed, err)
		if grant.ID != (ipam.ID{}) {
			grants = append(grants, grant)
		}
	}
	return grants, errors.Join(failed...)
}

// rebuildPool repeats the pool request that a Docker network made when it was created.
func rebuildPool(ctx context.Context, s *ledger.Ledger, req ipam.PoolRequest,
	sub ipam.EngineSubnet) (ipam.PoolGrant, error) {
	// the engine knows what the server offered then; whether the server answers now is checked later
	if req.FromDHCP() {
		req.CIDR, req.Gateway, req.NoGateway = sub.CIDR, sub.Gateway, !sub.Gateway.IsValid()
		req.AskedMAC = req.AskedMAC || req.DHCPID == ipam.LANByMAC
	}
	grant, err := allocator.Of(ledger.Alone(s)).RequestPool(ctx, req)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	if sub.Gateway.IsValid() && !grant.Gateway.IsValid() {
		_, err = allocator.Of(ledger.Alone(s)).RequestAddress(ctx,
			ipam.AddressRequest{Pool: grant.ID, Preferred: sub.Gateway, Gateway: true})
	}
	for _, addr := range sub.Aux {
		if err == nil {
			_, err = allocator.Of(ledger.Alone(s)).RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, Preferred: addr})
		}
	}
	return grant, err
}

// replan recreates a forgotten planned network that a Docker network names. Each subnet gets one pool over all its
// addresses.
func replan(ctx context.Context, s *ledger.Ledger, n ipam.EngineNetwork, reqs []ipam.PoolRequest) error {
	if len(reqs) == 0 || reqs[0].Network == "" {
		return nil
	}
	_, err := view.Of(ledger.Alone(s)).Network(ctx, reqs[0].Network)
	if !errors.Is(err, ipam.ErrNotFound) {
		return err
	}
	create := &ipam.CreateNetwork{Name: reqs[0].Network, Space: reqs[0].Space}
	edits := []ipam.Edit{create}
	for i, sub := range n.Subnets {
		create.Subnets = append(create.Subnets, ipam.SubnetSpec{CIDR: sub.CIDR, Gateway: sub.Gateway})
		edits = append(edits, &ipam.AddPool{Network: create.Name, Subnet: sub.CIDR.String(), Name: reqs[i].Pool})
	}
	_, err = edit.Of(s).Edit(ctx, ipam.EditOptions{}, edits...)
	return err
}

// rebuildLeases takes the addresses of a running endpoint.
func rebuildLeases(ctx context.Context, s *ledger.Ledger, name string, e ipam.EngineEndpoint,
	pools []ipam.PoolGrant) error {
	var failed []error
	for _, addr := range e.Addresses {
		for _, pool := range pools {
			if !pool.CIDR.Contains(addr) {
				continue
			}
			_, err := allocator.Of(ledger.Alone(s)).RequestAddress(ctx,
				ipam.AddressRequest{Pool: pool.ID, Preferred: addr, MAC: e.MAC, Name: name, Seen: true})
			if err != nil {
				err = fmt.Errorf("the container %s: %w", name, err)
			}
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
