package deploy_test

import (
	"bytes"
	"fmt"
	"testing"

	"berth/internal/cli"
	"berth/internal/cli/deploy"
	"berth/internal/deploy/rollout"
)

// TestDid: the summary names each kind of action once, with the number done.
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
	p.Out, p.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	const all = "1 created, 1 recreated (recreate/1), 1 started, 1 run, 1 stopped, 1 deleted"
	if got := deploy.Did(p, plan, told...); got != all {
		t.Errorf("it says %q, want %q", got, all)
	}
	web := plan.Services[0]
	web.Instances, told = nil, nil
	for n := range 7 {
		owner := fmt.Sprintf("shop/web/%d", n+1)
		web.Instances = append(web.Instances, &rollout.Instance{Owner: owner, Do: rollout.Recreate})
		told = append(told, rollout.Event{Step: rollout.Done, Instance: owner})
	}
	const anew = "7 recreated (web/1, web/2, web/3, web/4, web/5 and 2 more)"
	if got := deploy.Did(p, plan, told...); got != anew {
		t.Errorf("it says %q, want %q", got, anew)
	}
}

// TestDidFailed: after a failed canary the summary does not deny what was begun.
func TestDidFailed(t *testing.T) {
	plan := &rollout.Plan{Project: "shop", Services: []*rollout.Service{{Name: "web", Instances: []*rollout.Instance{
		{Owner: "shop/web/1", Do: rollout.Recreate}, {Owner: "shop/web/2", Do: rollout.Recreate}}}}}
	p := cli.New("v1")
	p.Out, p.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	const want = "none of 2 finished; the canary shop/web/1 failed while it was being recreated: " +
		"it ended with exit code 1"
	failed := rollout.Event{Step: rollout.Failed, Instance: "shop/web/1", Canary: true, Detail: "it ended with exit code 1"}
	if got := deploy.Did(p, plan, failed); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// TestDidSome: the summary shows when a plan was not fully carried out.
func TestDidSome(t *testing.T) {
	plan := &rollout.Plan{Project: "shop", Services: []*rollout.Service{{Name: "web"}}}
	var told []rollout.Event
	for i := range 6 {
		owner := fmt.Sprintf("shop/web/%d", i+1)
		plan.Services[0].Instances = append(plan.Services[0].Instances,
			&rollout.Instance{Owner: owner, Do: rollout.Create})
		told = append(told, rollout.Event{Step: rollout.Done, Instance: owner})
	}
	p := cli.New("v1")
	p.Out, p.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	for i, want := range []string{"nothing was done", "1 created, of 6"} {
		if got := deploy.Did(p, plan, told[:i]...); got != want {
			t.Errorf("after %d it says %q, want %q", i, got, want)
		}
	}
}
