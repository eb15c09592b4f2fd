package cluster

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// Edit is Service.Edit in the store that the edits are about; edits of both are refused. Only releases of owners go to
// both, the cluster's first: what of them was made before a failure does no harm when it is asked for again.
func (e *Service) Edit(ctx context.Context, opt ipam.EditOptions, edits ...ipam.Edit) (ipam.Outcome, error) {
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
func (e *Service) editIn(ctx context.Context, at halves, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	if at.shared {
		return e.shared.Edit(ctx, opt, edits...)
	}
	return e.local.Edit(ctx, opt, edits...)
}

// releaseBoth releases what owners have in both stores.
func (e *Service) releaseBoth(ctx context.Context, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
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
func (e *Service) answered(ctx context.Context, opt ipam.EditOptions) (at halves, err error) {
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

// ofDeploys tells whether edits lock projects, or end that.
func ofDeploys(edits []ipam.Edit) bool {
	for _, e := range edits {
		_, locks := e.(*ipam.LockDeploy)
		if _, ends := e.(*ipam.UnlockDeploy); !locks && !ends {
			return false
		}
	}
	return len(edits) > 0
}

// lockBoth locks projects in both stores, since a project may have addresses in each: the cluster's first, so that of
// two hosts one is refused before anything is locked. Each may be asked for again.
func (e *Service) lockBoth(ctx context.Context, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	out, err := e.shared.Edit(ctx, opt, edits...)
	if err != nil {
		return out, err
	}
	own, err := e.local.Edit(ctx, opt, edits...)
	if errors.Is(err, ipam.ErrNotFound) {
		return out, nil // the deploy is on another host, in whose own store its lock ends with its time
	} else if err != nil {
		return ipam.Outcome{}, err
	}
	return and(out, own), nil
}

// leaveOther marks, after edits in one store, what their owners have in the other one as replaced, and returns the
// events of that.
func (e *Service) leaveOther(ctx context.Context, at halves, opt ipam.EditOptions,
	edits []ipam.Edit) ([]ipam.Event, error) {
	other, where := e.local, "this host's own store"
	if at.own {
		var err error
		if other, err = e.shared.service(); err != nil {
			return nil, nil // what is there is not known; what is the host's own goes on without the cluster
		}
		where = "the store of the cluster"
	}
	var leaves []ipam.Edit
	for _, one := range edits {
		add, ok := one.(*ipam.AddReservation)
		if !ok || add.Only == nil {
			continue
		}
		has, err := owns(ctx, other.Ledger, &ipam.ReleaseOwner{Owner: add.Owner})
		if err != nil {
			return nil, err
		}
		if has {
			leaves = append(leaves, &edit.LeaveStore{Owner: add.Owner, Only: add.Only})
		}
	}
	if len(leaves) == 0 {
		return nil, nil
	}
	out, err := e.editIn(ctx, halves{own: at.shared, shared: at.own}, ipam.EditOptions{DryRun: opt.DryRun}, leaves)
	if err != nil {
		return nil, ipam.Refuse(err,
			"what was asked for is reserved, and what is to be replaced by it in %s is not marked: %s; ask for "+
				"it again", where, err)
	}
	return out.Changes, nil
}

// ofStores are the same edits, as each of the stores is to make them.
type ofStores struct{ own, shared []ipam.Edit }

// knowingRuns has releases of what was replaced know who runs with an address of the other store.
func (e *Service) knowingRuns(ctx context.Context, edits []ipam.Edit) (of ofStores, err error) {
	shared, err := e.shared.service()
	if err != nil {
		return of, err
	}
	knowing := func(one ipam.Edit, other *service.Service) (ipam.Edit, error) {
		release, ok := one.(*ipam.ReleaseOwner)
		if !ok || !release.Replaced {
			return one, nil
		}
		runs, err := running(ctx, other.Ledger, edit.Owners(release))
		return &edit.ReleaseKnowing{ReleaseOwner: release, Runs: runs}, err
	}
	for _, one := range edits {
		own, err := knowing(one, shared)
		if err != nil {
			return of, err
		}
		theirs, err := knowing(one, e.local)
		if err != nil {
			return of, err
		}
		of.own, of.shared = append(of.own, own), append(of.shared, theirs)
	}
	return of, nil
}

// running are those of the owners that have an address in use which they are to have.
func running(ctx context.Context, s *ledger.Ledger, owners edit.OwnerSet) (runs map[string]bool, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		runs = map[string]bool{}
		return edit.EachOwned(c, owners, func(at ledger.Picked) error {
			if r := at.Record.Reservation; !r.Replaced && at.Record.Held() {
				runs[r.Owner] = true
			}
			return nil
		})
	})
	return runs, err
}
