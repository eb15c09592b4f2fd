package cluster

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// Edit is Service.Edit in the store that the edits concern. It refuses edits that concern both. Only releases of owners
// are made in both stores, first in the cluster's. If the second store fails, the same edits can be repeated.
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
	out.Changes = append(out.Changes, left.Changes...)
	return out, nil
}

// editIn makes edits in one of the stores.
func (e *Service) editIn(ctx context.Context, at halves, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	if at.shared {
		return e.shared.Edit(ctx, opt, edits...)
	}
	return e.local.Edit(ctx, opt, edits...)
}

// releaseBoth releases the addresses of owners in both stores.
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
			"the addresses were released in the cluster's store, but not in this host's own store: %s; try again", err)
	}
	return and(out, own), nil
}

// and joins the outcomes of the same edits in two stores.
func and(out ipam.Outcome, other ipam.Outcome) ipam.Outcome {
	for i := range out.Results {
		out.Results[i].Addresses = append(out.Results[i].Addresses, other.Results[i].Addresses...)
	}
	out.Changes = append(out.Changes, other.Changes...)
	out.Replayed = out.Replayed && other.Replayed
	return out
}

// answered returns the stores in which the key of edits was used. It matters because the objects of the edits may since
// be removed or renamed.
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

// answered reports whether the outcome of a key is stored.
func answered(ctx context.Context, s *ledger.Ledger, key string) (bool, error) {
	return ledger.Look(ctx, s, func(c *ledger.Change) (bool, error) {
		k, err := edit.KeptFor(c.Tx(), key)
		return k != nil && err == nil && c.Now().Sub(ipam.EventTime(k.Time)) < ipam.KeyAge, err
	})
}

// ofDeploys reports whether all edits lock or unlock projects.
func ofDeploys(edits []ipam.Edit) bool {
	for _, e := range edits {
		_, locks := e.(*ipam.LockDeploy)
		if _, ends := e.(*ipam.UnlockDeploy); !locks && !ends {
			return false
		}
	}
	return len(edits) > 0
}

// lockBoth locks projects in both stores, because a project may have addresses in each. It locks the cluster's store
// first, so that of two hosts one is refused before it locks anything. Both locks may be repeated.
func (e *Service) lockBoth(ctx context.Context, opt ipam.EditOptions, edits []ipam.Edit) (ipam.Outcome, error) {
	out, err := e.shared.Edit(ctx, opt, edits...)
	if err != nil {
		return out, err
	}
	own, err := e.local.Edit(ctx, opt, edits...)
	if errors.Is(err, ipam.ErrNotFound) {
		return out, nil // the deploy is on another host, and its lock there expires
	} else if err != nil {
		return ipam.Outcome{}, err
	}
	return and(out, own), nil
}

// leaveOther runs after edits in one store. It marks the owners' reservations in the other store as replaced, and
// returns the outcome of that.
func (e *Service) leaveOther(ctx context.Context, at halves, opt ipam.EditOptions,
	edits []ipam.Edit) (left ipam.Outcome, err error) {
	other, where := e.local, "this host's own store"
	if at.own {
		if other, err = e.shared.service(); err != nil {
			return left, nil // the cluster's store is unknown, and the host's own must work without it
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
			return left, err
		}
		if has {
			leaves = append(leaves, &edit.LeaveStore{Owner: add.Owner, Only: add.Only})
		}
	}
	if len(leaves) == 0 {
		return left, nil
	}
	left, err = e.editIn(ctx, halves{own: at.shared, shared: at.own}, ipam.EditOptions{DryRun: opt.DryRun}, leaves)
	if err != nil {
		err = ipam.Refuse(err, "the new address is reserved, but the old one in %s is not marked as replaced: "+
			"%s; try again", where, err)
	}
	return left, err
}

// ofStores has the same edits in the form for each store.
type ofStores struct{ own, shared []ipam.Edit }

// knowingRuns adds to releases of replaced reservations which owners use an address of the other store.
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

// running returns those of the owners that use a wanted address.
func running(ctx context.Context, s *ledger.Ledger, owners edit.OwnerSet) (map[string]bool, error) {
	return ledger.Look(ctx, s, func(c *ledger.Change) (map[string]bool, error) {
		runs := map[string]bool{}
		return runs, edit.EachOwned(c, owners, func(at ledger.Picked) error {
			if r := at.Record.Reservation; !r.Replaced && at.Record.Held() {
				runs[r.Owner] = true
			}
			return nil
		})
	})
}
