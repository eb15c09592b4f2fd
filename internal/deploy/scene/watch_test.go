package scene

import (
	"fmt"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
)

// TestJudge: a container works when it is healthy, or has run for the least time. Berth does not wait longer than
// the most time, with or without a healthcheck (BD-8).
func TestJudge(t *testing.T) {
	span := Span{5 * time.Second, time.Minute}
	running := container.State{Status: container.StateRunning}
	checked := func(health container.HealthStatus) container.State {
		return container.State{Status: container.StateRunning, Health: &container.Health{Status: health}}
	}
	paused := container.State{Status: container.StatePaused}
	for _, c := range []struct {
		state   container.State
		watched time.Duration
		span    Span
		want    string
	}{
		{running, 4 * time.Second, span, "false <nil>"},
		{running, 5 * time.Second, span, "true <nil>"},
		{running, 2 * time.Minute, span, "true <nil>"},
		{paused, 59 * time.Second, span, "false <nil>"},
		{paused, time.Minute, span, "false it is paused, and does not run after 1m0s"},
		{paused, time.Minute, Span{2 * time.Minute, time.Minute}, "false <nil>"},
		{paused, 2 * time.Minute, Span{2 * time.Minute, time.Minute}, "false it is paused, and does not run after 2m0s"},
		{container.State{Status: container.StateCreated}, time.Minute, span,
			"false it is created, and does not run after 1m0s"},
		{checked(container.Starting), 59 * time.Second, span, "false <nil>"},
		{checked(container.Starting), time.Minute, span,
			"false its healthcheck has not said that it is healthy within 1m0s"},
		{checked(container.Healthy), 0, span, "true <nil>"},
		{checked(container.Unhealthy), 0, span, "false its healthcheck says that it is unhealthy"},
		{container.State{Status: container.StateExited, ExitCode: 3}, time.Second, span,
			"false it ended with exit code 3 after 1s"},
	} {
		works, err := judge(&container.InspectResponse{State: &c.state}, 0, c.watched, c.span)
		if got := fmt.Sprint(works, " ", err); got != c.want {
			t.Errorf("%s after %s: %s, want %s", c.state.Status, c.watched, got, c.want)
		}
	}
}
