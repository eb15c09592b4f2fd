package edit

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Importing is what the edits of an import know of one another. Networks that they make are hidden until Reveal; the
// rest is the rule of each edit.
type Importing struct {
	Tried bool // in a draft, which nobody else sees
	p     *Plan
	names NewNames // in DNS
}

// Begin has the edits of a change be an import's.
func (im *Importing) Begin(c *ledger.Change) {
	im.p = nil
	requestOf(c).imports = im
	*ledger.StateOf[NewNames](c) = im.names
}

// Apply makes edits that are made together: one, or pools or exclusions of a network.
func (im *Importing) Apply(c *ledger.Change, edits []ipam.Edit) error {
	switch edits[0].(type) {
	case *ipam.AddPool, *ipam.AddExclusion:
		return im.addRanges(c, edits)
	}
	_, err := apply(c, edits[0])
	im.names = *ledger.StateOf[NewNames](c)
	return err
}

// addRanges adds pools or exclusions, all of a subnet in one write.
func (im *Importing) addRanges(c *ledger.Change, edits []ipam.Edit) error {
	var pools []ipam.Pool
	var exclusions []ipam.Exclusion
	var sub *ipam.Subnet
	var p *Plan
	put := func() (err error) {
		if len(pools) > 0 {
			sub, err = p.AddPools(sub, pools...)
		}
		if len(exclusions) > 0 && err == nil {
			_, err = p.AddExclusions(sub, exclusions...)
		}
		pools, exclusions = nil, nil
		return err
	}
	for _, e := range edits {
		network, r, err := "", ipam.Range{}, error(nil)
		switch e := e.(type) {
		case *ipam.AddPool:
			if network, r = e.Network, e.Range; e.Name != "" {
				err = ipam.CheckName("pool", e.Name)
			}
		case *ipam.AddExclusion:
			network, r, err = e.Network, e.Range, ipam.CheckNote(e.Note)
		}
		if err != nil {
			return err
		}
		if p, err = im.open(c, network); err != nil {
			return err
		}
		in, err := p.Holding(r)
		if err == nil && sub != nil && sub.ID != in.ID {
			err = put()
		}
		if err != nil {
			return err
		}
		sub = in
		switch e := e.(type) {
		case *ipam.AddPool:
			pools = append(pools, ipam.Pool{Name: e.Name, Range: r})
		case *ipam.AddExclusion:
			exclusions = append(exclusions, ipam.Exclusion{Range: r, Note: e.Note})
		}
	}
	return put()
}

// open is OpenPlan for an import, which writes in its hidden network, too.
func (im *Importing) open(c *ledger.Change, name string) (*Plan, error) {
	if im.p != nil && im.p.N.Name == name {
		return im.p, nil
	}
	raw, err := c.Tx().Get(ledger.NameKey(nil, name))
	if err != nil {
		return nil, err
	}
	var n *ipam.Network
	if len(raw) == len(ipam.ID{}) {
		if n, err = c.ReadNetwork(ipam.ID(raw)); err != nil {
			return nil, err
		}
	}
	switch m := c.Member(); {
	case n == nil:
		return nil, ipam.Refuse(ipam.ErrNotFound, "network %s, to which it adds, was removed meanwhile", name)
	case n.Stage == ipam.Moving:
		return nil, ledger.BeingCopied(n)
	case n.Importer != nil && m != nil && n.Importer.Session != m.Session:
		return nil, ipam.Refuse(ipam.ErrInUse, "network %s is being imported; try again when that has ended", name)
	}
	im.p = PlanOf(c, n)
	return im.p, nil
}

// hide has nobody see a network that is made.
func (im *Importing) hide(p *Plan) error {
	p.N.Stage = ipam.Arriving
	if m := p.Member(); m != nil {
		p.N.Importer = &ipam.Importer{Host: p.Host(), Session: m.Session}
	}
	im.p = p
	return p.SetNetwork(p.N.ID, p.N)
}

// Reveal lets a network be seen, with all that is in it.
func (im *Importing) Reveal(c *ledger.Change, name string) error {
	p, err := im.open(c, name)
	if err != nil {
		return err
	}
	n := *p.N
	n.Stage, n.Importer, n.Revision = "", nil, c.Index().LastEvent()
	p.N = &n
	return c.SetNetwork(n.ID, &n)
}

// fewSubnets is how many subnets a network may have for an owner's slots to be looked up in all of them again.
const fewSubnets = 64

// placed tells whether slots that an import says are taken to be free: it has looked at all before it began. Between
// that and the edit another admin may have filled the same slot of a network with many subnets, which then has two
// addresses.
func (p *Plan) placed() bool {
	im := requestOf(p.Change).imports
	return im != nil && (im.Tried || p.N.Stage != "" || len(p.Index().NetworkIndex(p.N.ID).Subnets()) > fewSubnets)
}

// Unlocked refuses edits of what is reserved for projects that are being deployed, as for every edit (BD-1). What an
// import has begun it goes on with: a deploy that begins meanwhile finds what was added.
func Unlocked(c *ledger.Change, edits ...ipam.Edit) error {
	for _, e := range edits {
		if err := unlocked(c, e); err != nil {
			return err
		}
	}
	return nil
}
