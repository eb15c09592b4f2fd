package ledger

import (
	"encoding/json"
	"net/netip"
	"reflect"

	"berth/internal/ipam"
)

// NetworkPlan is a network that a change edits, as read in its transaction.
type NetworkPlan struct {
	*Change
	N *ipam.Network
}

// Called is the name of the network in messages.
func (p *NetworkPlan) Called() string { return p.ShownName(p.N) }

// Note writes the event of an edit and gives the network a new revision. An unfinished network gets its revision when
// it is complete. An edit that changes nothing has no event.
func (p *NetworkPlan) Note(e *ipam.Event, before, after any) error {
	if same, err := nothing(before, after); err != nil {
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

// rawJSON encodes v for an event. nil stays nil.
func rawJSON(v any) (raw json.RawMessage, err error) {
	if v != nil {
		raw, err = json.Marshal(v)
	}
	return raw, err
}

// nothing reports whether a modification changes nothing.
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

// Tell writes the event of a change in the network that does not change its plan. It returns the event's id.
func (p *NetworkPlan) Tell(e *ipam.Event, before, after any) (id uint64, err error) {
	e.Space, e.Network, e.NetworkID = p.N.Space, p.ShownName(p.N), p.N.ID
	if e.Before, err = rawJSON(before); err != nil {
		return 0, err
	}
	if e.After, err = rawJSON(after); err != nil {
		return 0, err
	}
	return p.Event(e)
}

// Keep makes a network that a Docker request created a planned one, because something now depends on it.
func (p *NetworkPlan) Keep() error {
	if p.N.Planned {
		return nil
	}
	edited := *p.N
	edited.Planned = true
	p.N = &edited
	return p.SetNetwork(edited.ID, &edited)
}

// Subnets reads the network's subnets in search order.
func (p *NetworkPlan) Subnets() ([]*ipam.Subnet, error) {
	var all []*ipam.Subnet
	for _, id := range p.Index().NetworkIndex(p.N.ID).Subnets() {
		sub, err := p.ReadSubnet(p.Index().Subnet(id).Record())
		if err != nil {
			return nil, err
		}
		all = append(all, sub)
	}
	return all, nil
}

// SubnetNamed finds a subnet of the network by CIDR, name, id or short id.
func (p *NetworkPlan) SubnetNamed(ref string) (*ipam.Subnet, error) {
	nx := p.Index().NetworkIndex(p.N.ID)
	id := nx.SubnetNamed(ref)
	if cidr, err := netip.ParsePrefix(ref); err == nil {
		id = p.Index().subnetAt(p.N.Space, cidr)
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
func (p *NetworkPlan) SubnetList() string {
	var all []netip.Prefix
	for _, id := range p.Index().NetworkIndex(p.N.ID).Subnets() {
		all = append(all, p.Index().Subnet(id).Record().CIDR)
	}
	if len(all) == 0 {
		return "no subnet"
	}
	return ipam.Summarize("subnet", all)
}

// Holding finds the subnet of the network that contains a whole range.
func (p *NetworkPlan) Holding(r ipam.Range) (*ipam.Subnet, error) {
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
				"the range %s goes past the end of the subnet %s (%s); give one range for "+
					"each subnet", r, sub.CIDR, ipam.LastAddr(sub.CIDR))
		}
	}
	return nil, ipam.Refuse(ipam.ErrInvalid, "no subnet of network %s holds %s; it has %s", p.Called(), r, p.SubnetList())
}

// NoSubnet is the refusal of a network without subnets, which has L2 only.
func (p *NetworkPlan) NoSubnet() error {
	return ipam.Refuse(ipam.ErrExhausted, "network %s has no subnet, so it gives no addresses",
		p.Called()).Advise(ipam.DoAddSubnetTo, p.Called())
}

// DynamicOwners reads the owners in the dynamic network, by name.
func (p *NetworkPlan) DynamicOwners() ([]KnownOwner, error) { return ReadOwners(p.Tx(), p.N.ID) }

// DropGateway ends the lease of the subnet's gateway.
func (p *NetworkPlan) DropGateway(sub *ipam.Subnet) error {
	if !sub.Gateway.IsValid() {
		return nil
	}
	held, err := p.Lease(sub.ID, sub.Gateway)
	if err != nil || held == nil {
		return err
	}
	return p.SetLease(sub.ID, sub.Gateway, held, held.Unheld())
}

// Differing returns both values without the fields in which they are equal.
func Differing[T any](was, is T) (T, T) {
	before, after := reflect.ValueOf(&was).Elem(), reflect.ValueOf(&is).Elem()
	for _, f := range reflect.VisibleFields(before.Type()) {
		a, b := before.FieldByIndex(f.Index), after.FieldByIndex(f.Index)
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			a.SetZero()
			b.SetZero()
		}
	}
	return was, is
}
