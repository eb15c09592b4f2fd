package deploy_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/cli/deploy"
	"berth/internal/ipam"
	"berth/test/still"
)

// TestOrphanAsked: a change while the question waits counts. Nothing is removed if a deploy of the project has
// begun, or if the volume is in use or no orphan any more.
func TestOrphanAsked(t *testing.T) {
	for what, c := range map[string]struct {
		meanwhile func(h *harness)
		want      string
	}{
		"nothing":             {func(*harness) {}, ""},
		"a deploy has begun":  {lockShop, "another deploy of the project shop"},
		"it is used":          {func(h *harness) { h.engine.Containers[0].Volume = "shop_data" }, "is used by the container"},
		"it is none any more": {forgetData, "no deploy left a volume shop_data"},
	} {
		t.Run(what, func(t *testing.T) {
			h := enter(t)
			h.engine.Volumes = []map[string]any{{"Name": "shop_data", "Driver": "local"}}
			h.engine.Containers = []still.Container{{ID: "c1", Name: "shop-db-1", Project: "shop", State: "running"}}
			h.edit(&ipam.KeepOrphan{Volume: "shop_data", Project: "shop"})
			client := client.New(h.socket)
			defer client.Close()
			p := cli.New("dev")
			p.Out, p.Stderr = io.Discard, io.Discard
			err := deploy.RemoveOrphan(t.Context(), p, client, h.host, "shop_data", func(string) error {
				c.meanwhile(h)
				return nil
			})
			if c.want == "" {
				if writes := h.engine.Writes(); len(writes) != 1 || !strings.Contains(writes[0], "/volumes/shop_data") {
					t.Errorf("the engine was asked for %v, %v", writes, err)
				}
				return
			}
			if writes := h.engine.Writes(); err == nil || !strings.Contains(err.Error(), c.want) || len(writes) > 0 {
				t.Errorf("it says %v, want %q; the engine was asked for %v", err, c.want, writes)
			}
		})
	}
}

func lockShop(h *harness) {
	h.edit(&ipam.LockDeploy{Project: "shop", ID: ipam.NewID(), Host: "alpha", PID: 1, TTL: ipam.Duration(time.Minute)})
}

func forgetData(h *harness) { h.edit(&ipam.RemoveOrphan{Volume: "shop_data"}) }
