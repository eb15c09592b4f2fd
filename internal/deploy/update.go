package deploy

import "time"

// Update says how the replicas of a service are replaced.
type Update struct {
	// the number of replicas that are replaced first; the others wait for their success
	Canaries    int  `json:"canaries"`
	MaxInFlight int  `json:"max_in_flight"` // the maximum number of replicas that are replaced at the same time
	CanaryWatch Span `json:"canary_watch"`
	Watch       Span `json:"watch"`
	StartFirst  bool `json:"start_first"` // the new container runs before the old one is stopped
}

// Span is how long a container is watched: the minimum without a healthcheck, and the maximum.
type Span struct {
	Least time.Duration `json:"least"`
	Most  time.Duration `json:"most"`
}

// defaultUpdate returns the default.
func defaultUpdate() Update {
	watch := Span{time.Second, time.Minute}
	return Update{Canaries: 1, MaxInFlight: 1, CanaryWatch: watch, Watch: watch}
}
