package deploy

import (
	"net/netip"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// elasticWish is a service's wish for elastic addresses.
type elasticWish struct {
	address    netip.Addr // zero: any address of the account, one per replica
	egressOnly bool
}

// elasticClaim is an owner that wants an elastic address.
type elasticClaim struct {
	elasticWish
	service, owner string
	on             *network
}

// claimElastic adds a service's wish for elastic addresses, on the service's only network with elastic addresses.
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
			return p.project.problem(at, "%s: services.%s is on the networks %s and %s, which both have elastic "+
				"addresses "+
				"on; turn them off on one of the planned networks, or associate the address with `berth elastic "+
				"associate --network`",
				at, service.Name, on.key, c.on.key)
		}
		on = c.on
	}
	if on == nil {
		return p.project.problem(at, "%s: services.%s is on no Berth network with elastic addresses on; `berth "+
			"network modify NETWORK --elastic on` turns them on", at, service.Name)
	}
	for _, c := range p.claims {
		if c.service == service.Name && c.on == on {
			p.elastic = append(p.elastic, elasticClaim{*w, service.Name, c.owner, on})
		}
	}
	return nil
}

// Elastic reports whether a service of the project wants an elastic address.
func (p *Plan) Elastic() bool { return len(p.elastic) > 0 }

// ElasticEdits returns the edits for elastic addresses, which follow those of Edits. They first disassociate what the
// project declared before and no longer does; the address stays with its account. They may be repeated without effect.
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
