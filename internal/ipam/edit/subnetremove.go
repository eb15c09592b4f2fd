package edit

import (
	"berth/internal/allocator"
	"berth/internal/ipam"
)

func removeSubnet(p *Plan, e *ipam.RemoveSubnet) error {
	sub, err := p.SubnetNamed(e.Subnet)
	if err != nil {
		return err
	}
	p.cameIn(sub)
	return p.unmakeSubnet(sub)
}

// unmakeSubnet removes an unused subnet from the network. Only memories are left.
func (p *Plan) unmakeSubnet(sub *ipam.Subnet) error {
	if err := p.unused(sub, false); err != nil {
		return err
	}
	if err := p.DropGateway(sub); err != nil {
		return err
	}
	if err := p.Note(&ipam.Event{Verb: ipam.SubnetRemoved, Subnet: sub.CIDR}, sub.Facts(), nil); err != nil {
		return err
	}
	if p.Index().Subnet(sub.ID).Records() > 0 {
		p.AddOrphan(sub)
	}
	return p.dropRecord(sub)
}

// dropRecord removes a subnet's record, and notes which leases to return to its DHCP server.
func (p *Plan) dropRecord(sub *ipam.Subnet) error {
	if err := allocator.ReturnGone(p.Change, sub); err != nil {
		return err
	}
	return p.RemoveSubnet(sub)
}

// DropSubnet removes a subnet together with its network.
func (p *Plan) DropSubnet(sub *ipam.Subnet) error {
	if _, err := p.Tell(&ipam.Event{Verb: ipam.SubnetRemoved, Subnet: sub.CIDR}, sub.Facts(), nil); err != nil {
		return err
	}
	p.AddOrphan(sub)
	return p.dropRecord(sub)
}
