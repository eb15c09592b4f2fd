package cluster

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// leaveOther marks, after edits in one store, what their owners have in the other one as replaced, and returns the
// events of that.
func (e *Estate) leaveOther(ctx context.Context, at halves, opt ipam.EditOptions,
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
func (e *Estate) knowingRuns(ctx context.Context, edits []ipam.Edit) (of ofStores, err error) {
	shared, err := e.cluster("what the owners have")
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
