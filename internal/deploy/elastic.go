package deploy

import (
	"net/netip"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// elasticWish is what a service says of elastic addresses.
type elasticWish struct {
	address    netip.Addr // the zero address: any of its account, one for each replica
	egressOnly bool
}

// elasticClaim is an owner that is to have an elastic address.
type elasticClaim struct {
	elasticWish
	service, owner string
	on             *network
}

// claimElastic adds what a service wants of elastic addresses: on its only network that has them on.
func (p *Plan) claimElastic(service *types.ServiceConfig) error {
	t := p.terms[service.Name]
	w := t.elasticOf()
	if w == nil {
		return nil
	}
	at := t.lines[keyElastic]
	var on *network
	for _, c := range p.claims {
		if c.service != service.Name || c.on == on || c.on.planned.Elastic == ipam.ElasticOff.String() {
			continue
		}
		if on != nil {
			return p.project.problem(at, "%s: services.%s is on the networks %s and %s, which both have elastic addresses "+
				"on; turn them off on one of the planned networks, or associate by `berth elastic associate --network`",
				at, service.Name, on.key, c.on.key)
		}
		on = c.on
	}
	if on == nil {
		return p.project.problem(at, "%s: services.%s is on no network of Berth's that has elastic addresses on; `berth "+
			"network modify NETWORK --elastic on` turns them on", at, service.Name)
	}
	for _, c := range p.claims {
		if c.service == service.Name && c.on == on {
			p.elastic = append(p.elastic, elasticClaim{*w, service.Name, c.owner, on})
		}
	}
	return nil
}

// Elastic tells whether a service of the project is to have an elastic address.
func (p *Plan) Elastic() bool { return len(p.elastic) > 0 }

// ElasticEdits are what is to be asked of the daemon for elastic addresses, behind Edits. What the project has said
// before and says no more is disassociated first; the address stays with its account. Made again, they change nothing.
func (p *Plan) ElasticEdits() []ipam.Edit {
	end := &ipam.EndDeclaredElastic{Project: p.project.Name()}
	edits := []ipam.Edit{end}
	for _, c := range p.elastic {
		end.But = append(end.But, ipam.DeclaredElastic{Instance: c.owner, Address: c.address})
		edits = append(edits, &ipam.DeclareElastic{Project: p.project.Name(), Instance: c.owner,
			Network: c.on.planned.ID.String(), Address: c.address, EgressOnly: c.egressOnly})
	}
	return edits
}
