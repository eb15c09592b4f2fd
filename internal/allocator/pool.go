package allocator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Allocator answers what the engine and its witness ask.
type Allocator struct {
	homes   ledger.Homes
	waiting *waiting // releases that the host's own store could not write
}

// Of returns the Allocator over the stores of a host's records.
func Of(homes ledger.Homes) Allocator { return Allocator{homes, new(waiting)} }

// RequestPool attaches to the subnet of the given CIDR and creates it if necessary. Without a CIDR it carves one from
// the bases. A repeated CIDR and range is a second attachment to the same subnet. It refuses an overlap
// with another subnet of the space, another range of the subnet, or one of Docker's own subnets.
func (s Allocator) RequestPool(ctx context.Context, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	if err := check(&req); err != nil {
		return ipam.PoolGrant{}, err
	}
	if req.Range == WholeRange(req.CIDR) {
		req.Range = ipam.Range{} // the same pool, however it was requested
	}
	if err := s.fromServer(ctx, &req); err != nil {
		return ipam.PoolGrant{}, err
	}
	if err := s.MakeWaiting(ctx); err != nil {
		return ipam.PoolGrant{}, err
	}
	if err := s.endUnnetworked(ctx, &req); err != nil {
		return ipam.PoolGrant{}, err
	}
	var grant ipam.PoolGrant
	err := Update(ctx, s.homes.Own, func(c *ledger.Change) (err error) {
		if err := c.MayTake(); err != nil {
			return err
		}
		if req.Network != "" {
			grant, err = attachPlanned(c, req)
			return err
		}
		if err := c.NameSpace(req.Space); err != nil {
			return err
		}
		cidr := req.CIDR
		if !cidr.IsValid() {
			cidr, err = carve(s.homes.Own, c, req)
			if err != nil {
				return err
			}
		}
		if err := offDocker(c, req.Docker, cidr); err != nil {
			return err
		}
		grant, err = attach(c, req, cidr)
		return err
	})
	return grant, err
}

// check refuses a request that makes no sense in any state.
func check(req *ipam.PoolRequest) error {
	if req.Network == "" || req.Space != "" {
		if err := ipam.CheckName("space", req.Space); err != nil {
			return err
		}
	}
	if req.Network != "" && req.Bits != 0 {
		return ipam.Refuse(ipam.ErrInvalid, "the planned subnets of network %s already have sizes; leave out the size",
			req.Network)
	}
	if err := checkDHCP(req); err != nil {
		return err
	}
	if !req.CIDR.IsValid() {
		switch {
		case req.Pool != "" && req.Network == "":
			return ipam.Refuse(ipam.ErrInvalid, "the pool %s belongs to a planned network; name that network with "+
				"--ipam-opt network=NAME", req.Pool)
		case !req.Range.IsZero():
			return ipam.Refuse(ipam.ErrInvalid, "the range %s needs its subnet; give both", req.Range)
		case req.Gateway.IsValid() && req.Network == "":
			return ipam.Refuse(ipam.ErrInvalid, "the gateway %s needs its subnet; give both", req.Gateway)
		}
		return nil
	}
	if err := ipam.CheckPrefix(req.CIDR); err != nil {
		return err
	}
	if req.Bits != 0 {
		return ipam.Refuse(ipam.ErrInvalid, "the subnet %s has a size already; give the subnet or the size, not both",
			req.CIDR)
	}
	if err := checkRange(req); err != nil {
		return err
	}
	if g := req.Gateway; g.IsValid() && !alloc.Usable(req.CIDR).Contains(g) {
		return ipam.Refuse(ipam.ErrInvalid, "the gateway %s is not a host address of the subnet %s", g, req.CIDR)
	}
	return nil
}

func checkRange(req *ipam.PoolRequest) error {
	r := req.Range
	if r.IsZero() {
		return nil
	}
	if r.From().Is4() != req.CIDR.Addr().Is4() {
		return ipam.Refuse(ipam.ErrInvalid, "the range %s and the subnet %s are of different families", r, req.CIDR)
	}
	if !req.CIDR.Contains(r.From()) || !req.CIDR.Contains(r.To()) {
		return ipam.Refuse(ipam.ErrInvalid, "the range %s is not inside the subnet %s", r, req.CIDR)
	}
	if _, ok := ledger.Intersect(r.IPRange, alloc.Usable(req.CIDR)); !ok {
		return ipam.Refuse(ipam.ErrInvalid, "the range %s holds no host address of the subnet %s", r, req.CIDR)
	}
	return nil
}

// attach creates the attachment, and the subnet if it does not exist.
func attach(c *ledger.Change, req ipam.PoolRequest, cidr netip.Prefix) (ipam.PoolGrant, error) {
	sub, err := c.FindSubnet(req.Space, cidr)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	if sub != nil {
		return join(c, req, sub)
	}
	if req.Pool != "" {
		return ipam.PoolGrant{}, ipam.Refuse(ipam.ErrNotFound, "no network has the subnet %s yet, so it has no pool "+
			"named %s", cidr, req.Pool).Advise(ipam.DoPlanNetwork)
	}
	if sub, err = createSubnet(c, req, cidr); err != nil {
		return ipam.PoolGrant{}, err
	}
	return hold(c, req, sub)
}

// join attaches to an existing subnet.
func join(c *ledger.Change, req ipam.PoolRequest, found *ipam.Subnet) (ipam.PoolGrant, error) {
	sub, err := joinSubnet(c, req, found)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	return hold(c, req, sub)
}

// hold creates the attachment and writes its subnet.
func hold(c *ledger.Change, req ipam.PoolRequest, sub *ipam.Subnet) (ipam.PoolGrant, error) {
	cidr := sub.CIDR
	at := &ipam.Attachment{
		ID: attachmentID(c, req, sub), Space: sub.Space, Subnet: sub.ID, CIDR: cidr, Pool: req.Range, Named: req.Pool,
		Gateway: req.Gateway, Swarm: req.Swarm, Chosen: !req.CIDR.IsValid(), Host: c.Host(), Created: c.Now(),
		Beneath:      ipam.RoutesOver(cidr, req.Routes),
		AskedNetwork: req.Asked.Network, AskedPool: req.Asked.Pool,
	}
	sub.Attachments = append(sub.Attachments, at.ID)
	if err := c.SetAttachment(at.ID, at); err != nil {
		return ipam.PoolGrant{}, err
	}
	if err := c.SetSubnet(sub); err != nil {
		return ipam.PoolGrant{}, err
	}
	if _, err := c.Event(&ipam.Event{Verb: ipam.PoolAttached, Space: sub.Space, Subnet: cidr, Attachment: at.ID,
		Detail: req.Range.String()}); err != nil {
		return ipam.PoolGrant{}, err
	}
	grant := ipam.PoolGrant{ID: at.ID, CIDR: cidr}
	if req.Gateway.IsValid() {
		gateway := ipam.AddressRequest{Pool: at.ID, Preferred: req.Gateway, Gateway: true}
		if _, err := NewTarget(c, at, sub, at.Named).takeGateway(gateway); err != nil {
			return ipam.PoolGrant{}, err
		}
		grant.Gateway = netip.PrefixFrom(req.Gateway, cidr.Bits())
	}
	return grant, nil
}

// attachmentID returns a new id. If the state is rebuilt from the running containers, it derives the id from the
// request. The engine keeps using the id that it got, and does not reveal it.
func attachmentID(c *ledger.Change, req ipam.PoolRequest, sub *ipam.Subnet) ipam.ID {
	if !c.Forgets() {
		return c.NewID()
	}
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d", sub.Space, sub.CIDR, req.Range, req.Pool,
			n))
		if id := ipam.WorkedOut(sum); c.Index().Attachment(id) == nil {
			return id
		}
	}
}

// createSubnet creates a subnet and its network. The caller writes the subnet's record.
func createSubnet(c *ledger.Change, req ipam.PoolRequest, cidr netip.Prefix) (*ipam.Subnet, error) {
	if err := ipam.CheckSubnet(cidr); err != nil {
		return nil, err
	}
	n := &ipam.Network{ID: c.NewID(), Space: req.Space, Created: c.Now()}
	n.Name = "net-" + n.ID.Short()
	if taken, err := c.Tx().Get(ledger.NameKey(nil, n.Name)); err != nil || taken != nil {
		n.Name = "net-" + n.ID.String()
	}
	n, _, err := apply(&req, n)
	if err != nil {
		return nil, err
	}
	pools := []ipam.Pool{}
	switch {
	case req.FromDHCP():
		n.Type = ipam.Dynamic
	case req.Range.IsZero():
		pools = append(pools, ipam.Pool{Range: WholeRange(cidr)})
	default:
		pools = append(pools, ipam.Pool{Range: req.Range})
	}
	id, err := c.Event(&ipam.Event{Verb: ipam.SubnetCreated, Space: req.Space, Subnet: cidr, Name: n.Name,
		Network: n.Name, NetworkID: n.ID})
	if err != nil {
		return nil, err
	}
	sub := &ipam.Subnet{ID: c.NewID(), Network: n.ID, Space: req.Space, CIDR: cidr, NoGateway: req.NoGateway,
		DHCP: req.FromDHCP(), LANTerms: req.LANTerms, Pools: pools, Created: ipam.EventTime(id)}
	if err := checkTerms(c, &req, sub, false); err != nil {
		return nil, err
	}
	return sub, c.SetNetwork(n.ID, n)
}

// joinSubnet prepares an existing subnet for one more attachment. The caller writes its record.
func joinSubnet(c *ledger.Change, req ipam.PoolRequest, found *ipam.Subnet) (*ipam.Subnet, error) {
	sub := *found
	sub.Pools, sub.Attachments = slices.Clone(found.Pools), slices.Clone(found.Attachments)
	n := c.Index().Network(sub.Network)
	if n == nil {
		return nil, ipam.Help(fmt.Errorf("%w: the network of subnet %s is missing", ipam.ErrDamaged, sub.CIDR),
			ipam.Advise(ipam.DoRunFsck))
	}
	if n.Stage != "" {
		return nil, ipam.Refuse(ipam.ErrInUse, "the subnet %s belongs to network %s, which is being %s; try again "+
			"when that is done", sub.CIDR, n.Name, n.Stage.Being())
	}
	planned := n.Planned || req.Network != "" || req.Pool != ""
	if err := checkTerms(c, &req, &sub, planned); err != nil {
		return nil, err
	}
	if planned {
		return &sub, joinPlan(c, req, &sub, n)
	}
	if !sub.FromDHCP() {
		if err := joinPool(c, &sub, req.Range); err != nil {
			return nil, err
		}
	}
	edited, changed, err := apply(&req, n)
	if err != nil || !changed {
		return &sub, err
	}
	if _, err := c.Event(&ipam.Event{Verb: ipam.PolicyChanged, Space: sub.Space, Subnet: sub.CIDR,
		Name: n.Name}); err != nil {
		return nil, err
	}
	return &sub, c.SetNetwork(n.ID, edited)
}

// joinPool adds the range to the subnet's pools unless it exists.
func joinPool(c *ledger.Change, sub *ipam.Subnet, r ipam.Range) error {
	if r.IsZero() {
		r = WholeRange(sub.CIDR)
	}
	for _, p := range sub.Pools {
		if p.Range == r {
			return nil
		}
		if p.Range.Overlaps(r.IPRange) {
			return ipam.Refuse(ipam.ErrOverlap, "the range %s overlaps the range %s, which network %s already has in "+
				"the subnet %s; use that range or one next to it", r, p.Range, c.NetworkName(sub.Network), sub.CIDR)
		}
	}
	sub.Pools = append(sub.Pools, ipam.Pool{Range: r})
	return nil
}

// apply returns the network with the settings of the request, and whether they differ. Tags have the same limits as in
// an edit.
func apply(req *ipam.PoolRequest, n *ipam.Network) (edited *ipam.Network, changed bool, err error) {
	e := ipam.ModifyNetwork{Tags: map[string]*string{}, Quarantine: (*ipam.Duration)(req.Quarantine)}
	if req.Forget != nil {
		e.Sticky = new(!*req.Forget)
	}
	for key, value := range req.Tags {
		e.Tags[key] = &value
	}
	edited, err = e.Over(*n)
	return edited, !reflect.DeepEqual(edited, n), err
}
