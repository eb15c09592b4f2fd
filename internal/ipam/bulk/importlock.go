package bulk

import (
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// An import reserves nothing for a project that is being deployed, as no edit does (BD-1). What it has begun it goes on
// with: a deploy that begins meanwhile finds what was added, as it finds what was there before.

// readLocks reads which projects are being deployed.
func (ck *importCheck) readLocks() (err error) {
	ck.locks, err = edit.DeployLocks(ck.tx, ck.began)
	return err
}

// checkLock refuses a reservation for a project that is being deployed, and notes whose it is for the import's begin.
func (ck *importCheck) checkLock(w *wanted) {
	ck.reserves = append(ck.reserves, w.owner)
	if lock := lockOf(ck.locks, w.owner); lock != nil {
		err := edit.LockRefusal(lock)
		ck.AddHelp(ipam.AdviceOf(err), w.line, "nothing is reserved for %s now: %s", w.owner, err)
	}
}

func lockOf(locks []*ipam.DeployLock, owner string) *ipam.DeployLock {
	i := slices.IndexFunc(locks, func(l *ipam.DeployLock) bool { return l.Of(owner) })
	if i < 0 {
		return nil
	}
	return locks[i]
}

// unlocked refuses to begin an import that reserves for a project which is being deployed since it was checked.
func unlocked(c *ledger.Change, owners []string) error {
	if len(owners) == 0 {
		return nil
	}
	locks, err := edit.DeployLocks(c.Tx(), c.Now())
	if err != nil || len(locks) == 0 {
		return err
	}
	for _, owner := range owners {
		if lock := lockOf(locks, owner); lock != nil {
			return edit.LockRefusal(lock)
		}
	}
	return nil
}
