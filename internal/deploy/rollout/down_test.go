package rollout

import (
	"context"
	"strings"
	"testing"
	"time"

	"berth/internal/deploy"
)

// TestDownAgain: containers that were stopped for a step that fails start again, also if the deploy was canceled
// meanwhile.
func TestDownAgain(t *testing.T) {
	for what, c := range map[string]struct {
		ends string // the event at which the deploy is canceled
		fail string
		says string
		want string // the requests to the engine
	}{
		"ended in a snapshot": {"snapshot shop/db/1", "", "context canceled",
			"stop side/1, stop db/1, start db/1, start side/1"},
		"ended while it stops": {"stop shop/db/1", "", "context canceled",
			"stop side/1, stop db/1, start db/1, start side/1"},
		"ended before it stops": {"stop shop/side/1", "", "context canceled", "stop side/1, start side/1"},
		"it does not stop":      {"", "stop db", "it does not stop", "stop side/1, start side/1"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.must(s.deploys())
			s.service("db").Snapshot = &deploy.Hook{Command: []string{"true"}, Timeout: time.Minute}
			s.hashes["db"] = "d2"
			p := s.plan()
			s.small.takes()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.when = func(e Event) {
				if string(e.Step)+" "+e.Instance == c.ends {
					cancel()
				}
			}
			s.small.fails[c.fail] = 1
			p.service("work").Instances = nil // it would run first
			err := s.carries(ctx, p)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "cannot be started") {
				t.Errorf("it says %v, want %q", err, c.says)
			}
			if got := strings.Join(s.small.takes(), ", "); got != c.want {
				t.Errorf("it was asked for %s, want %s", got, c.want)
			}
			if got := s.small.has(); got != allRun {
				t.Errorf("there are %s", got)
			}
		})
	}
}
