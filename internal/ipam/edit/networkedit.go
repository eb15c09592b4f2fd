package edit

import (
	"cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// maxSubnets is how many subnets one edit makes or removes. It bounds the transaction.
const maxSubnets = 500

// networkFacts is the event data of a network: its document, always with the policy.
type networkFacts struct {
	ipam.PlannedNetwork
	Headroom *int         `json:"headroom,omitempty"` // nil: none, or unchanged
	Probe    *string      `json:"probe,omitempty"`    // nil: none, or unchanged
	Static   []ipam.Range `json:"static,omitempty"`
}

// factsOfNetwork returns the event data of a network.
func factsOfNetwork(n *ipam.Network) networkFacts {
	f := networkFacts{PlannedNetwork: *n.Document()}
	f.Space, f.Sticky, f.Quarantine = "", new(!n.Policy.Forget), new(ipam.Duration(n.Policy.Quarantine))
	if n.Headroom > 0 {
		f.Headroom = &n.Headroom
	}
	if n.Probe != "" {
		f.Probe = &n.Probe
	}
	return f
}

// changedFacts returns the event data of a modified network. It includes empty values.
func changedFacts(c *run, n *ipam.Network) networkFacts {
	f := factsOfNetwork(n)
	f.Headroom, f.Probe, f.Static = &n.Headroom, &n.Probe, Bands(c.Index(), n.ID)
	return f
}

func createNetwork(c *run, e *ipam.CreateNetwork) error {
	space := cmp.Or(e.Space, ipam.LocalSpace)
	if len(e.Subnets) > maxSubnets {
		return ipam.Refuse(ipam.ErrInvalid, "the network %s would have %d subnets; one request creates at most %d",
			e.Name, len(e.Subnets), maxSubnets).Advise(ipam.DoImportInstead)
	}
	if err := c.takeName(e.Name, ipam.ID{}); err != nil {
		return err
	}
	n, err := e.Network(c.NewID(), c.Now())
	if err != nil {
		return err
	}
	if err := c.NameSpace(space); err != nil {
		return err
	}
	if err := c.takeFormerNames(n); err != nil {
		return err
	}
	p := c.plan(n)
	if im := c.imports; im != nil {
		if err := im.hide(p); err != nil {
			return err
		}
	}
	facts := factsOfNetwork(n)
	facts.Static = e.Static
	if err := p.Note(&ipam.Event{Verb: ipam.NetworkCreated}, nil, facts); err != nil {
		return err
	}
	for i := range e.Subnets {
		if _, err := p.addSubnet(&e.Subnets[i]); err != nil {
			return err
		}
	}
	if len(e.Static) > 0 {
		if err := p.setStatic(e.Static); err != nil {
			return err
		}
	}
	c.result.Network = n.ID
	return nil
}

func modifyNetwork(p *Plan, e *ipam.ModifyNetwork) error {
	c := p.run
	was := *p.N
	if e.Name != nil && *e.Name != was.Name {
		if err := p.rename(&was, *e.Name); err != nil {
			return err
		}
	}
	edited, err := e.Over(was)
	if err != nil {
		return err
	}
	if e.FormerNames != nil {
		if err := c.takeFormerNames(edited); err != nil {
			return err
		}
	}
	if e.Elastic != nil {
		mode, err := ipam.ParseElasticMode(*e.Elastic)
		if err != nil {
			return err
		}
		if err := elastic.SetMode(c.Change, edited, mode); err != nil {
			return err
		}
	}
	if err := elastic.MayLink(edited, e.Links); err != nil {
		return err
	}
	if err := p.setLAN(e); err != nil {
		return err
	}
	before := changedFacts(c, p.N)
	if e.Static != nil {
		if err := p.setStatic(*e.Static); err != nil {
			return err
		}
	}
	before, after := ledger.Differing(before, changedFacts(c, edited))
	p.N = edited
	if edited.Stage != "" { // nobody sees it, and it has no revision
		if err := c.SetNetwork(edited.ID, edited); err != nil {
			return err
		}
	}
	return p.Note(&ipam.Event{Verb: ipam.NetworkModified}, before, after)
}
