package edit

import (
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// deployLocks is the key range of the project locks.
func deployLocks() store.Range {
	return store.Prefix(append([]byte{ledger.SettingKeys}, "deploying "...))
}

func deployLockKey(project string) []byte {
	return append(deployLocks().From, project...)
}

// deployLockNoun names a lock that is damaged.
const deployLockNoun = "the lock of a deploy"

// DeployLocks reads the project locks that are in force.
func DeployLocks(tx store.Tx, now time.Time) ([]ipam.DeployLock, error) {
	all, err := ledger.AllJSON[ipam.DeployLock](tx, deployLocks(), deployLockNoun)
	return slices.DeleteFunc(all, func(lock ipam.DeployLock) bool { return !lock.Lasts(now) }), err
}

// lockDeploy locks a project or renews its lock. An expired lock is free for anyone. A deploy that lost its lock cannot
// renew it, because its view of the project may be outdated.
func lockDeploy(c *run, e *ipam.LockDeploy) error {
	if err := checkLock(e); err != nil {
		return err
	}
	held, err := ledger.ReadJSON[ipam.DeployLock](c.Tx(), deployLockKey(e.Project), deployLockNoun)
	if err != nil {
		return err
	}
	mine := held != nil && held.ID == e.ID
	switch {
	case held != nil && !mine && (e.Renews || held.Lasts(c.Now())):
		return lockRefusal(held)
	case held == nil && e.Renews:
		return ipam.RefuseAs(ipam.DeployLocked, ipam.ErrInUse, "the lock of the project %s was removed, or another "+
			"deploy took it; run the deploy again", e.Project)
	}
	lock := &ipam.DeployLock{Project: e.Project, ID: e.ID, Holder: c.Actor(), Host: e.Host, PID: e.PID,
		Task: e.Task, Owners: e.Owners, Since: c.Now(), Expires: c.Now().Add(time.Duration(e.TTL)), TTL: e.TTL}
	if mine {
		lock.Since, lock.Holder = held.Since, held.Holder
	} else if err := begin(c.Change, e); err != nil {
		return err
	}
	_, err = c.PutJSON(deployLockKey(e.Project), lock)
	return err
}

// begin records the start of a deploy, and removes locks that expired long ago.
func begin(c *ledger.Change, e *ipam.LockDeploy) error {
	if err := trimDeployLocks(c); err != nil {
		return err
	}
	after, err := rawJSON(ipam.DeployBeginning{ID: e.ID, Host: e.Host, PID: e.PID, Task: e.Task})
	if err != nil {
		return err
	}
	_, err = c.Event(&ipam.Event{Verb: ipam.DeployBegun, Name: e.Project, Detail: e.Task, After: after})
	return err
}

func checkLock(e *ipam.LockDeploy) error {
	if err := ipam.CheckName("project", e.Project); err != nil {
		return err
	}
	switch {
	case strings.Contains(e.Project, "/"):
		return ipam.Refuse(ipam.ErrInvalid, "%q is not a project name: it contains a slash", e.Project)
	case e.ID == (ipam.ID{}):
		return ipam.Refuse(ipam.ErrInvalid, "a deploy of %s needs its own id to renew its lock", e.Project)
	case e.TTL < ipam.LeastDeployTTL || e.TTL > ipam.MostDeployTTL:
		return ipam.Refuse(ipam.ErrInvalid, "the lock of %s cannot last %s without renewal; give %s to %s", e.Project,
			time.Duration(e.TTL), time.Duration(ipam.LeastDeployTTL), time.Duration(ipam.MostDeployTTL))
	case len(e.Owners) > ipam.MaxEdits:
		return ipam.Refuse(ipam.ErrInvalid, "the lock of %s names %d owners; at most %d are allowed", e.Project,
			len(e.Owners), ipam.MaxEdits)
	}
	return nil
}

// lockRefusal refuses a request because of another deploy's lock.
func lockRefusal(held *ipam.DeployLock) error {
	who := held.Holder
	if held.Host != "" {
		who += " on host " + held.Host
	}
	return ipam.RefuseAs(ipam.DeployLocked, ipam.ErrInUse, "another deploy of the project %s, by %s (process %d), "+
		"began at %s; its lock lasts until at least %s", held.Project, who, held.PID, held.Since.Format(time.RFC3339),
		held.Expires.Format(time.RFC3339)).Advise(ipam.DoUnlockDeploy, held.Project)
}

// unlockDeploy ends a lock. A missing lock, or another deploy's, is no error. If the deploy reports that it lost its
// lock, only the event is written.
func unlockDeploy(c *run, e *ipam.UnlockDeploy) error {
	if len(e.Did) > ipam.MaxDid {
		return ipam.Refuse(ipam.ErrInvalid, "the report of the deploy of %s has %d bytes; at most %d are allowed",
			e.Project, len(e.Did), ipam.MaxDid)
	}
	held, err := ledger.ReadJSON[ipam.DeployLock](c.Tx(), deployLockKey(e.Project), deployLockNoun)
	if err != nil {
		return err
	}
	switch {
	case held == nil && e.Force:
		return ipam.Refuse(ipam.ErrNotFound, "the project %s is not locked", e.Project)
	case held != nil && e.Force:
		detail := "its lock was taken away from " + held.Holder
		err = ended(c.Change, e.Project, detail, ipam.DeployEnding{ID: held.ID, Outcome: ipam.DeployTaken})
	case held != nil && held.ID == e.ID:
		err = ended(c.Change, e.Project, said(e), ipam.DeployEnding{ID: e.ID, Outcome: e.Outcome, Did: e.Did})
	case e.Outcome == ipam.DeployLost:
		return ended(c.Change, e.Project, said(e), ipam.DeployEnding{ID: e.ID, Outcome: e.Outcome, Did: e.Did})
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return c.Tx().Delete(deployLockKey(e.Project))
}

// said returns the deploy's own report for readers of events.
func said(e *ipam.UnlockDeploy) string {
	if e.Did == "" {
		return string(e.Outcome)
	}
	return string(e.Outcome) + ": " + e.Did
}

// ended records the end of a deploy.
func ended(c *ledger.Change, project, detail string, how ipam.DeployEnding) error {
	after, err := rawJSON(how)
	if err != nil {
		return err
	}
	_, err = c.Event(&ipam.Event{Verb: ipam.DeployEnded, Name: project, Detail: detail, After: after})
	return err
}

// unlocked refuses an edit of reservations in a project that another deploy has locked.
func unlocked(c *run, e ipam.Edit) error {
	owners := ownersOf(e)
	if len(owners) == 0 {
		return nil
	}
	if !c.locksRead {
		locks, err := DeployLocks(c.Tx(), c.Now())
		if err != nil {
			return err
		}
		c.locks, c.locksRead = locks, true
	}
	for i := range c.locks {
		if lock := &c.locks[i]; lock.ID != c.deploy && slices.ContainsFunc(owners, lock.Of) {
			return lockRefusal(lock)
		}
	}
	return nil
}

// ownersOf returns the owners whose reservations an edit changes.
func ownersOf(e ipam.Edit) (owners []string) {
	switch e := e.(type) {
	case *ipam.AddReservation:
		return []string{ipam.CanonicalOwner(e.Owner)}
	case *ipam.RemoveReservation:
		return []string{ipam.CanonicalOwner(e.Owner)}
	case *ipam.ReleaseOwner:
		return []string{ipam.CanonicalOwner(e.Owner)}
	case *ipam.BindReservations:
		for i := range e.Wanted {
			owners = append(owners, ipam.CanonicalOwner(e.Wanted[i].Owner))
		}
	}
	return owners
}

// trimDeployLocks removes locks that expired long ago, so that they do not accumulate.
func trimDeployLocks(c *ledger.Change) error {
	var over [][]byte
	for lock, err := range ledger.EachJSON[ipam.DeployLock](c.Tx(), deployLocks(), deployLockNoun) {
		if err != nil {
			return err
		}
		if c.Now().Sub(lock.Value.Expires).Abs() > 2*time.Duration(ipam.MostDeployTTL) {
			over = append(over, lock.Key)
		}
	}
	for _, key := range over {
		if err := c.Tx().Delete(key); err != nil {
			return err
		}
	}
	return nil
}
