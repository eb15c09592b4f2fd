package edit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestWorkers: of what a worker was made that ran last is remembered, one of each, and while its project is deployed
// that is for the deploy to say (BD-6).
func TestWorkers(t *testing.T) {
	r := ipamtest.New(t)
	deploy := ipam.NewID()
	edit, done := deployer(t, r)
	has := func() (text string) {
		t.Helper()
		all, err := r.S.Workers(ctx)
		done("listed", err)
		for _, w := range all {
			text += strings.Join([]string{w.Project, w.Service, w.Hash, w.Image}, ",") + " "
		}
		return text
	}
	migrate := &ipam.RecordWorker{Project: "shop", Service: "migrate", Hash: "h1", Image: "sha256:1"}
	done("run", edit(ipam.ID{}, migrate))
	done("locked", edit(deploy, &ipam.LockDeploy{Project: "shop", ID: deploy, TTL: ipam.Duration(30 * time.Second)}))
	again := &ipam.RecordWorker{Project: "shop", Service: "migrate", Hash: "h2"}
	if err := edit(ipam.ID{}, again); ipam.CodeOf(err) != ipam.DeployLocked {
		t.Errorf("recorded while another deploys it: %v", err)
	}
	if got := has(); got != "shop,migrate,h1,sha256:1 " {
		t.Errorf("recorded is %q", got)
	}
	done("run again", edit(deploy, again))
	done("another", edit(deploy, &ipam.RecordWorker{Project: "shop", Service: "seed", Hash: "h3"}))
	if got := has(); got != "shop,migrate,h2, shop,seed,h3, " {
		t.Errorf("recorded is %q", got)
	}
	for what, e := range map[string]*ipam.RecordWorker{
		"no service": {Project: "shop", Hash: "h"},
		"a path":     {Project: "shop/web", Service: "migrate", Hash: "h"},
		"no hash":    {Project: "blog", Service: "migrate"},
	} {
		if err := edit(ipam.ID{}, e); !errors.Is(err, ipam.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
