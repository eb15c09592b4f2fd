package edit_test

import (
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestDeployRuns: the deploys of a project are told by their events, each with what came of it: by what it says itself,
// or by what became of its lock (BD-1).
func TestDeployRuns(t *testing.T) {
	r := ipamtest.New(t)
	edit := func(e ipam.Edit) {
		t.Helper()
		_, err := r.S.Edit(ipam.WithActor(ctx, "root"), ipam.EditOptions{}, e)
		fine(t, err)
		r.Clock.Time = r.Clock.Time.Add(time.Second)
	}
	lock := func(project string) ipam.ID {
		t.Helper()
		id := ipam.NewID()
		edit(&ipam.LockDeploy{Project: project, ID: id, Host: "h1", PID: 7, Task: "apply",
			TTL: ipam.Duration(30 * time.Second)})
		return id
	}
	for _, outcome := range []ipam.DeployOutcome{ipam.DeployDone, ipam.DeployFailed, ipam.DeployRefused, ""} {
		id := lock("shop")
		unlock := &ipam.UnlockDeploy{Project: "shop", ID: id, Outcome: outcome, Did: "1 created"}
		edit(unlock)
		edit(unlock) // again, since the answer was lost: it is told once
	}
	edit(&ipam.UnlockDeploy{Project: "another", ID: lock("another"), Outcome: ipam.DeployDone})
	lock("shop") // and nothing more is heard of it
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	taken := lock("shop")
	edit(&ipam.UnlockDeploy{Project: "shop", Force: true})
	edit(&ipam.UnlockDeploy{Project: "shop", ID: taken, Outcome: ipam.DeployLost})
	late := lock("shop")
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	lock("shop")
	edit(&ipam.UnlockDeploy{Project: "shop", ID: late, Outcome: ipam.DeployLost})
	r.Reopened()
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
	long := &ipam.UnlockDeploy{Project: "shop", ID: runs[0].ID, Did: strings.Repeat("x", ipam.MaxDid+1)}
	if _, err := r.S.Edit(ctx, ipam.EditOptions{}, long); err == nil {
		t.Error("a deploy may tell a book")
	}
}
