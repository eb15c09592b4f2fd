package edit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestOrphans: a volume that is orphaned stays so since the first time that it was said, until it is said to be gone or
// in use; while its project is deployed that is for the deploy to say, and the only whole copy of a volume is never
// given up by another hand (BD-5, BD-8).
func TestOrphans(t *testing.T) {
	r := ipamtest.New(t)
	deploy := ipam.NewID()
	edit, done := deployer(t, r)
	has := func() (text string) {
		t.Helper()
		all, err := r.S.Orphans(ctx)
		done("listed", err)
		for _, o := range all {
			text += strings.Join([]string{o.Volume, o.Project, o.Service, o.Host, o.Of, string(o.Stage)}, ",") + " "
		}
		return text
	}
	data := &ipam.KeepOrphan{Volume: "shop_data", Project: "shop", Service: "db", Host: "h1"}
	done("orphaned", edit(ipam.ID{}, data))
	first, _ := r.S.Orphans(ctx)
	r.Clock.Time = r.Clock.Time.Add(time.Hour)
	done("orphaned again", edit(ipam.ID{}, &ipam.KeepOrphan{Volume: "shop_data", Project: "shop", Host: "h1"}))
	if now, _ := r.S.Orphans(ctx); len(now) != 1 || !now[0].Since.Equal(first[0].Since) {
		t.Errorf("it was %v, and is %v", first, now)
	}
	if got := has(); got != "shop_data,shop,db,h1,, " {
		t.Errorf("recorded is %q", got)
	}
	done("locked", edit(deploy, &ipam.LockDeploy{Project: "shop", ID: deploy, TTL: ipam.Duration(30 * time.Second)}))
	for what, e := range map[string]ipam.Edit{"orphaned": data, "removed": &ipam.RemoveOrphan{Volume: "shop_data"}} {
		if err := edit(ipam.ID{}, e); ipam.CodeOf(err) != ipam.DeployLocked {
			t.Errorf("%s while another deploys it: %v", what, err)
		}
	}
	done("removed by the deploy", edit(deploy, &ipam.RemoveOrphan{Volume: "shop_data"}))
	done("removed twice", edit(deploy, &ipam.RemoveOrphan{Volume: "shop_data"}))
	done("copied", edit(deploy, &ipam.KeepOrphan{Volume: "shop_data-orphan-1", Project: "shop", Of: "shop_data",
		Stage: ipam.OrphanRestoring}))
	done("unlocked", edit(deploy, &ipam.UnlockDeploy{Project: "shop", ID: deploy}))
	if err := edit(ipam.ID{}, &ipam.RemoveOrphan{Volume: "shop_data-orphan-1"}); !errors.Is(err, ipam.ErrInUse) {
		t.Errorf("the only whole copy is given up: %v", err)
	}
	if got := has(); got != "shop_data-orphan-1,shop,,,shop_data,restoring " {
		t.Errorf("recorded is %q", got)
	}
	for what, e := range map[string]*ipam.KeepOrphan{
		"no name":                {Project: "shop"},
		"a name beyond all":      {Volume: strings.Repeat("v", 256), Project: "shop"},
		"what nobody can read":   {Volume: "a\nb", Project: "shop"},
		"no project":             {Volume: "v"},
		"a path for a project":   {Volume: "v", Project: "shop/web"},
		"another stage":          {Volume: "v", Project: "shop", Of: "w", Stage: "half"},
		"a copy of nobody knows": {Volume: "v", Project: "shop", Stage: ipam.OrphanSaving},
	} {
		if err := edit(ipam.ID{}, e); !errors.Is(err, ipam.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
