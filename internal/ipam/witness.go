package ipam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// LeaseRef names one lease or memory of an address, and no later one.
type LeaseRef struct {
	Space   string     `json:"space"`
	Address netip.Addr `json:"address"`
	ID      uint64     `json:"id"`
}

// LeaseName is what a witness has learnt of a lease.
type LeaseName struct {
	LeaseRef
	Name string // the endpoint's
}

// AttachmentInfo is a Docker network's hold on a subnet as the witness sees it.
type AttachmentInfo struct {
	ID      ID           `json:"id"`
	Space   string       `json:"space"`
	CIDR    netip.Prefix `json:"cidr"`
	Network string       `json:"network"` // its name
	Planned bool         `json:"planned"`
	Host    string       `json:"host"`
	Swarm   bool         `json:"swarm"`
	Range   Range        `json:"range,omitzero"`
	Named   string       `json:"named,omitempty"`
	Created time.Time    `json:"created"`
	Live    int          `json:"live"`             // leases held through it
	Gateway netip.Addr   `json:"gateway,omitzero"` // the subnet's
}

// Attachments lists all attachments that have not ended, by space, subnet and age.
func (s *Service) Attachments(ctx context.Context) ([]AttachmentInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []AttachmentInfo
	for id, known := range s.ix.attachments {
		at, sx := known.value, s.ix.subnets[known.value.Subnet]
		if at.Ended || sx == nil {
			continue
		}
		info := AttachmentInfo{ID: id, Space: at.Space, CIDR: at.CIDR, Host: at.Host, Swarm: at.Swarm, Range: at.Pool, Named: at.Named,
			Created: at.Created, Live: sx.live[id], Gateway: sx.record.value.Gateway}
		if n := s.ix.network(sx.record.value.Network); n != nil {
			info.Network, info.Planned = n.Name, n.Planned
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b AttachmentInfo) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), a.CIDR.Addr().Compare(b.CIDR.Addr()), a.Created.Compare(b.Created), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return all, nil
}

// NameLeases writes the names of endpoints into leases that have none: of engines that send no names. What is no longer that
// lease is passed over. At most MaxEdits are named at once.
func (s *Service) NameLeases(ctx context.Context, names []LeaseName) error {
	for page := range slices.Chunk(names, MaxEdits) {
		err := s.update(ctx, func(c *change) error {
			for _, name := range page {
				if err := c.nameLease(name); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *change) nameLease(name LeaseName) error {
	sub, l, err := c.leaseOf(name.LeaseRef)
	if err != nil || !l.Held() || l.Name != "" || l.Attachment == (ID{}) || l.Kind == Gateway || name.Name == "" || len(name.Name) > maxText {
		return err
	}
	e := &Event{Verb: LeaseNamed, Space: sub.Space, Subnet: sub.CIDR, Address: l.Address, Lease: l.ID, Attachment: l.Attachment, MAC: l.MAC, Name: name.Name}
	if _, err := c.event(e); err != nil {
		return err
	}
	after := *l
	after.Name = name.Name
	return c.setLease(sub.ID, l.Address, l, &after)
}

// leaseOf reads the lease or memory that ref names; nil where it is another one now, or none.
func (c *change) leaseOf(ref LeaseRef) (*Subnet, *Lease, error) {
	cidr, ok := c.ix.space(ref.Space).blocks.Overlap(netip.PrefixFrom(ref.Address, ref.Address.BitLen()))
	if !ok {
		return nil, nil, nil
	}
	sub := c.ix.subnets[c.ix.space(ref.Space).ids[cidr]].record.value
	l, err := c.lease(sub.ID, ref.Address)
	if err != nil || l == nil || l.ID != ref.ID {
		return sub, nil, err
	}
	return sub, l, nil
}

// ReleaseLease ends one lease of this host, which was taken through an attachment, and tells whether it was still there.
func (s *Service) ReleaseLease(ctx context.Context, ref LeaseRef) (done bool, err error) {
	err = s.update(ctx, func(c *change) error {
		done = false
		sub, l, err := c.leaseOf(ref)
		if err != nil || !l.Held() || l.Attachment == (ID{}) || l.Host != s.host {
			return err
		}
		done = true
		return c.release(sub, l)
	})
	return done && err == nil, err
}

// ForgetMemory ends one memory, and tells whether it was still there.
func (s *Service) ForgetMemory(ctx context.Context, ref LeaseRef) (done bool, err error) {
	err = s.update(ctx, func(c *change) error {
		done = false
		sub, l, err := c.leaseOf(ref)
		if err != nil || !l.Remembered() {
			return err
		}
		done = true
		return c.setLease(sub.ID, l.Address, l, l.unheld())
	})
	return done && err == nil, err
}

// Rebuild makes this host's attachments and leases out of what an engine says that runs, in a store that forgets (BO-4). parse
// reads a Docker network's wish for a subnet. What cannot be made is told of together in the end, and the rest is there: an
// address that runs twice is refused with AlreadyInUse.
func (s *Service) Rebuild(ctx context.Context, view EngineView, parse func(EngineNetwork, EngineSubnet) (PoolRequest, error)) error {
	pools := map[string][]PoolGrant{} // by the Docker network
	var failed []error
	for _, n := range view.Networks {
		for _, sub := range n.Subnets {
			req, err := parse(n, sub)
			if err != nil {
				failed = append(failed, fmt.Errorf("the Docker network %s: %w", n.Name, err))
				continue
			}
			grant, err := s.rebuildPool(ctx, req, sub)
			failed = append(failed, err)
			if grant.ID != (ID{}) {
				pools[n.ID] = append(pools[n.ID], grant)
			}
		}
	}
	for _, container := range view.Containers {
		for _, e := range container.Endpoints {
			failed = append(failed, s.rebuildLeases(ctx, container.Name, e, pools[e.Network]))
		}
	}
	return errors.Join(failed...)
}

// rebuildPool asks for what a Docker network asked for when it was made.
func (s *Service) rebuildPool(ctx context.Context, req PoolRequest, sub EngineSubnet) (PoolGrant, error) {
	if err := s.replan(ctx, req, sub); err != nil {
		return PoolGrant{}, err
	}
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

// replan makes the planned network that a Docker network names, where it was forgotten: with its subnet, and a pool of the
// whole of that.
func (s *Service) replan(ctx context.Context, req PoolRequest, sub EngineSubnet) error {
	if req.Network == "" {
		return nil
	}
	_, err := s.Network(ctx, req.Network)
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	_, err = s.Edit(ctx, EditOptions{},
		&CreateNetwork{Name: req.Network, Space: req.Space, Subnets: []SubnetSpec{{CIDR: sub.CIDR, Gateway: sub.Gateway}}},
		&AddPool{Network: req.Network, Subnet: sub.CIDR.String(), Name: req.Pool})
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
