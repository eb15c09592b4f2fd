package docker

import (
	"time"

	"berth/internal/ipam"
)

// patience remembers what checks have found, so that nothing is put right which a check saw for the first time. It is
// in memory only: a daemon that starts anew begins to wait anew.
type patience struct {
	grace  time.Duration
	engine string            // whose words these are, as far as it said
	first  map[key]time.Time // when each was found first, over breaks
	waits  map[key]wait      // since the last break
}

// wait is for how long a thing has been so.
type wait struct {
	since  time.Time
	checks int
}

// broken forgets how long things have been so: the engine was away, or stopped, or did not answer.
func (p *patience) broken() { p.waits = nil }

// note takes down what a check of a view has found. What it did not find is forgotten.
func (p *patience) note(engine string, taken time.Time, found []finding) {
	if engine != "" && engine != p.engine {
		if p.engine != "" {
			p.waits = nil
		}
		p.engine = engine
	}
	first, waits := make(map[key]time.Time, len(found)), make(map[key]wait, len(found))
	for i := range found {
		f := &found[i]
		k := f.key()
		first[k] = taken
		if before, known := p.first[k]; known {
			first[k] = before
		}
		for _, k := range f.waitKeys() {
			w, waiting := p.waits[k]
			if !waiting {
				w.since = taken
			}
			waits[k] = wait{w.since, w.checks + 1}
		}
	}
	p.first, p.waits = first, waits
}

// seen forgets how long a lease has had no endpoint: it has one.
func (p *patience) seen(l *ipam.LeaseInfo) {
	f := finding{Finding: ipam.Finding{Kind: ipam.UnusedLease, Space: l.Space, Address: l.Address, Subnet: l.Subnet,
		Lease: l.ID, Pool: l.Pool}}
	delete(p.waits, f.key())
	for _, k := range (&finding{pools: []ipam.ID{l.Pool}}).waitKeys() {
		delete(p.waits, k)
	}
}

// ripe tells whether a thing has been so for the time of grace, and in two checks at least.
func (p *patience) ripe(f *finding, taken time.Time) bool {
	for _, k := range f.waitKeys() {
		if w := p.waits[k]; w.checks < 2 || taken.Sub(w.since) < p.grace {
			return false
		}
	}
	return true
}

// ready is when a thing will have been so for the time of grace, if it stays so.
func (p *patience) ready(f *finding) (at time.Time) {
	for _, k := range f.waitKeys() {
		if one := p.waits[k].since.Add(p.grace); one.After(at) {
			at = one
		}
	}
	return at
}

// waitKeys are what a finding waits for: itself or, of attachments, each of them.
func (f *finding) waitKeys() []key {
	if len(f.pools) == 0 {
		return []key{f.key()}
	}
	keys := make([]key, 0, len(f.pools))
	for _, id := range f.pools {
		keys = append(keys, key{kind: ipam.UnusedAttachment, pool: id})
	}
	return keys
}
