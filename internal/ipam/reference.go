package ipam

import (
	"fmt"
	"net/netip"
	"strings"
)

// plan is the network that an edit changes, as it was read in the transaction.
type plan struct {
	*change
	n *Network
}

// plan opens a network for an edit. The first one must have the revision that the requester saw, where one was given.
func (c *change) plan(ref string) (*plan, error) {
	n, err := c.network(ref)
	if err != nil {
		return nil, err
	}
	if seen := c.edit.match; seen != 0 && seen != n.revision() {
		return nil, &refusal{ErrChanged, fmt.Sprintf("network %s was changed since you read it (revision %d, now %d); read it again, and change that", n.Name, seen, n.revision())}
	}
	c.edit.match = 0
	return &plan{c, n}, nil
}

// note writes the event of an edit and gives the network a new revision.
// What changes nothing has no event.
func (p *plan) note(e *Event, before, after any) error {
	if same, err := nothing(before, after); err != nil || same {
		return err
	}
	id, err := p.tell(e, before, after)
	if err != nil {
		return err
	}
	edited := *p.n
	edited.Planned, edited.Revision = true, id
	p.n = &edited
	return p.setNetwork(edited.ID, &edited)
}

// nothing tells whether a modification leaves things as they were.
func nothing(before, after any) (bool, error) {
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

// tell writes the event of a change in the network that is no change of its plan.
func (p *plan) tell(e *Event, before, after any) (id uint64, err error) {
	e.Space, e.Network = p.n.Space, p.n.Name
	if e.Before, err = rawJSON(before); err != nil {
		return 0, err
	}
	if e.After, err = rawJSON(after); err != nil {
		return 0, err
	}
	return p.event(e)
}

// keep makes a network that Docker's request made a planned one: somebody counts on it.
func (p *plan) keep() error {
	if p.n.Planned {
		return nil
	}
	edited := *p.n
	edited.Planned = true
	p.n = &edited
	return p.setNetwork(edited.ID, &edited)
}

// findNetwork reads the network of a name or an id, whole or its first eight digits; nil where there is none.
func (c *change) findNetwork(ref string) (*Network, error) {
	id, err := c.networkID(ref)
	if err != nil || id == (ID{}) {
		return nil, err
	}
	raw, err := c.tx.Get(networkKey(nil, id))
	if err != nil || raw == nil {
		return nil, err
	}
	if nx := c.ix.networks[id]; nx != nil && nx.record.is(raw) {
		return nx.record.value, nil
	}
	n := new(Network)
	return n, decodeJSON("network "+ref, raw, n)
}

func (c *change) networkID(ref string) (ID, error) {
	if id, err := ParseID(ref); err == nil {
		return id, nil // which no name looks like
	}
	raw, err := c.tx.Get(nameKey(nil, ref))
	if err != nil {
		return ID{}, err
	}
	if len(raw) == len(ID{}) {
		return ID(raw), nil
	}
	return c.ix.shortNetwork(ref), nil
}

// shortNetwork is the network whose id begins with eight digits; the zero ID where there is none, or two.
func (ix *index) shortNetwork(ref string) (found ID) {
	if len(ref) != 8 || strings.Trim(ref, "0123456789abcdef") != "" {
		return ID{}
	}
	for id := range ix.networks {
		if id.Short() == ref && found != (ID{}) {
			return ID{}
		}
		if id.Short() == ref {
			found = id
		}
	}
	return found
}

// network reads the network that ref names, and refuses one that is not there as a whole.
func (c *change) network(ref string) (*Network, error) {
	n, err := c.findNetwork(ref)
	switch {
	case err != nil:
		return nil, err
	case n == nil || n.Stage == Leaving:
		return nil, &refusal{ErrNotFound, fmt.Sprintf("there is no network %q; `berth network ls` lists those that are there", ref)}
	case n.Stage == Arriving:
		return nil, &refusal{ErrInUse, fmt.Sprintf("network %s is being imported; see `berth status`", n.Name)}
	case n.Stage == Moving:
		return nil, beingCopied(n)
	}
	return n, nil
}

// subnets lists the network's subnets in the order in which they are searched.
func (p *plan) subnets() ([]*Subnet, error) {
	nx := p.ix.networks[p.n.ID]
	if nx == nil {
		return nil, nil
	}
	all := make([]*Subnet, 0, len(nx.subnets))
	for _, id := range nx.subnets {
		sub, err := p.readSubnet(p.ix.subnets[id].record.value)
		if err != nil {
			return nil, err
		}
		all = append(all, sub)
	}
	return all, nil
}

// readSubnet reads the record of a subnet that the index knows.
func (c *change) readSubnet(known *Subnet) (*Subnet, error) {
	c.key = subnetKey(c.key[:0], known.Space, known.CIDR)
	raw, err := c.tx.Get(c.key)
	if err != nil {
		return nil, err
	}
	sx := c.ix.subnets[known.ID]
	if sx.record.is(raw) {
		return sx.record.value, nil
	}
	sub := new(Subnet)
	if err := decodeJSON("subnet "+known.CIDR.String(), raw, sub); err != nil {
		return nil, err
	}
	return sub, nil
}

// subnet finds a subnet of the network by CIDR, name or id (GA-11).
func (p *plan) subnet(ref string) (*Subnet, error) {
	nx := p.ix.networkIndex(p.n.ID)
	id := nx.names[ref]
	if cidr, err := netip.ParsePrefix(ref); err == nil {
		id = p.ix.space(p.n.Space).ids[cidr]
	}
	if id == (ID{}) {
		for _, other := range nx.subnets {
			if other.String() == ref || other.Short() == ref {
				id = other
			}
		}
	}
	sx := p.ix.subnets[id]
	if sx == nil || sx.record.value.Network != p.n.ID {
		return nil, &refusal{ErrNotFound, fmt.Sprintf("network %s has no subnet %q; it has %s", p.n.Name, ref, p.subnetList())}
	}
	return p.readSubnet(sx.record.value)
}

// subnetList names the network's subnets for an error.
func (p *plan) subnetList() string {
	var all []netip.Prefix
	if nx := p.ix.networks[p.n.ID]; nx != nil {
		for _, id := range nx.subnets {
			all = append(all, p.ix.subnets[id].record.value.CIDR)
		}
	}
	if len(all) == 0 {
		return "no subnet"
	}
	return few("subnet", all)
}

// holding finds the subnet of the network that a range lies in.
func (p *plan) holding(r Range) (*Subnet, error) {
	if r.IsZero() {
		return nil, &refusal{ErrInvalid, "a range is missing: write one as A-B, A+N, a CIDR, or one address"}
	}
	sp := p.ix.space(p.n.Space)
	if cidr, ok := sp.blocks.Overlap(netip.PrefixFrom(r.From(), r.From().BitLen())); ok {
		sub, err := p.readSubnet(p.ix.subnets[sp.ids[cidr]].record.value)
		switch {
		case err != nil:
			return nil, err
		case sub.Network != p.n.ID:
		case covers(sub.CIDR, r.IPRange):
			return sub, nil
		default:
			return nil, &refusal{ErrInvalid, fmt.Sprintf("the range %s runs over the end of the subnet %s (%s); give one range for each subnet", r, sub.CIDR, lastAddr(sub.CIDR))}
		}
	}
	return nil, &refusal{ErrInvalid, fmt.Sprintf("no subnet of network %s holds %s; it has %s", p.n.Name, r, p.subnetList())}
}

// nameFree refuses a name that another network has.
func (c *change) nameFree(name string) error {
	if err := CheckName("network", name); err != nil {
		return err
	}
	taken, err := c.tx.Get(nameKey(nil, name))
	if err != nil || taken == nil {
		return err
	}
	return &refusal{ErrInUse, fmt.Sprintf("there is a network %s already; choose another name", name)}
}

// isSegment tells whether a text has the grammar of names. Owners are worked out of names while an engine waits.
func isSegment(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i == 0 || c != '_' && c != '.' && c != '-':
			return false
		}
	}
	return true
}

// canonicalOwner writes a MAC address the one way in which it is compared.
func canonicalOwner(owner string) string {
	if mac, err := ParseMAC(owner); err == nil {
		return mac.String()
	}
	return owner
}

// CheckOwner refuses what names no owner: a path of segments in the grammar of names, such as shop/web/1, a container's
// name, or a MAC address.
func CheckOwner(owner string) error {
	if isPath(owner) {
		return nil
	}
	if _, err := ParseMAC(owner); err == nil {
		return nil
	}
	if len(owner) > maxText {
		return &refusal{ErrInvalid, fmt.Sprintf("the owner has %d characters; at most %d are allowed", len(owner), maxText)}
	}
	return &refusal{ErrInvalid, fmt.Sprintf("%q names no owner: write a name such as web, a path such as shop/web/1, or a MAC address", owner)}
}

// isPath tells whether an owner is a path, of one segment or more.
func isPath(owner string) bool {
	if len(owner) > maxText {
		return false
	}
	for segment := range strings.SplitSeq(owner, "/") {
		if !isSegment(segment) {
			return false
		}
	}
	return true
}
