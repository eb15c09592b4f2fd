package docker

import (
	"time"

	"berth/internal/ipam"
)

// patience remembers the findings of checks, so that nothing is repaired at its first finding. It is only in memory: a
// restarted daemon waits again from the beginning.
type patience struct {
	grace  time.Duration
	engine string            // id of the engine that the findings are from, once it has sent it
	first  map[key]time.Time // when each was first found; breaks do not reset it
	waits  map[key]wait      // since the last break
}

// wait is how long, and in how many checks, a finding has lasted.
type wait struct {
	since  time.Time
	checks int
}

// broken resets all waits, because the engine was away, stopped or silent.
func (p *patience) broken() { p.waits = nil }

// note records the findings of a check. Earlier findings that are not among them are forgotten.
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

// seen resets the wait of a lease whose endpoint was seen, and of its attachment.
func (p *patience) seen(l *ipam.LeaseInfo) {
	f := finding{Finding: ipam.Finding{Kind: ipam.UnusedLease, Space: l.Space, Address: l.Address, Subnet: l.Subnet,
		Lease: l.ID, Pool: l.Pool}}
	delete(p.waits, f.key())
	for _, k := range (&finding{pools: []ipam.ID{l.Pool}}).waitKeys() {
		delete(p.waits, k)
	}
}

// ripe reports whether a finding has lasted for the grace period and in at least two checks.
func (p *patience) ripe(f *finding, taken time.Time) bool {
	for _, k := range f.waitKeys() {
		if w := p.waits[k]; w.checks < 2 || taken.Sub(w.since) < p.grace {
			return false
		}
	}
	return !taken.Before(p.oldEnough(f))
}

// oldEnough is when the container of a lease has had the time to start.
func (p *patience) oldEnough(f *finding) time.Time { return f.leased.Add(min(settled, p.grace)) }

// ready is when a finding will have lasted for the grace period.
func (p *patience) ready(f *finding) (at time.Time) {
	at = p.oldEnough(f)
	for _, k := range f.waitKeys() {
		if one := p.waits[k].since.Add(p.grace); one.After(at) {
			at = one
		}
	}
	return at
}

// waitKeys are the keys of a finding's waits: its own or, for attachments, one for each.
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

// next is when the first of some findings will have lasted for the grace period. It is zero if none is waiting.
func (p *patience) next(found []finding) (first time.Time) {
	for i := range found {
		if f := &found[i]; f.sure && f.slow && f.unasked() && !f.Repaired {
			if at := p.ready(f); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first
}
