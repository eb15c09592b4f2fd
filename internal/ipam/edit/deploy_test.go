package edit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// deployer makes edits of a deploy, the zero ID: of nobody's, and says which of them were to be done and were not.
func deployer(t *testing.T, r *ipamtest.Room) (edit func(deploy ipam.ID, e ipam.Edit) error,
	done func(what string, err error)) {
	edit = func(deploy ipam.ID, e ipam.Edit) error {
		t.Helper()
		_, err := r.S.Edit(ipam.WithActor(ctx, "root"), ipam.EditOptions{Deploy: deploy}, e)
		return err
	}
	return edit, func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeployLock: a project that is locked for a deploy is of that alone until it ends, or its time is over: nobody
// else locks it or changes what is reserved for its owners, and the refusal says who has it (BD-1).
func TestDeployLock(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool")
	mine, other := ipam.NewID(), ipam.NewID()
	as, done := deployer(t, r)
	lock := func(id ipam.ID) error {
		t.Helper()
		return as(id, &ipam.LockDeploy{Project: "shop", ID: id, Host: "h1", PID: 7, Owners: []string{"mail"},
			TTL: ipam.Duration(30 * time.Second)})
	}
	reserve := func(deploy ipam.ID, owner string) error {
		t.Helper()
		return as(deploy, &ipam.AddReservation{Network: "net1", Owner: owner, Wishes: []ipam.Wish{{}}})
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ipam.ErrInUse) || ipam.CodeOf(err) != ipam.DeployLocked ||
			!strings.Contains(err.Error(), "root on host h1 (process 7)") {
			t.Errorf("%s: %v", what, err)
		}
	}
	done("locked", lock(mine))
	refused("locked twice", lock(other))
	for _, owner := range []string{"shop/web/1", "mail"} {
		refused("another's reservation for "+owner, reserve(ipam.ID{}, owner))
		refused("another deploy's for "+owner, reserve(other, owner))
		done("its own for "+owner, reserve(mine, owner))
	}
	refused("released", as(ipam.ID{}, &ipam.ReleaseOwner{Owner: "shop", Under: true}))
	refused("removed", as(other, &ipam.RemoveReservation{Network: "net1", Owner: "shop/web/1"}))
	refused("bound", as(other, &ipam.BindReservations{Wanted: []ipam.AddReservation{{Network: "net1",
		Owner: "shop/web/1", Wishes: []ipam.Wish{{}}}}}))
	for _, owner := range []string{"shopping/web/1", "web"} {
		done("another project's "+owner, reserve(ipam.ID{}, owner))
	}

	r.Clock.Time = r.Clock.Time.Add(20 * time.Second)
	done("renewed", lock(mine))
	r.Clock.Time = r.Clock.Time.Add(29 * time.Second)
	r.Reopened()
	refused("locked before its time is over", lock(other))
	all, err := r.S.Deploys(ctx)
	if err != nil || len(all) != 1 || all[0].Holder != "root" || all[0].ID != mine {
		t.Errorf("there are %+v, %v", all, err)
	}
	r.Clock.Time = r.Clock.Time.Add(time.Second)
	done("a reservation after its time", reserve(ipam.ID{}, "shop/web/2"))
	done("locked after its time", lock(other))
	refused("the first one again", lock(mine))
	done("what is another's lock by now", as(mine, &ipam.UnlockDeploy{Project: "shop", ID: mine}))
	refused("it was not ended by that", lock(mine))
	done("taken away", as(ipam.ID{}, &ipam.UnlockDeploy{Project: "shop", Force: true}))
	if err := as(ipam.ID{}, &ipam.UnlockDeploy{Project: "shop", Force: true}); !errors.Is(err, ipam.ErrNotFound) {
		t.Errorf("taken away twice: %v", err)
	}
	done("locked again", lock(mine))

	renew := func(id ipam.ID) error {
		t.Helper()
		return as(id, &ipam.LockDeploy{Project: "shop", ID: id, Host: "h1", PID: 7, TTL: ipam.Duration(30 * time.Second),
			Renews: true})
	}
	done("renewed in time", renew(mine))
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	done("renewed late, nobody having had it", renew(mine))
	done("taken away from a deploy that lives", as(ipam.ID{}, &ipam.UnlockDeploy{Project: "shop", Force: true}))
	if err := renew(mine); ipam.CodeOf(err) != ipam.DeployLocked || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("renewed after it was taken away: %v", err)
	}
	done("locked by another", lock(other))
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	refused("renewed after another had it", renew(mine))
	for what, e := range map[string]*ipam.LockDeploy{
		"no id":      {Project: "a", TTL: ipam.Duration(time.Minute)},
		"no project": {ID: mine, TTL: ipam.Duration(time.Minute)},
		"a path":     {Project: "a/b", ID: mine, TTL: ipam.Duration(time.Minute)},
		"for ever":   {Project: "a", ID: mine, TTL: ipam.Duration(time.Hour)},
	} {
		if err := as(mine, e); !errors.Is(err, ipam.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeployLockAndClock: where the clock is set, the lock of a deploy that was killed ends half a minute earlier or later
// at most, and a deploy that lives goes on (BD-1).
func TestDeployLockAndClock(t *testing.T) {
	const ttl = 30 * time.Second
	for _, step := range []time.Duration{-24 * time.Hour, -time.Hour, -20 * time.Second, 0, 20 * time.Second, time.Hour,
		24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		for _, back := range []bool{false, true} {
			r := ipamtest.New(t)
			mine := ipam.NewID()
			as, done := deployer(t, r)
			lock := func(id ipam.ID, renews bool) error {
				return as(id, &ipam.LockDeploy{Project: "shop", ID: id, Host: "h1", TTL: ipam.Duration(ttl), Renews: renews})
			}
			done("locked", lock(mine, false))
			r.Clock.Time = r.Clock.Time.Add(9*time.Second + step)
			done("renewed after a step", lock(mine, true))
			if err := lock(ipam.NewID(), false); !errors.Is(err, ipam.ErrInUse) {
				t.Errorf("a step of %s, and it is renewed: %v", step, err)
			}
			r.Clock.Time = r.Clock.Time.Add(time.Second - step) // it is killed, and the clock is set again
			if back {
				r.Clock.Time = r.Clock.Time.Add(step)
			}
			lasted := time.Second
			for ; lock(ipam.NewID(), false) != nil && lasted < 2*ttl; lasted += time.Second {
				r.Clock.Time = r.Clock.Time.Add(time.Second)
			}
			if lasted > 2*ttl-time.Second && step != 0 || step == 0 && lasted != ttl {
				t.Errorf("a step of %s, and back %t: it lasted for %s", step, !back, lasted)
			}
		}
	}
}
