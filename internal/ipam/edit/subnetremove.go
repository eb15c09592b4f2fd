package edit

import (
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/choose"
	"berth/internal/ipam/ledger"
)

// DropGateway ends the lease of the subnet's gateway.
func (p *Plan) DropGateway(sub *ipam.Subnet) error {
	if !sub.Gateway.IsValid() {
		return nil
	}
	held, err := p.Lease(sub.ID, sub.Gateway)
	if err != nil {
		return err
	}
	if held == nil {
		return nil
	}
	return p.SetLease(sub.ID, sub.Gateway, held, held.Unheld())
}

func removeSubnet(e *ipam.RemoveSubnet, c *ledger.Change) (ipam.Result, error) {
	p, err := OpenPlan(c, e.Network, e)
	if err != nil {
		return ipam.Result{}, err
	}
	sub, err := p.subnet(e.Subnet)
	if err != nil {
		return ipam.Result{}, err
	}
	return ipam.Result{Network: p.N.ID, Subnet: sub.ID, CIDR: sub.CIDR}, p.UnmakeSubnet(sub)
}

// UnmakeSubnet takes a subnet that nobody uses out of the network. What is left of it then is memories.
func (p *Plan) UnmakeSubnet(sub *ipam.Subnet) error {
	if err := p.Unused(sub, false); err != nil {
		return err
	}
	if err := p.DropGateway(sub); err != nil {
		return err
	}
	if err := p.Note(&ipam.Event{Verb: ipam.SubnetRemoved, Subnet: sub.CIDR}, FactsOfSubnet(sub), nil); err != nil {
		return err
	}
	if p.Index().Subnet(sub.ID).Records() > 0 {
		p.AddOrphan(sub)
	}
	return p.dropRecord(sub)
}

// dropRecord removes the record of a subnet, and notes what its DHCP server is to be given back.
func (p *Plan) dropRecord(sub *ipam.Subnet) error {
	if err := choose.ReturnGone(p.Change, sub); err != nil {
		return err
	}
	return p.RemoveSubnet(sub)
}

// DropSubnet removes a subnet with its network.
func (p *Plan) DropSubnet(sub *ipam.Subnet) error {
	if _, err := p.Tell(&ipam.Event{Verb: ipam.SubnetRemoved, Subnet: sub.CIDR}, FactsOfSubnet(sub), nil); err != nil {
		return err
	}
	p.AddOrphan(sub)
	return p.dropRecord(sub)
}

// dropGatewayOf takes the gateway away from a subnet that others hold still, with the only attachment that has ever
// asked for it: a Docker network that could not be created, above all, is to leave nothing behind that is refused to
// the others.
func dropGatewayOf(c *ledger.Change, at *ipam.Attachment, sub *ipam.Subnet, n *ipam.Network) error {
	if sub.GatewayBy != at.ID || !sub.Gateway.IsValid() {
		return nil
	}
	p := &Plan{c, n}
	e := &ipam.Event{Verb: ipam.SubnetModified, Subnet: sub.CIDR, Attachment: at.ID,
		Detail: "the Docker network that asked for the gateway is gone"}
	if _, err := p.Tell(e, SubnetFacts{Gateway: sub.Gateway.String()}, SubnetFacts{Gateway: "none"}); err != nil {
		return err
	}
	if err := p.DropGateway(sub); err != nil {
		return err
	}
	sub.Gateway, sub.GatewayBy = netip.Addr{}, ipam.ID{}
	return nil
}
