package cluster

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Edit is Service.Edit in the store that the edits are about; edits of both are refused. Only releases of owners go to
// both, the cluster's first: what of them was made before a failure does no harm when it is asked for again.
func (e *Estate) Edit(ctx context.Context, opt ipam.EditOptions, edits ...ipam.Edit) (ipam.Outcome, error) {
	if ofDeploys(edits) {
		return e.lockBoth(ctx, opt, edits)
	}
	at, err := e.answered(ctx, opt)
	if err == nil && at == (halves{}) {
		at, err = e.placeEdits(ctx, edits)
	}
	if err != nil {
		return ipam.Outcome{}, err
	}
	if at.own && at.shared {
		return e.releaseBoth(ctx, opt, edits)
	}
	out, err := e.editIn(ctx, at, opt, edits)
	if err != nil {
		return out, err
	}
	left, err := e.leaveOther(ctx, at, opt, edits)
	if err != nil {
		return ipam.Outcome{}, err
	}
	out.Changes = append(out.Changes, left...)
	return out, nil
}

// editIn makes edits in one of the stores.
func (e *Estate) editIn(ctx context.Context, at halves, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	if at.shared {
		return e.shared.Edit(ctx, opt, edits...)
	}
	return e.local.Edit(ctx, opt, edits...)
}

// releaseBoth releases what owners have in both stores.
func (e *Estate) releaseBoth(ctx context.Context, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	of, err := e.knowingRuns(ctx, edits)
	if err != nil {
		return ipam.Outcome{}, err
	}
	out, err := e.shared.Edit(ctx, opt, of.shared...)
	if err != nil {
		return out, err
	}
	own, err := e.local.Edit(ctx, opt, of.own...)
	if err != nil {
		return ipam.Outcome{}, ipam.Refuse(err,
			"it was released in the store of the cluster, and not in this host's own: %s; ask for it again", err)
	}
	return and(out, own), nil
}

// and is what the same edits came to in two stores.
func and(out ipam.Outcome, other ipam.Outcome) ipam.Outcome {
	for i := range out.Results {
		out.Results[i].Addresses = append(out.Results[i].Addresses, other.Results[i].Addresses...)
	}
	out.Changes = append(out.Changes, other.Changes...)
	out.Replayed = out.Replayed && other.Replayed
	return out
}

// answered are the stores in which the key of edits was used. What they were about may be gone since, or be called
// otherwise.
func (e *Estate) answered(ctx context.Context, opt ipam.EditOptions) (at halves, err error) {
	if opt.Key == "" {
		return at, nil
	}
	at.own, err = answered(ctx, e.local.Ledger, opt.Key)
	if s, away := e.shared.service(); err == nil && away == nil {
		at.shared, err = answered(ctx, s.Ledger, opt.Key)
	}
	return at, err
}

// answered tells whether the outcome of a key is kept.
func answered(ctx context.Context, s *ledger.Ledger, key string) (is bool, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		raw, err := c.Tx().Get(edit.OutcomeKey(key))
		if err != nil {
			return err
		}
		if raw == nil {
			return nil
		}
		var k edit.Kept
		err = ipam.DecodeJSON("an idempotency key", raw, &k)
		is = err == nil && c.Now().Sub(ipam.EventTime(k.Time)) < ipam.KeyAge
		return err
	})
	return is, err
}

// Note is Service.Note in the store of the event's space, and in the host's own where it has none.
func (e *Estate) Note(ctx context.Context, ev ipam.Event) error {
	s, err := e.in(ev.Space)
	if err != nil {
		return err
	}
	return s.Note(ctx, ev)
}

// Import is Service.Import in the store that the plan is about. A plan of both is refused.
func (e *Estate) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	own, err := e.ownsPlan(&p)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	if own {
		return e.local.Import(ctx, p, opt)
	}
	s, err := e.cluster("what the plan is about")
	if err != nil {
		return ipam.ImportReport{}, err
	}
	return s.Import(ctx, p, opt)
}

// ownsPlan tells whether a plan is the host's own store's.
func (e *Estate) ownsPlan(p *ipam.Plan) (own bool, err error) {
	var wrong ipam.PlanError
	of := map[bool]*ipam.PlannedNetwork{} // the first one of each store
	for i := range p.Networks {
		n := &p.Networks[i]
		own, err := e.ownsPlanned(n)
		if err != nil {
			wrong.Add(n.Line, "%s", err)
		} else if of[own] == nil {
			of[own] = n
		}
	}
	if err := wrong.Err(); err != nil {
		return false, err
	}
	for i := range p.Networks {
		n := &p.Networks[i]
		if of[true] != nil && n.Elastic != "" && n.Elastic != ipam.ElasticOff.String() {
			wrong.Add(n.Line, "network %s would be in this host's own store, and elastic addresses of a cluster are "+
				"mapped on networks of its own spaces only; leave elastic out, or choose another space", called(n))
		}
	}
	if err := wrong.Err(); err != nil {
		return false, err
	}
	if p.Elastic != nil && of[true] != nil {
		return false, ipam.Refuse(ipam.ErrInvalid, "the plan has networks of this host's own store (%s), and elastic "+
			"addresses, which are the cluster's; import those of each store by themselves", called(of[true]))
	}
	if of[true] != nil && of[false] != nil {
		return false, ipam.Refuse(ipam.ErrInvalid,
			"the plan has networks of this host's own store (%s) and of the cluster's (%s); import those of each "+
				"store by themselves",
			called(of[true]), called(of[false]))
	}
	return of[false] == nil && p.Elastic == nil, nil
}

// ownsPlanned tells whether a network of a plan is the host's own store's: one that is there is where it is, another
// one goes by its space.
func (e *Estate) ownsPlanned(p *ipam.PlannedNetwork) (bool, error) {
	own := ownsSpace(e.local.Ledger, p.Space)
	if p.Name == "" {
		return own, nil
	}
	n, has, err := e.find(p.Name, p.Space)
	switch {
	case err != nil:
		return false, err
	case n == nil:
		return own, nil
	case p.Space == "" || p.Space == n.Space || has == own:
		return has, nil
	}
	return false, ipam.Refuse(ipam.ErrInUse,
		"there is a network %s in the space %s, and a name is one network's only; choose another", p.Name, n.Space)
}

// called names a network of a plan for a person.
func called(p *ipam.PlannedNetwork) string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Space == "":
		return "those of the space " + ipam.LocalSpace
	}
	return "those of the space " + p.Space
}
