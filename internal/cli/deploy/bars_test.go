package deploy_test

import (
	"bytes"
	"testing"

	"berth/internal/cli"
	"berth/internal/cli/deploy"
	"berth/internal/deploy/rollout"
)

// TestDid: each action is told once, with how many were done.
func TestDid(t *testing.T) {
	plan := &rollout.Plan{Project: "shop", Services: []*rollout.Service{{Name: "web"}}}
	var told []rollout.Event
	for _, do := range []rollout.Action{rollout.Create, rollout.Recreate, rollout.Start, rollout.Work, rollout.Stop,
		rollout.Delete} {
		owner := "shop/" + string(do) + "/1"
		web := plan.Services[0]
		web.Instances = append(web.Instances, &rollout.Instance{Owner: owner, Do: do})
		told = append(told, rollout.Event{Step: rollout.Done, Instance: owner})
	}
	p := cli.New("v1")
	p.Out, p.Err = &bytes.Buffer{}, &bytes.Buffer{}
	const all = "1 created, 1 made anew, 1 started, 1 run, 1 stopped, 1 deleted"
	if got := deploy.Did(p, plan, told...); got != all {
		t.Errorf("it says %q, want %q", got, all)
	}
	for i, want := range []string{"nothing was done", "1 created, of 6"} {
		if got := deploy.Did(p, plan, told[:i]...); got != want {
			t.Errorf("after %d it says %q, want %q", i, got, want)
		}
	}
}
