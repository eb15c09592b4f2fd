package putback

import (
	"maps"
	"time"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// trial counts the moves of a container after one start. A move can fail to give the right address if other containers
// start at the same time.
type trial struct {
	start time.Time
	times int
}

// trials is the most moves of a container after one start.
const trials = 3

// due reports whether a container may be moved now: soon after its start, not during a deploy of its project, and at
// most trials times.
func (k *Worker) due(a docker.Astray, deploys []ipam.DeployLock) bool {
	now := k.cfg.Now()
	if age := now.Sub(a.Started); age < 0 || age > docker.StartFor {
		return false
	}
	for i := range deploys {
		if deploys[i].Project == a.Project {
			return false
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.tried[a.ID+a.Network]
	return !t.start.Equal(a.Started) || t.times < trials
}

// tries counts a move of a container.
func (k *Worker) tries(a docker.Astray) {
	now := k.cfg.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.tried, func(_ string, t trial) bool { return now.Sub(t.start) > docker.StartFor })
	key := a.ID + a.Network
	t := k.tried[key]
	if !t.start.Equal(a.Started) {
		t = trial{start: a.Started}
	}
	t.times++
	k.tried[key] = t
}
