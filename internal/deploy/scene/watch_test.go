package scene

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"berth/internal/ipam/ipamtest"

	"github.com/moby/moby/api/types/container"
)

// TestJudge: a container works when it is healthy, or has run for the least time. Berth does not wait longer than
// the most time, with or without a healthcheck (BD-8).
func TestJudge(t *testing.T) {
	// the state (its health, or exit code), how long it was watched, the span, and whether it works, or why not
	for row := range ipamtest.Rows(5, `
		running | | 4s | 5s | false <nil>
		running | | 5s | 5s | true <nil>
		running | | 2m | 5s | true <nil>
		paused | | 59s | 5s | false <nil>
		paused | | 1m | 5s | false it is still not running after 1m0s; its state is paused
		paused | | 1m | 2m | false <nil>
		paused | | 2m | 2m | false it is still not running after 2m0s; its state is paused
		created | | 1m | 5s | false it is still not running after 1m0s; its state is created
		running | starting | 59s | 5s | false <nil>
		running | starting | 1m | 5s | false its healthcheck has not reported it as healthy within 1m0s
		running | healthy | 0s | 5s | true <nil>
		running | unhealthy | 0s | 5s | false its healthcheck reports it as unhealthy
		exited | 3 | 1s | 5s | false it ended with exit code 3 after 1s
	`) {
		state := container.State{Status: container.ContainerState(row[0])}
		if state.ExitCode, _ = strconv.Atoi(row[1]); state.ExitCode == 0 && row[1] != "" {
			state.Health = &container.Health{Status: container.HealthStatus(row[1])}
		}
		watched, err := time.ParseDuration(row[2])
		ipamtest.Must(t, err)
		least, err := time.ParseDuration(row[3])
		ipamtest.Must(t, err)
		works, err := judge(&container.InspectResponse{State: &state}, 0, watched, Span{least, time.Minute})
		if got := fmt.Sprint(works, " ", err); got != row[4] {
			t.Errorf("%s: %s", row, got)
		}
	}
}
