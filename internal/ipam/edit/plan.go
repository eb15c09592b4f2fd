package edit

import (
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Plan is the network that an edit changes, as it was read in the transaction.
type Plan struct {
	*ledger.Change
	N *ipam.Network
}

// Called is what the network is called to people, in refusals.
func (p *Plan) Called() string { return p.ShownName(p.N) }

// OpenPlan opens the network that an edit names. The first one must have the revision that the requester saw, where one
// was given.
func OpenPlan(c *ledger.Change, ref string, e ipam.Edit) (*Plan, error) {
	n, err := c.NetworkOf(ref, e)
	if err != nil {
		return nil, err
	}
	of := requestOf(c)
	if seen := of.match; seen != 0 && seen != n.LastRevision() {
		return nil, ipam.Refuse(ipam.ErrChanged,
			"network %s was changed since you read it (revision %d, now %d); read it "+
				"again, and change that", n.Name, seen, n.LastRevision())
	}
	of.match = 0
	return &Plan{c, n}, nil
}

// Note writes the event of an edit and gives the network a new revision, unless nobody sees it yet: then it gets one
// when all of it is there. What changes nothing has no event.
func (p *Plan) Note(e *ipam.Event, before, after any) error {
	if same, err := Nothing(before, after); err != nil {
		return err
	} else if same {
		return nil
	}
	id, err := p.Tell(e, before, after)
	if err != nil {
		return err
	}
	if p.N.Stage != "" {
		return nil
	}
	edited := *p.N
	edited.Planned, edited.Revision = true, id
	p.N = &edited
	return p.SetNetwork(edited.ID, &edited)
}

// Nothing tells whether a modification leaves things as they were.
func Nothing(before, after any) (bool, error) {
	if before == nil || after == nil {
		return false, nil
	}
	was, err := rawJSON(before)
	if err != nil {
		return false, err
	}
	is, err := rawJSON(after)
	return string(was) == string(is), err
}

// Tell writes the event of a change in the network that is no change of its plan.
func (p *Plan) Tell(e *ipam.Event, before, after any) (id uint64, err error) {
	e.Space, e.Network, e.NetworkID = p.N.Space, p.ShownName(p.N), p.N.ID
	if e.Before, err = rawJSON(before); err != nil {
		return 0, err
	}
	if e.After, err = rawJSON(after); err != nil {
		return 0, err
	}
	return p.Event(e)
}

// Keep makes a network that Docker's request made a planned one: somebody counts on it.
func (p *Plan) Keep() error {
	if p.N.Planned {
		return nil
	}
	edited := *p.N
	edited.Planned = true
	p.N = &edited
	return p.SetNetwork(edited.ID, &edited)
}

// Subnets lists the network's subnets in the order in which they are searched.
func (p *Plan) Subnets() ([]*ipam.Subnet, error) {
	nx := p.Index().NetworkIndex(p.N.ID)
	if nx == nil {
		return nil, nil
	}
	all := make([]*ipam.Subnet, 0, len(nx.Subnets()))
	for _, id := range nx.Subnets() {
		sub, err := p.ReadSubnet(p.Index().Subnet(id).Record())
		if err != nil {
			return nil, err
		}
		all = append(all, sub)
	}
	return all, nil
}

// subnet finds a subnet of the network by CIDR, name or id (GA-11).
func (p *Plan) subnet(ref string) (*ipam.Subnet, error) {
	nx := p.Index().NetworkIndex(p.N.ID)
	id := nx.SubnetNamed(ref)
	if cidr, err := netip.ParsePrefix(ref); err == nil {
		id = p.Index().SubnetAt(p.N.Space, cidr)
	}
	if id == (ipam.ID{}) {
		for _, other := range nx.Subnets() {
			if other.String() == ref || other.Short() == ref {
				id = other
			}
		}
	}
	sx := p.Index().Subnet(id)
	if sx == nil || sx.Record().Network != p.N.ID {
		return nil, ipam.Refuse(ipam.ErrNotFound, "network %s has no subnet %q; it has %s", p.Called(), ref,
			p.SubnetList())
	}
	return p.ReadSubnet(sx.Record())
}

// SubnetList names the network's subnets for an error.
func (p *Plan) SubnetList() string {
	var all []netip.Prefix
	if nx := p.Index().NetworkIndex(p.N.ID); nx != nil {
		for _, id := range nx.Subnets() {
			all = append(all, p.Index().Subnet(id).Record().CIDR)
		}
	}
	if len(all) == 0 {
		return "no subnet"
	}
	return ipam.Summarize("subnet", all)
}

// holding finds the subnet of the network that a range lies in.
func (p *Plan) holding(r ipam.Range) (*ipam.Subnet, error) {
	if r.IsZero() {
		return nil, ipam.Refuse(ipam.ErrInvalid, "a range is missing: write one as A-B, A+N, a CIDR, or one address")
	}
	if sx := p.Index().Overlapping(p.N.Space, netip.PrefixFrom(r.From(), r.From().BitLen())); sx != nil {
		sub, err := p.ReadSubnet(sx.Record())
		switch {
		case err != nil:
			return nil, err
		case sub.Network != p.N.ID:
		case ipam.Covers(sub.CIDR, r.IPRange):
			return sub, nil
		default:
			return nil, ipam.Refuse(ipam.ErrInvalid,
				"the range %s runs over the end of the subnet %s (%s); give one range for "+
					"each subnet", r, sub.CIDR, ipam.LastAddr(sub.CIDR))
		}
	}
	return nil, ipam.Refuse(ipam.ErrInvalid, "no subnet of network %s holds %s; it has %s", p.Called(), r, p.SubnetList())
}

// NameFree refuses a name that another network has.
func NameFree(c *ledger.Change, name string) error {
	if err := ipam.CheckName("network", name); err != nil {
		return err
	}
	taken, err := c.Tx().Get(ledger.NameKey(nil, name))
	if err != nil {
		return err
	}
	if taken == nil {
		return nil
	}
	return ipam.Refuse(ipam.ErrInUse, "there is a network %s already; choose another name", name)
}
