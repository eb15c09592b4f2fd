package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// subnetFacts is what events tell of a subnet.
type subnetFacts struct {
	Name    string       `json:"name,omitempty"`
	CIDR    netip.Prefix `json:"cidr,omitzero"`
	Gateway string       `json:"gateway,omitempty"` // "none" where there is none
	DHCP    *bool        `json:"dhcp,omitempty"`
	Pools   []Pool       `json:"pools,omitempty"`

	Exclusions []Exclusion `json:"exclusions,omitempty"`
	Static     []Range     `json:"static,omitempty"`
}

func (sub *Subnet) facts() subnetFacts {
	gateway, dhcp := "none", sub.DHCP
	if sub.Gateway.IsValid() {
		gateway = sub.Gateway.String()
	}
	return subnetFacts{sub.Name, sub.CIDR, gateway, &dhcp, sub.Pools, sub.Exclusions, sub.Static}
}

// differing is f less what is the same in other.
func (f subnetFacts) differing(other subnetFacts) subnetFacts {
	if f.Name == other.Name {
		f.Name = ""
	}
	if f.CIDR == other.CIDR {
		f.CIDR = netip.Prefix{}
	}
	if f.Gateway == other.Gateway {
		f.Gateway = ""
	}
	if *f.DHCP == *other.DHCP {
		f.DHCP = nil
	}
	if slices.Equal(f.Pools, other.Pools) {
		f.Pools = nil
	}
	if slices.Equal(f.Exclusions, other.Exclusions) {
		f.Exclusions = nil
	}
	if slices.Equal(f.Static, other.Static) {
		f.Static = nil
	}
	return f
}

func (e *AddSubnet) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	sub, err := p.addSubnet(&e.SubnetSpec)
	if err != nil {
		return Result{}, err
	}
	return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: sub.CIDR}, nil
}

// addSubnet makes a subnet of the network.
func (p *plan) addSubnet(spec *SubnetSpec) (*Subnet, error) {
	cidr, err := p.place(spec)
	if err != nil {
		return nil, err
	}
	sub := &Subnet{ID: p.newID(), Network: p.n.ID, Space: p.n.Space, Name: spec.Name, CIDR: cidr, Gateway: spec.Gateway,
		NoGateway: !spec.Gateway.IsValid(), DHCP: spec.DHCP, Pools: []Pool{}}
	if spec.Pool {
		sub.Pools = append(sub.Pools, Pool{Range: wholeRange(cidr)})
	}
	if err := p.checkSubnet(sub); err != nil {
		return nil, err
	}
	if err := p.note(&Event{Verb: SubnetCreated, Subnet: cidr}, nil, sub.facts()); err != nil {
		return nil, err
	}
	sub.Created = eventTime(p.n.Revision)
	if err := p.setSubnet(sub); err != nil {
		return nil, err
	}
	return sub, p.setGatewayLease(sub)
}

// place is the CIDR of a subnet that is to be made: the one given, or the lowest free one of a size in a larger prefix.
func (p *plan) place(spec *SubnetSpec) (netip.Prefix, error) {
	if spec.From.IsValid() || spec.Bits != 0 {
		return p.placeIn(spec)
	}
	if err := checkPrefix(spec.CIDR); err != nil {
		return netip.Prefix{}, err
	}
	return spec.CIDR, p.noOverlap(spec.CIDR, ID{})
}

func (p *plan) placeIn(spec *SubnetSpec) (netip.Prefix, error) {
	from, bits := spec.From, spec.Bits
	if spec.CIDR.IsValid() || !from.IsValid() || bits == 0 {
		return netip.Prefix{}, &refusal{ErrInvalid, "say either which subnet, or of which size and out of which prefix it is to be taken (/26 and --from 10.0.0.0/16)"}
	}
	if err := checkPrefix(from); err != nil {
		return netip.Prefix{}, err
	}
	if bits < from.Bits() || bits > from.Addr().BitLen() {
		return netip.Prefix{}, &refusal{ErrInvalid, fmt.Sprintf("a /%d cannot be taken out of %s: give a length from %d to %d", bits, from, from.Bits(), from.Addr().BitLen())}
	}
	blocks := p.ix.space(p.n.Space).blocks
	cidr, err := p.carveFrom(blocks, Base{from, bits}, PoolRequest{Space: p.n.Space})
	if err == nil && !cidr.IsValid() {
		err = &refusal{ErrExhausted, fmt.Sprintf("no /%d is free in %s, where the space %s has %s", bits, from, p.n.Space, few("subnet", blocks.In(from)))}
	}
	return cidr, err
}

// checkPrefix refuses what is no subnet.
func checkPrefix(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return &refusal{ErrInvalid, "a subnet is missing: write one like 10.0.0.0/24 or 2001:db8::/64"}
	case p.Addr().Is4In6():
		return &refusal{ErrInvalid, fmt.Sprintf("%s is an IPv4 subnet mapped into IPv6; write it as IPv4", p)}
	case p != p.Masked():
		return &refusal{ErrInvalid, fmt.Sprintf("%s has host bits set; the subnet is %s", p, p.Masked())}
	}
	return nil
}

// noOverlap refuses a CIDR that overlaps a subnet of the space other than self (GA-3, GA-13).
func (p *plan) noOverlap(cidr netip.Prefix, self ID) error {
	other, err := p.overlapping(p.n.Space, cidr, self)
	if err != nil || other == nil {
		return err
	}
	todo := "choose another subnet, or make a network in another space"
	if other.CIDR == cidr {
		return &refusal{ErrOverlap, fmt.Sprintf("network %s has the subnet %s of space %s already; %s", p.networkName(other.Network), cidr, p.n.Space, todo)}
	}
	return p.overlapError(cidr, other, todo)
}

// checkSubnet refuses a subnet whose name, gateway or dhcp flag its network cannot have.
func (p *plan) checkSubnet(sub *Subnet) error {
	nx := p.ix.networkIndex(p.n.ID)
	if sub.Name != "" {
		if err := CheckName("subnet", sub.Name); err != nil {
			return err
		}
		if other, taken := nx.names[sub.Name]; taken && other != sub.ID {
			return &refusal{ErrInUse, fmt.Sprintf("network %s has a subnet named %s already (%s); choose another name", p.n.Name, sub.Name, p.ix.subnets[other].record.value.CIDR)}
		}
	}
	if why := notHost(sub.CIDR, sub.Gateway); sub.Gateway.IsValid() && why != "" {
		return &refusal{ErrInvalid, fmt.Sprintf("the gateway %s is %s; give another one with --gateway, or none", sub.Gateway, why)}
	}
	if !sub.DHCP {
		return nil
	}
	for _, id := range nx.subnets { // GA-12
		other := p.ix.subnets[id].record.value
		if other.ID != sub.ID && other.DHCP && other.CIDR.Addr().Is4() == sub.CIDR.Addr().Is4() {
			return &refusal{ErrInUse, fmt.Sprintf("network %s has DHCP on the subnet %s already, and one cable has one for each family; turn that off first (berth subnet modify %s %s --dhcp=false)",
				p.n.Name, other.CIDR, p.n.Name, other.CIDR)}
		}
	}
	return nil
}

// setGatewayLease makes the subnet's gateway a lease of its own (GA-5), unless it is one already.
func (p *plan) setGatewayLease(sub *Subnet) error {
	if !sub.Gateway.IsValid() {
		return nil
	}
	before, err := p.lease(sub.ID, sub.Gateway)
	if err != nil {
		return err
	}
	switch {
	case before.Held() && before.Kind == Gateway && before.Attachment == (ID{}):
		return nil
	case before.Held():
		return p.heldError(before)
	case before.reserved() != nil:
		return p.reservedError(sub.Gateway, before.Reservation)
	}
	id, err := p.tell(&Event{Verb: GatewaySet, Subnet: sub.CIDR, Address: sub.Gateway}, nil, nil)
	if err != nil {
		return err
	}
	return p.setLease(sub.ID, sub.Gateway, before, &Lease{ID: id, Address: sub.Gateway, Kind: Gateway, Host: p.host, Since: eventTime(id)})
}

func (e *ModifySubnet) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	sub, err := p.subnet(e.Subnet)
	if err != nil {
		return Result{}, err
	}
	edited, err := p.modified(sub, e)
	if err != nil {
		return Result{}, err
	}
	before, after := sub.facts(), edited.facts()
	if err := p.note(&Event{Verb: SubnetModified, Subnet: sub.CIDR}, before.differing(after), after.differing(before)); err != nil {
		return Result{}, err
	}
	if sub.Gateway != edited.Gateway {
		if err := p.dropGateway(sub); err != nil {
			return Result{}, err
		}
	}
	if sub.CIDR != edited.CIDR {
		err = p.resize(sub, edited)
	} else {
		err = p.setSubnet(edited)
	}
	if err == nil {
		err = p.setGatewayLease(edited)
	}
	return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: edited.CIDR}, err
}

// modified is the subnet as e wants it, if it may be so.
func (p *plan) modified(sub *Subnet, e *ModifySubnet) (*Subnet, error) {
	edited := *sub
	if e.Name != nil {
		edited.Name = *e.Name
	}
	if e.DHCP != nil {
		edited.DHCP = *e.DHCP
	}
	if e.Gateway != nil {
		edited.Gateway, edited.NoGateway = *e.Gateway, !e.Gateway.IsValid()
	}
	if e.CIDR != nil && *e.CIDR != sub.CIDR {
		edited.CIDR = *e.CIDR
		if err := p.checkResize(sub, &edited); err != nil {
			return nil, err
		}
	}
	if len(sub.Attachments) > 0 && (edited.CIDR != sub.CIDR || edited.Gateway != sub.Gateway) {
		return nil, &refusal{ErrInUse, fmt.Sprintf("%s on the subnet %s of network %s, and the engine cannot change the subnet or gateway of a network that exists; remove it with `docker network rm` first",
			dockerNetworks(len(sub.Attachments)), sub.CIDR, p.n.Name)}
	}
	return &edited, p.checkSubnet(&edited)
}

func dockerNetworks(n int) string {
	if n == 1 {
		return "a Docker network is"
	}
	return fmt.Sprintf("%d Docker networks are", n)
}

// dropGateway ends the lease of the subnet's gateway.
func (p *plan) dropGateway(sub *Subnet) error {
	if !sub.Gateway.IsValid() {
		return nil
	}
	held, err := p.lease(sub.ID, sub.Gateway)
	if err != nil || held == nil {
		return err
	}
	return p.setLease(sub.ID, sub.Gateway, held, held.unheld())
}

func (e *RemoveSubnet) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	sub, err := p.subnet(e.Subnet)
	if err != nil {
		return Result{}, err
	}
	if err := p.unused(sub, false); err != nil {
		return Result{}, err
	}
	if err := p.note(&Event{Verb: SubnetRemoved, Subnet: sub.CIDR}, sub.facts(), nil); err != nil {
		return Result{}, err
	}
	c.edit.swept = append(c.edit.swept, sub)
	return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: sub.CIDR}, c.removeSubnet(sub)
}

// dropSubnet removes a subnet with its network.
func (p *plan) dropSubnet(sub *Subnet) error {
	if _, err := p.tell(&Event{Verb: SubnetRemoved, Subnet: sub.CIDR}, sub.facts(), nil); err != nil {
		return err
	}
	p.edit.swept = append(p.edit.swept, sub)
	return p.removeSubnet(sub)
}
