package edit

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Importing is the state that the edits of an import share. Networks that they make stay hidden until Reveal.
type Importing struct {
	Tried bool // in a draft, which nobody else sees
	p     *Plan
	run   *run
	names newNames // in DNS
}

// Begin makes the following edits part of a change.
func (im *Importing) Begin(c *ledger.Change) {
	im.p, im.run = nil, &run{Change: c, imports: im, names: im.names}
}

// Apply makes one edit, or several that add pools or exclusions to a network.
func (im *Importing) Apply(edits []ipam.Edit) error {
	switch edits[0].(type) {
	case *ipam.AddPool, *ipam.AddExclusion:
		return im.addRanges(edits)
	}
	_, err := apply(im.run, edits[0])
	im.names = im.run.names
	return err
}

// addRanges adds pools or exclusions. It writes each subnet once for a run of edits.
func (im *Importing) addRanges(edits []ipam.Edit) error {
	var pools []ipam.Pool
	var exclusions []ipam.Exclusion
	var sub *ipam.Subnet
	var p *Plan
	put := func() (err error) {
		if len(pools) > 0 {
			sub, err = p.addPools(sub, pools...)
		}
		if len(exclusions) > 0 && err == nil {
			_, err = p.addExclusions(sub, exclusions...)
		}
		pools, exclusions = nil, nil
		return err
	}
	for _, e := range edits {
		network, r, err := "", ipam.Range{}, error(nil)
		switch e := e.(type) {
		case *ipam.AddPool:
			if network, r = e.Network, e.Range; e.Name != "" {
				err = ipam.CheckNewName("pool", e.Name)
			}
		case *ipam.AddExclusion:
			network, r, err = e.Network, e.Range, ipam.CheckNote(e.Note)
		}
		if err != nil {
			return err
		}
		if p, err = im.open(network); err != nil {
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

// open is openPlan for an import, which may also write in its own hidden network.
func (im *Importing) open(name string) (*Plan, error) {
	if im.p != nil && im.p.N.Name == name {
		return im.p, nil
	}
	c := im.run
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
		return nil, ipam.Refuse(ipam.ErrNotFound, "network %s, to which the import adds, was removed meanwhile", name)
	case n.Stage == ipam.Moving:
		return nil, ledger.BeingCopied(n)
	case n.Importer != nil && m != nil && n.Importer.Session != m.Session:
		return nil, ipam.Refuse(ipam.ErrInUse, "network %s is being imported; try again when the import has ended",
			name)
	}
	im.p = c.plan(n)
	return im.p, nil
}

// hide hides a new network until Reveal.
func (im *Importing) hide(p *Plan) error {
	p.N.Stage = ipam.Arriving
	if m := p.Member(); m != nil {
		p.N.Importer = &ipam.Importer{Host: p.Host(), Session: m.Session}
	}
	im.p = p
	return p.SetNetwork(p.N.ID, p.N)
}

// Reveal shows a network with all of its contents.
func (im *Importing) Reveal(name string) error {
	p, err := im.open(name)
	if err != nil {
		return err
	}
	n := *p.N
	n.Stage, n.Importer, n.Revision = "", nil, p.Index().LastEvent()
	p.N = &n
	return p.SetNetwork(n.ID, &n)
}

// fewSubnets is the maximum number of subnets in which an owner's slots are looked up again.
const fewSubnets = 64

// placed reports whether an import's slots count as free, because it checked them before it began. Another admin may
// fill the same slot of a large network meanwhile. That slot then has two addresses.
func (p *Plan) placed() bool {
	im := p.run.imports
	return im != nil && (im.Tried || p.N.Stage != "" || len(p.Index().NetworkIndex(p.N.ID).Subnets()) > fewSubnets)
}

// Unlocked refuses edits of reservations in projects that are being deployed. An import that has begun
// continues: a deploy that starts meanwhile finds what was added.
func (im *Importing) Unlocked(edits ...ipam.Edit) error {
	for _, e := range edits {
		if err := unlocked(im.run, e); err != nil {
			return err
		}
	}
	return nil
}
