package deploy

import (
	"os"
	"slices"
	"time"

	"berth/internal/deploy"
	"berth/internal/deploy/rollout"
	"berth/internal/ipam"
)

// unclaimed adds reservations for replicas that the files no longer name to the inputs of a plan.
func (s *site) unclaimed(wants *deploy.Plan, in *rollout.Inputs) error {
	if s.task.Do != "" {
		return nil
	}
	reserved, err := s.Reservations(s, "", "")
	if err != nil {
		return err
	}
	all := wants.UnclaimedOwners(reserved)
	if len(all) == 0 {
		return nil
	}
	runs, err := s.DeployRuns(s, in.Project, 0)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(run ipam.DeployRun) bool { return run.Host != host })
	for i := range all {
		in.Unclaimed = append(in.Unclaimed, unclaimed(&all[i], runs))
	}
	return nil
}

func unclaimed(u *deploy.Unclaimed, runs []ipam.DeployRun) rollout.Unclaimed {
	one := rollout.Unclaimed{Owner: u.Owner, Service: u.Service, Number: u.Number, Why: u.Why, Made: true}
	for i := range u.Reserved {
		r := &u.Reserved[i]
		one.InUse = one.InUse || r.InUse
		one.Made = one.Made && madeBy(runs, r)
		k := slices.IndexFunc(one.On, func(a rollout.Address) bool { return a.Planned == r.Network })
		if k < 0 {
			k = len(one.On)
			one.On = append(one.On, rollout.Address{Network: r.Network, Planned: r.Network})
		}
		one.On[k].Has = append(one.On[k].Has, r.Address)
	}
	return one
}

// madeBy reports whether one of the deploys made a reservation that nobody has changed since: it was made while the
// deploy held the project's lock, when nobody else could. An address that a person gave is static, even if a deploy
// chose it before.
func madeBy(runs []ipam.DeployRun, r *ipam.ReservationInfo) bool {
	if r.Kind != ipam.Automatic || r.Note != "" || !r.Until.IsZero() || r.Dynamic {
		return false
	}
	return slices.ContainsFunc(runs, func(run ipam.DeployRun) bool {
		return !r.Since.Before(run.Begun) && r.Since.Before(lockedUntil(&run))
	})
}

// lockedUntil returns until when a deploy held its project's lock for sure.
func lockedUntil(run *ipam.DeployRun) time.Time {
	switch run.Outcome {
	case ipam.DeployDone, ipam.DeployFailed, ipam.DeployRefused, ipam.DeployTaken:
		return run.Ended
	}
	least := run.Begun.Add(lockTTL)
	if !run.Ended.IsZero() && run.Ended.Before(least) {
		return run.Ended
	}
	return least
}
