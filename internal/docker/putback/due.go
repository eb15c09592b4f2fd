package putback

import (
	"maps"
	"time"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// trial is how often a container was moved after a start: where others start beside it, it may get a wrong address
// again.
type trial struct {
	start time.Time
	times int
}

// trials is how often a container is moved after one start at most.
const trials = 3

// due tells whether a container may be moved.
func (k *Keeper) due(a docker.Astray, deploys []ipam.DeployLock) bool {
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

// tries notes that a container is moved after a start.
func (k *Keeper) tries(a docker.Astray) {
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
