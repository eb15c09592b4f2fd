package deploy_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// TestDraws: a plan is drawn once to show it, and again under the lock to carry it out. Each time the image is
// read once. If somebody takes an address between the dry run and the reservation, a saved plan is refused, and
// one with --yes continues with the next address.
func TestDraws(t *testing.T) {
	for what, c := range map[string]struct {
		verb       string
		saved      bool
		startFirst bool
		taken      bool // the address is taken at the last moment
		draws      int
		says       string
	}{
		"plan":              {verb: "plan", draws: 1, says: "1 to create"},
		"plan, start first": {verb: "plan", startFirst: true, draws: 1, says: "3 to recreate"},
		"apply":             {verb: "apply", draws: 2, says: "make shop/web/1"},
		"apply, saved":      {verb: "apply", saved: true, draws: 2, says: "make shop/web/1"},
		"apply, startFirst": {verb: "apply", startFirst: true, draws: 2, says: "make shop/web/1"},
		"taken":             {verb: "apply", taken: true, draws: 2, says: "make shop/web/1"},
		"taken, saved": {verb: "apply", saved: true, taken: true, draws: 2,
			says: "the addresses of shop/web/1 have changed; run the command again"},
	} {
		t.Run(what, func(t *testing.T) {
			var h *harness
			if c.startFirst {
				h = startsFirst(t, 6)
			} else {
				h = enter(t)
				h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
				h.engine.Images["x"] = "sha256:x"
				h.must(h.compose.Hashes(map[string]string{"web": "h-web"}))
				h.file("services: {web: {image: x, networks: [front]}}" + networks)
			}
			var args []string
			if c.verb == "apply" {
				args = []string{"--yes"}
			}
			if c.saved {
				args = append(args, filepath.Join(t.TempDir(), "plan"))
				h.berth("plan", "-o", args[1])
			}
			draws := 0
			h.engine.Look = func(call string) {
				if call != "/images/x/json" {
					return
				}
				if draws++; c.taken && draws == 2 {
					taken := []ipam.Wish{{Address: netip.MustParseAddr("10.8.0.10")}}
					_, err := h.service.Edit(context.Background(), ipam.EditOptions{}, &ipam.TakeAddress{
						Network: "front", Owner: "box",
						Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface, Wishes: taken}})
					if err != nil {
						t.Error(err)
					}
				}
			}
			_, out, said := h.berth(c.verb, args...)
			if draws != c.draws || !strings.Contains(out+said, c.says) {
				t.Errorf("it draws %d plans, and was to draw %d and say %q:\n%s%s", draws, c.draws, c.says, out, said)
			}
		})
	}
}
