package edit

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

func addSubnet(p *Plan, e *ipam.AddSubnet) error {
	sub, err := p.addSubnet(&e.SubnetSpec)
	if err != nil {
		return err
	}
	p.cameIn(sub)
	return nil
}

// addSubnet adds a subnet to the network.
func (p *Plan) addSubnet(spec *ipam.SubnetSpec) (*ipam.Subnet, error) {
	cidr, err := p.place(spec)
	if err != nil {
		return nil, err
	}
	id := spec.ID
	if id == (ipam.ID{}) {
		id = p.NewID()
	}
	sub := spec.Subnet(id, p.N, cidr)
	if spec.Pool {
		sub.Pools = append(sub.Pools, ipam.Pool{Range: allocator.WholeRange(cidr)})
	}
	return sub, p.makeSubnet(sub)
}

// makeSubnet adds a subnet with its ranges to the network, and leases its gateway.
func (p *Plan) makeSubnet(sub *ipam.Subnet) error {
	if err := p.noOverlap(sub.CIDR, ipam.ID{}); err != nil {
		return err
	}
	if err := p.checkSubnet(sub); err != nil {
		return err
	}
	if err := p.Note(&ipam.Event{Verb: ipam.SubnetCreated, Subnet: sub.CIDR}, nil, sub.Facts()); err != nil {
		return err
	}
	sub.Created = ipam.EventTime(p.Index().LastEvent())
	if err := p.SetSubnet(sub); err != nil {
		return err
	}
	return p.setGatewayLease(sub)
}

// place returns the CIDR of a new subnet: the given one, or the lowest free one of a length in a larger prefix.
func (p *Plan) place(spec *ipam.SubnetSpec) (netip.Prefix, error) {
	if spec.From.IsValid() || spec.Bits != 0 {
		return p.placeIn(spec)
	}
	if err := ipam.CheckSubnet(spec.CIDR); err != nil {
		return netip.Prefix{}, err
	}
	return spec.CIDR, nil
}

func (p *Plan) placeIn(spec *ipam.SubnetSpec) (netip.Prefix, error) {
	from, bits := spec.From, spec.Bits
	if spec.CIDR.IsValid() || !from.IsValid() || bits == 0 {
		return netip.Prefix{}, ipam.Refuse(ipam.ErrInvalid, "give either a subnet, or a size and the prefix to take "+
			"it from (/26 and --from 10.0.0.0/16)")
	}
	if err := ipam.CheckSubnet(from); err != nil {
		return netip.Prefix{}, err
	}
	if bits < from.Bits() || bits > from.Addr().BitLen() {
		return netip.Prefix{}, ipam.Refuse(ipam.ErrInvalid, "a /%d does not fit in %s: give a length from %d to %d",
			bits, from, from.Bits(), from.Addr().BitLen())
	}
	blocks := p.Index().Blocks(p.N.Space)
	cidr, err := allocator.CarveFrom(p.Change, blocks, ipam.Base{Prefix: from, Bits: bits},
		ipam.PoolRequest{Space: p.N.Space})
	if err == nil && !cidr.IsValid() {
		err = ipam.Refuse(ipam.ErrExhausted, "no /%d is free in %s, where the space %s has %s", bits, from, p.N.Space,
			ipam.Summarize("subnet", blocks.In(from)))
	}
	return cidr, err
}

// noOverlap refuses a CIDR that overlaps a subnet of the space other than self.
func (p *Plan) noOverlap(cidr netip.Prefix, self ipam.ID) error {
	other, err := p.Overlapping(p.N.Space, cidr, self)
	if err != nil {
		return err
	}
	if other == nil {
		return p.NoElasticIn(cidr)
	}
	todo := "choose another subnet, or make a network in another space"
	if self != (ipam.ID{}) {
		todo = "choose a smaller one, or resize or remove that subnet first"
	}
	if other.CIDR == cidr {
		return ipam.Refuse(ipam.ErrOverlap, "network %s has the subnet %s of space %s already; %s",
			p.NetworkName(other.Network),
			cidr, p.N.Space, todo)
	}
	return p.OverlapError(cidr, other, todo)
}

// checkSubnet refuses a subnet whose name, gateway or DHCP settings do not fit its network.
func (p *Plan) checkSubnet(sub *ipam.Subnet) error {
	nx := p.Index().NetworkIndex(p.N.ID)
	if err := sub.CheckTexts(); err != nil {
		return err
	}
	if was := p.Index().Subnet(sub.ID); sub.Name != "" && (was == nil || was.Record().Name != sub.Name) {
		if err := ipam.CheckNewName("subnet", sub.Name); err != nil {
			return err
		}
		if other := nx.SubnetNamed(sub.Name); other != (ipam.ID{}) && other != sub.ID {
			return ipam.Refuse(ipam.ErrInUse, "network %s has a subnet named %s already (%s); choose another name",
				p.Called(),
				sub.Name, p.Index().Subnet(other).Record().CIDR)
		}
	}
	if why := allocator.NotHost(sub.CIDR, sub.Gateway); sub.Gateway.IsValid() && why != "" {
		return ipam.Refuse(ipam.ErrInvalid, "the gateway %s is %s; give another one, or none",
			sub.Gateway, why)
	}
	if err := sub.CheckLAN(p.N); err != nil || !sub.DHCP {
		return err
	}
	for _, id := range nx.Subnets() {
		other := p.Index().Subnet(id).Record()
		if other.ID != sub.ID && other.DHCP && other.CIDR.Addr().Is4() == sub.CIDR.Addr().Is4() {
			return ipam.Refuse(ipam.ErrInUse, "network %s already has DHCP on the subnet %s; a network has one DHCP "+
				"subnet for each family", p.Called(), other.CIDR).Advise(ipam.DoTurnDHCPOff, p.Called(), other.CIDR)
		}
	}
	return nil
}

// setGatewayLease leases the subnet's gateway, unless that is done.
func (p *Plan) setGatewayLease(sub *ipam.Subnet) error {
	if !sub.Gateway.IsValid() {
		return nil
	}
	before, err := p.Lease(sub.ID, sub.Gateway)
	if err != nil {
		return err
	}
	switch {
	case before.Held() && before.Kind == ipam.Gateway && before.Attachment == (ipam.ID{}):
		return nil
	case before.Held():
		return allocator.HeldError(p.Change, sub, before)
	case before.Reserved() != nil:
		return allocator.ReservedError(p.Change, sub.Gateway, before.Reservation)
	}
	var facts any
	if sub.GatewayNote != "" {
		facts = takenFacts{sub.GatewayNote}
	}
	id, err := p.Tell(&ipam.Event{Verb: ipam.GatewaySet, Subnet: sub.CIDR, Address: sub.Gateway}, nil, facts)
	if err != nil {
		return err
	}
	return p.SetLease(sub.ID, sub.Gateway, before,
		&ipam.Lease{ID: id, Address: sub.Gateway, Kind: ipam.Gateway, Host: p.Host(), Since: p.TimeOf(id)})
}

func modifySubnet(p *Plan, e *ipam.ModifySubnet) error {
	sub, err := p.SubnetNamed(e.Subnet)
	if err != nil {
		return err
	}
	edited, err := p.modified(sub, e)
	if err != nil {
		return err
	}
	if err := p.noteModified(sub, edited); err != nil {
		return err
	}
	if sub.Gateway != edited.Gateway {
		if err := p.DropGateway(sub); err != nil {
			return err
		}
	}
	if sub.CIDR != edited.CIDR {
		err = p.Resize(sub, edited)
	} else {
		err = p.SetSubnet(edited)
	}
	if err == nil {
		err = p.setGatewayLease(edited)
	}
	p.cameIn(edited)
	return err
}

// noteModified records the differences between two versions of a subnet.
func (p *Plan) noteModified(sub, edited *ipam.Subnet) error {
	before, after := ledger.Differing(sub.Facts(), edited.Facts())
	return p.Note(&ipam.Event{Verb: ipam.SubnetModified, Subnet: sub.CIDR}, before, after)
}

// setLAN sets how Berth asks a DHCP server for the subnets marked as served by DHCP or, if none is, for all.
func (p *Plan) setLAN(e *ipam.ModifyNetwork) error {
	if e.DHCPParent == nil && e.DHCPID == nil {
		return nil
	}
	all, err := p.Subnets()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return p.NoSubnet()
	}
	served := slices.ContainsFunc(all, func(sub *ipam.Subnet) bool { return sub.DHCP })
	for _, sub := range all {
		if served && !sub.DHCP {
			continue
		}
		edited, err := p.modified(sub, &ipam.ModifySubnet{DHCPParent: e.DHCPParent, DHCPID: e.DHCPID})
		if err != nil {
			return err
		}
		if err := p.noteModified(sub, edited); err != nil {
			return err
		}
		if err := p.SetSubnet(edited); err != nil {
			return err
		}
	}
	return nil
}

// modified returns the subnet after the edit, or refuses the edit.
func (p *Plan) modified(sub *ipam.Subnet, e *ipam.ModifySubnet) (*ipam.Subnet, error) {
	edited := e.Over(*sub)
	if err := sub.CheckGateway(edited.Gateway); err != nil {
		return nil, err
	}
	if e.CIDR != nil && *e.CIDR != sub.CIDR {
		edited.CIDR = *e.CIDR
		if err := p.checkResize(sub, &edited); err != nil {
			return nil, err
		}
	}
	if len(sub.Attachments) > 0 && (edited.CIDR != sub.CIDR || edited.Gateway != sub.Gateway) {
		return nil, ipam.Refuse(ipam.ErrInUse, "%s on the subnet %s of network %s, and the engine cannot change the "+
			"subnet or gateway of an existing network; run `docker network rm` first",
			dockerNetworks(len(sub.Attachments)), sub.CIDR, p.Called())
	}
	if sub.FromDHCP() && !edited.FromDHCP() {
		if err := p.noneGiven(sub); err != nil {
			return nil, err
		}
	}
	return &edited, p.checkSubnet(&edited)
}

func dockerNetworks(n int) string {
	if n == 1 {
		return "a Docker network is"
	}
	return fmt.Sprintf("%d Docker networks are", n)
}
