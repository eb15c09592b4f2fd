package edit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// deploying puts the edits of a deploy of the project shop, and the refusals of others, into a script.
var deploying = strings.NewReplacer(
	"UNLOCK", `@by=root edit deploy.unlock {"project": "shop",`,
	"LOCK", `@by=root edit deploy.lock {"project": "shop", "host": "h1", "pid": 7, "task": "apply", `+
		`"owners": ["mail"], "ttl": "30s", "id":`,
	"HELD", "inuse; =DeployLocked; root on host h1 (process 7)")

// TestDeployLock: a project that is locked for a deploy is locked until the deploy ends, or the lock expires. Nobody
// else locks it or changes the reservations of its owners. The refusal names the holder (BD-1).
func TestDeployLock(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(deploying.Replace(`
		network net1 subnet=192.0.2.0/24,pool
		LOCK "ID:mine"}
		LOCK "ID:other"} ! HELD
		reserve net1 shop/web/1 ! HELD
		@deploy=other reserve net1 shop/web/1 ! HELD
		@deploy=mine reserve net1 shop/web/1
		reserve net1 mail ! HELD
		@deploy=other reserve net1 mail ! HELD
		@deploy=mine reserve net1 mail
		end shop under ! HELD
		@deploy=other unreserve net1 shop/web/1 ! HELD
		@deploy=other bind net1 shop/web/1 ! HELD
		# of other projects
		reserve net1 shopping/web/1
		reserve net1 web

		wait 20s
		LOCK "ID:mine"}
		wait 29s
		restart
		LOCK "ID:other"} ! HELD
	`))
	all, err := r.S.Deploys(ctx)
	if err != nil || len(all) != 1 || all[0].Holder != "root" || all[0].ID != ipamtest.IDOf("mine") {
		t.Errorf("there are %+v, %v", all, err)
	}
	r.Run(deploying.Replace(`
		wait 1s
		reserve net1 shop/web/2
		LOCK "ID:other"}
		LOCK "ID:mine"} ! HELD
		# what is another's lock by now is not ended by that
		UNLOCK "id": "ID:mine"}
		LOCK "ID:mine"} ! HELD
		UNLOCK "force": true}
		UNLOCK "force": true} ! notfound
		LOCK "ID:mine"}

		LOCK "ID:mine", "renews": true}
		# late, and nobody has had it
		wait 1m
		LOCK "ID:mine", "renews": true}
		UNLOCK "force": true}
		LOCK "ID:mine", "renews": true} ! inuse; =DeployLocked; was removed
		LOCK "ID:other"}
		wait 1m
		LOCK "ID:mine", "renews": true} ! HELD

		edit deploy.lock {"project": "a", "ttl": "1m"} ! invalid
		edit deploy.lock {"id": "ID:mine", "ttl": "1m"} ! invalid
		edit deploy.lock {"project": "a/b", "id": "ID:mine", "ttl": "1m"} ! invalid
		edit deploy.lock {"project": "a", "id": "ID:mine", "ttl": "1h"} ! invalid
	`))
}

// TestDeployLockAndClock: if the clock is set, the lock of a killed deploy expires at most half a minute earlier or
// later. A running deploy keeps its lock (BD-1).
func TestDeployLockAndClock(t *testing.T) {
	const ttl = 30 * time.Second
	for _, step := range []time.Duration{-24 * time.Hour, -time.Hour, -20 * time.Second, 0, 20 * time.Second, time.Hour,
		24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		for _, back := range []bool{false, true} {
			r := ipamtest.New(t)
			r.Run(deploying.Replace(`LOCK "ID:mine"}`))
			r.Clock.Time = r.Clock.Time.Add(9*time.Second + step)
			r.Run(deploying.Replace(`
				LOCK "ID:mine", "renews": true}
				LOCK "ID:other"} ! inuse`))
			r.Clock.Time = r.Clock.Time.Add(time.Second - step) // it is killed, and the clock is set again
			if back {
				r.Clock.Time = r.Clock.Time.Add(step)
			}
			other := &ipam.LockDeploy{Project: "shop", ID: ipam.NewID(), TTL: ipam.Duration(ttl)}
			lasted := time.Second
			for ; lasted < 2*ttl; lasted += time.Second {
				if _, err := r.S.Edit(ctx, ipam.EditOptions{}, other); err == nil {
					break
				}
				r.Clock.Time = r.Clock.Time.Add(time.Second)
			}
			if lasted > 2*ttl-time.Second && step != 0 || step == 0 && lasted != ttl {
				t.Errorf("a step of %s, and back %t: it lasted for %s", step, !back, lasted)
			}
		}
	}
}

// TestDeployRuns: events show a project's deploys and their results. The result comes from the deploy, or from the
// end of its lock (BD-1).
func TestDeployRuns(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(deploying.Replace(`
		LOCK "ID:a"}
		wait 1s
		UNLOCK "id": "ID:a", "outcome": "done", "did": "1 created"}
		# again, since the answer was lost: it is told once
		UNLOCK "id": "ID:a", "outcome": "done", "did": "1 created"}
		LOCK "ID:b"}
		UNLOCK "id": "ID:b", "outcome": "failed"}
		UNLOCK "id": "ID:b", "outcome": "failed"}
		LOCK "ID:c"}
		UNLOCK "id": "ID:c", "outcome": "refused"}
		LOCK "ID:d"}
		UNLOCK "id": "ID:d"}
		edit deploy.lock {"project": "another", "id": "ID:x", "ttl": "30s"}
		edit deploy.unlock {"project": "another", "id": "ID:x", "outcome": "done"}
		# nothing more is heard of this one
		LOCK "ID:e"}
		wait 1m
		LOCK "ID:f"}
		UNLOCK "force": true}
		UNLOCK "id": "ID:f", "outcome": "lock_lost"}
		LOCK "ID:g"}
		wait 1m
		LOCK "ID:h"}
		UNLOCK "id": "ID:g", "outcome": "lock_lost"}
	`))
	runs, err := r.S.DeployRuns(ctx, "shop", 0)
	fine(t, err)
	var got []string
	for _, run := range runs {
		got = append(got, string(run.Outcome))
		if run.By != "root" || run.Host != "h1" || run.PID != 7 || run.Task != "apply" || run.Project != "shop" {
			t.Errorf("a deploy is told as %+v", run)
		}
	}
	want := "running lock_lost lock_taken_away silent silent refused failed done"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("the deploys came to %s; it was to be %s", text, want)
	}
	first := runs[len(runs)-1]
	if first.Ended.Sub(first.Begun).Round(time.Second) != time.Second || first.Did != "1 created" {
		t.Errorf("the first is %+v", first)
	}
	if last, err := r.S.DeployRuns(ctx, "shop", 1); err != nil || len(last) != 1 || last[0].ID != runs[0].ID {
		t.Errorf("the last is %+v, %v", last, err)
	}
	r.Run(deploying.Replace(`UNLOCK "id": "ID:h", "did": "LONG LONG"} ! invalid`)) // longer than MaxDid
}

// TestOrphans: a volume is an orphan from the first report until it is reported as removed or in use. While its
// project is deployed, only the deploy changes that. Nobody else gives up the only complete copy of a volume (BD-5,
// BD-8).
func TestOrphans(t *testing.T) {
	r := ipamtest.New(t)
	begun := r.Clock.Time
	recorded := func(want ...string) {
		t.Helper()
		all, err := r.S.Orphans(ctx)
		fine(t, err)
		var got []string
		for _, o := range all {
			got = append(got, fmt.Sprintf("%s,%s,%s,%s,%s,%s,%s", o.Volume, o.Project, o.Service, o.Host, o.Of, o.Stage,
				o.Since.Sub(begun)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded is %q", got)
		}
	}
	r.Run(deploying.Replace(`
		edit deploy.orphan {"volume": "shop_data", "project": "shop", "service": "db", "host": "h1"}
		wait 1h
		edit deploy.orphan {"volume": "shop_data", "project": "shop", "host": "h1"}
	`))
	recorded("shop_data,shop,db,h1,,,0s")
	r.Run(deploying.Replace(`
		LOCK "ID:mine"}
		edit deploy.orphan {"volume": "shop_data", "project": "shop", "service": "db", "host": "h1"} ! HELD
		edit deploy.orphan.remove {"volume": "shop_data"} ! HELD
		@deploy=mine edit deploy.orphan.remove {"volume": "shop_data"}
		@deploy=mine edit deploy.orphan.remove {"volume": "shop_data"}
		@deploy=mine edit deploy.orphan {"volume": "shop_data-orphan-1", "project": "shop", "of": "shop_data", "stage": "restoring"}
		UNLOCK "id": "ID:mine"}
		# the only whole copy
		edit deploy.orphan.remove {"volume": "shop_data-orphan-1"} ! inuse
		edit deploy.orphan {"project": "shop"} ! invalid
		edit deploy.orphan {"volume": "LONG", "project": "shop"} ! invalid
		edit deploy.orphan {"volume": "a\nb", "project": "shop"} ! invalid
		edit deploy.orphan {"volume": "v"} ! invalid
		edit deploy.orphan {"volume": "v", "project": "shop/web"} ! invalid
		edit deploy.orphan {"volume": "v", "project": "shop", "of": "w", "stage": "half"} ! invalid
		edit deploy.orphan {"volume": "v", "project": "shop", "stage": "saving"} ! invalid
	`))
	recorded("shop_data-orphan-1,shop,,,shop_data,restoring,1h0m0s")
}

// TestWorkers: Berth remembers the last run of each worker. While a project is deployed, only the deploy records one
// (BD-6).
func TestWorkers(t *testing.T) {
	r := ipamtest.New(t)
	recorded := func(want string) {
		t.Helper()
		all, err := r.S.Workers(ctx)
		fine(t, err)
		got := ""
		for _, w := range all {
			got += strings.Join([]string{w.Project, w.Service, w.Hash, w.Image}, ",") + " "
		}
		if got != want {
			t.Errorf("recorded is %q", got)
		}
	}
	r.Run(deploying.Replace(`
		edit deploy.worker {"project": "shop", "service": "migrate", "hash": "h1", "image": "sha256:1"}
		LOCK "ID:mine"}
		edit deploy.worker {"project": "shop", "service": "migrate", "hash": "h2"} ! HELD
	`))
	recorded("shop,migrate,h1,sha256:1 ")
	r.Run(deploying.Replace(`
		@deploy=mine edit deploy.worker {"project": "shop", "service": "migrate", "hash": "h2"}
		@deploy=mine edit deploy.worker {"project": "shop", "service": "seed", "hash": "h3"}
		edit deploy.worker {"project": "shop", "hash": "h"} ! invalid
		edit deploy.worker {"project": "shop/web", "service": "migrate", "hash": "h"} ! invalid
		edit deploy.worker {"project": "blog", "service": "migrate"} ! invalid
	`))
	recorded("shop,migrate,h2, shop,seed,h3, ")
}
