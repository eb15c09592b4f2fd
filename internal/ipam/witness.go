package ipam

import (
	"cmp"
	"context"
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
	Live    int          `json:"live"`             // leases held through it, headroom not counted
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
			Created: at.Created, Live: sx.live[id] - len(sx.headroom[id]), Gateway: sx.record.value.Gateway}
		if n := s.ix.network(sx.record.value.Network); n != nil {
			info.Network, info.Planned = n.Name, n.Planned
		}
		all = append(all, info)
	}
	slices.SortFunc(all, orderAttachments)
	return all, nil
}

func orderAttachments(a, b AttachmentInfo) int {
	return cmp.Or(cmp.Compare(a.Space, b.Space), a.CIDR.Addr().Compare(b.CIDR.Addr()), a.Created.Compare(b.Created), cmp.Compare(a.ID.String(), b.ID.String()))
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
	if err != nil || !l.Held() || l.Name != "" || l.Attachment == (ID{}) || l.Kind == Gateway || l.Kind == Headroom || name.Name == "" || len(name.Name) > maxText {
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
		if err != nil || !l.Held() || l.Attachment == (ID{}) || l.Host != s.host || l.Kind == Headroom { // which the host itself gives back
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
