package ipam

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/alloc"
)

// PoolRequest asks for an attachment to a subnet. Nil and zero fields were not given.
type PoolRequest struct {
	Space string
	CIDR  netip.Prefix // zero: choose one
	Range Range        // the subPool (LN-6); needs CIDR

	// For a subnet that is to be chosen:
	IPv6  bool
	Bits  int            // length of its prefix; 0: that of the base
	Avoid []netip.Prefix // what it must not overlap besides: the host's routes

	// For a planned network: its name or id, and the name of the pool to take from. CIDR chooses one of its subnets.
	Network string
	Pool    string
	asked   struct{ network, pool string } // as they were called when the request was first made

	Swarm      bool // a swarm manager asks: it sends no MAC, and asks for everything again after its restart
	Gateway    netip.Addr
	NoGateway  bool
	Forget     *bool
	Quarantine *time.Duration
	Tags       map[string]string
}

// PoolGrant is the answer to a PoolRequest.
type PoolGrant struct {
	ID      ID           // of the attachment
	CIDR    netip.Prefix // of the subnet
	Gateway netip.Prefix // with the subnet's length; zero unless the request named one
}

// RequestPool attaches to the subnet of the given CIDR, which is made if it is not there, or to one that it chooses out of
// the bases (LN-1, LN-7). The same CIDR and range asked for again is a second attachment to the same subnet; one that
// overlaps another subnet of the space, or another range of the subnet, is refused.
func (s *Service) RequestPool(ctx context.Context, req PoolRequest) (PoolGrant, error) {
	if err := req.check(); err != nil {
		return PoolGrant{}, err
	}
	if req.Range == wholeRange(req.CIDR) {
		req.Range = Range{} // the same pool, whichever way it was asked for
	}
	var grant PoolGrant
	err := s.update(ctx, func(c *change) (err error) {
		if err := c.mayTake(); err != nil {
			return err
		}
		if req.Network != "" {
			grant, err = c.attachPlanned(req)
			return err
		}
		if err := c.ensureSpace(req.Space); err != nil {
			return err
		}
		cidr := req.CIDR
		if !cidr.IsValid() {
			cidr, err = s.carve(c, req)
			if err != nil {
				return err
			}
		}
		grant, err = c.attach(req, cidr)
		return err
	})
	return grant, err
}

// check refuses what makes no sense in any state.
func (req *PoolRequest) check() error {
	if req.Network == "" || req.Space != "" {
		if err := CheckName("space", req.Space); err != nil {
			return err
		}
	}
	if req.Network != "" && req.Bits != 0 {
		return &refusal{ErrInvalid, fmt.Sprintf("the subnets of network %s are planned, and have a size; leave out the size", req.Network)}
	}
	if !req.CIDR.IsValid() {
		switch {
		case req.Pool != "" && req.Network == "":
			return &refusal{ErrInvalid, fmt.Sprintf("the pool %s is one of a planned network; say which one with --ipam-opt network=NAME", req.Pool)}
		case !req.Range.IsZero():
			return &refusal{ErrInvalid, fmt.Sprintf("the range %s needs the subnet that it is a part of; give both", req.Range)}
		case req.Gateway.IsValid() && req.Network == "":
			return &refusal{ErrInvalid, fmt.Sprintf("the gateway %s needs the subnet that it is in; give both", req.Gateway)}
		}
		return nil
	}
	if req.CIDR != req.CIDR.Masked() {
		return &refusal{ErrInvalid, fmt.Sprintf("%s has host bits set; the subnet is %s", req.CIDR, req.CIDR.Masked())}
	}
	if req.Bits != 0 {
		return &refusal{ErrInvalid, fmt.Sprintf("the subnet %s has a size already; give the subnet or the size, not both", req.CIDR)}
	}
	if err := req.checkRange(); err != nil {
		return err
	}
	if g := req.Gateway; g.IsValid() && !alloc.Usable(req.CIDR).Contains(g) {
		return &refusal{ErrInvalid, fmt.Sprintf("the gateway %s is not a host address of the subnet %s", g, req.CIDR)}
	}
	return nil
}

func (req *PoolRequest) checkRange() error {
	r := req.Range
	if r.IsZero() {
		return nil
	}
	if r.From().Is4() != req.CIDR.Addr().Is4() {
		return &refusal{ErrInvalid, fmt.Sprintf("the range %s and the subnet %s are of different families", r, req.CIDR)}
	}
	if !req.CIDR.Contains(r.From()) || !req.CIDR.Contains(r.To()) {
		return &refusal{ErrInvalid, fmt.Sprintf("the range %s is not inside the subnet %s", r, req.CIDR)}
	}
	if _, ok := intersect(r.IPRange, alloc.Usable(req.CIDR)); !ok {
		return &refusal{ErrInvalid, fmt.Sprintf("the range %s holds no host address of the subnet %s", r, req.CIDR)}
	}
	return nil
}

// attach makes the attachment, and the subnet where it is not there.
func (c *change) attach(req PoolRequest, cidr netip.Prefix) (PoolGrant, error) {
	sub, err := c.findSubnet(req.Space, cidr)
	if err != nil {
		return PoolGrant{}, err
	}
	if sub != nil {
		return c.join(req, sub)
	}
	if req.Pool != "" {
		return PoolGrant{}, &refusal{ErrNotFound, fmt.Sprintf("no network has the subnet %s yet, so that it has no pool named %s; plan it with `berth network create`", cidr, req.Pool)}
	}
	if sub, err = c.createSubnet(req, cidr); err != nil {
		return PoolGrant{}, err
	}
	return c.hold(req, sub)
}

// join attaches to a subnet that is there.
func (c *change) join(req PoolRequest, found *Subnet) (PoolGrant, error) {
	sub, err := c.joinSubnet(req, found)
	if err != nil {
		return PoolGrant{}, err
	}
	return c.hold(req, sub)
}

// hold makes the attachment, and writes the subnet that it is of.
func (c *change) hold(req PoolRequest, sub *Subnet) (PoolGrant, error) {
	cidr := sub.CIDR
	at := &Attachment{ID: c.attachmentID(req, sub), Space: sub.Space, Subnet: sub.ID, CIDR: cidr, Pool: req.Range, Named: req.Pool, AskedNetwork: req.asked.network, AskedPool: req.asked.pool, Gateway: req.Gateway, Swarm: req.Swarm, Host: c.host, Created: c.now}
	sub.Attachments = append(sub.Attachments, at.ID)
	if err := c.setAttachment(at.ID, at); err != nil {
		return PoolGrant{}, err
	}
	if err := c.setSubnet(sub); err != nil {
		return PoolGrant{}, err
	}
	if _, err := c.event(&Event{Verb: PoolAttached, Space: sub.Space, Subnet: cidr, Attachment: at.ID, Detail: req.Range.String()}); err != nil {
		return PoolGrant{}, err
	}
	grant := PoolGrant{ID: at.ID, CIDR: cidr}
	if req.Gateway.IsValid() {
		t := &target{change: c, at: at, sub: sub, sx: c.ix.subnets[sub.ID], pool: at.Named}
		if _, err := t.takeGateway(AddressRequest{Pool: at.ID, Preferred: req.Gateway, Gateway: true}); err != nil {
			return PoolGrant{}, err
		}
		grant.Gateway = netip.PrefixFrom(req.Gateway, cidr.Bits())
	}
	return grant, nil
}

// attachmentID is a new id or, where the state is rebuilt from what runs, one that is worked out from what was asked for: the
// engine goes on saying the one that it was told, and tells nobody which.
func (c *change) attachmentID(req PoolRequest, sub *Subnet) ID {
	if !c.forgets {
		return c.newID()
	}
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d", sub.Space, sub.CIDR, req.Range, req.Pool, n))
		if id := workedOut(sum); c.ix.attachments[id].value == nil {
			return id
		}
	}
}

// findSubnet returns the subnet of exactly this CIDR, nil where the CIDR is free, and an error where it overlaps another
// (LN-5).
func (c *change) findSubnet(space string, cidr netip.Prefix) (*Subnet, error) {
	sub, err := c.overlapping(space, cidr, ID{})
	if err != nil || sub == nil || sub.CIDR == cidr {
		return sub, err
	}
	return nil, c.overlapError(cidr, sub, "choose another subnet, or another space by --ipam-opt space=NAME")
}

func (c *change) overlapError(cidr netip.Prefix, other *Subnet, todo string) error {
	return &refusal{ErrOverlap, fmt.Sprintf("the subnet %s overlaps %s, which space %s has already (network %s); %s",
		cidr, other.CIDR, other.Space, c.networkName(other.Network), todo)}
}

func (c *change) networkName(id ID) string {
	if n := c.ix.network(id); n != nil {
		return n.Name
	}
	return id.Short()
}

// createSubnet makes a subnet and the network that carries it. The caller writes the subnet's record.
func (c *change) createSubnet(req PoolRequest, cidr netip.Prefix) (*Subnet, error) {
	n := &Network{ID: c.newID(), Space: req.Space, Created: c.now}
	n.Name = "net-" + n.ID.Short()
	if taken, err := c.tx.Get(nameKey(nil, n.Name)); err != nil || taken != nil {
		n.Name = "net-" + n.ID.String()
	}
	req.apply(n)
	pool := req.Range
	if pool.IsZero() {
		pool = wholeRange(cidr)
	}
	id, err := c.event(&Event{Verb: SubnetCreated, Space: req.Space, Subnet: cidr, Name: n.Name})
	if err != nil {
		return nil, err
	}
	sub := &Subnet{ID: c.newID(), Network: n.ID, Space: req.Space, CIDR: cidr, NoGateway: req.NoGateway,
		Pools: []Pool{{Range: pool}}, Created: eventTime(id)}
	return sub, c.setNetwork(n.ID, n)
}

// joinSubnet prepares a subnet that is there for one more attachment. The caller writes its record.
func (c *change) joinSubnet(req PoolRequest, found *Subnet) (*Subnet, error) {
	sub := *found
	sub.Pools, sub.Attachments = slices.Clone(found.Pools), slices.Clone(found.Attachments)
	n := c.ix.network(sub.Network)
	if n == nil {
		return nil, fmt.Errorf("%w: the network of subnet %s is not there; run `berth fsck`", ErrDamaged, sub.CIDR)
	}
	if n.Stage != "" {
		return nil, &refusal{ErrInUse, fmt.Sprintf("the subnet %s belongs to network %s, which is %s at this moment", sub.CIDR, n.Name, n.Stage)}
	}
	if n.Planned || req.Network != "" || req.Pool != "" {
		return &sub, c.joinPlan(req, &sub, n)
	}
	if err := c.joinPool(&sub, req.Range); err != nil {
		return nil, err
	}
	edited := *n
	edited.Tags = maps.Clone(n.Tags)
	if !req.apply(&edited) {
		return &sub, nil
	}
	if _, err := c.event(&Event{Verb: PolicyChanged, Space: sub.Space, Subnet: sub.CIDR, Name: n.Name}); err != nil {
		return nil, err
	}
	return &sub, c.setNetwork(n.ID, &edited)
}

// joinPool adds the range to the subnet's pools, unless it is one of them.
func (c *change) joinPool(sub *Subnet, r Range) error {
	if r.IsZero() {
		r = wholeRange(sub.CIDR)
	}
	for _, p := range sub.Pools {
		if p.Range == r {
			return nil
		}
		if p.Range.Overlaps(r.IPRange) {
			return &refusal{ErrOverlap, fmt.Sprintf("the range %s overlaps the range %s, which network %s has in the subnet %s already; take exactly that one or one beside it",
				r, p.Range, c.networkName(sub.Network), sub.CIDR)}
		}
	}
	sub.Pools = append(sub.Pools, Pool{Range: r})
	return nil
}

// apply sets what the request says of the network, and tells whether that changed anything.
func (req *PoolRequest) apply(n *Network) bool {
	before := n.Policy
	if req.Forget != nil {
		n.Policy.Forget = *req.Forget
	}
	if req.Quarantine != nil {
		n.Policy.Quarantine = *req.Quarantine
	}
	changed := n.Policy != before
	for key, value := range req.Tags {
		if old, ok := n.Tags[key]; !ok || old != value {
			if n.Tags == nil {
				n.Tags = map[string]string{}
			}
			n.Tags[key] = value
			changed = true
		}
	}
	return changed
}

// ensureSpace makes a space on its first use (LN-5).
func (c *change) ensureSpace(name string) error {
	raw, err := c.tx.Get(spaceKey(nil, name))
	if err != nil || raw != nil {
		return err
	}
	if _, err := c.putJSON(spaceKey(nil, name), &Space{Name: name, Created: c.now}, false); err != nil {
		return err
	}
	c.ix.space(name)
	_, err = c.event(&Event{Verb: SpaceCreated, Space: name})
	return err
}
