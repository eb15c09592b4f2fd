package deploy

import "time"

// Update says how the replicas of a service are exchanged (BD-8).
type Update struct {
	Canaries    int  `json:"canaries"`      // so many first, on whose success the others wait
	MaxInFlight int  `json:"max_in_flight"` // at most so many at once
	CanaryWatch Span `json:"canary_watch"`
	Watch       Span `json:"watch"`
	StartFirst  bool `json:"start_first"` // the new one runs before the old one is stopped
}

// Span is how long a container is watched: at least, where it has no healthcheck, and at most.
type Span struct {
	Least time.Duration `json:"least"`
	Most  time.Duration `json:"most"`
}

// defaultUpdate is what holds where the files say nothing.
func defaultUpdate() Update {
	watch := Span{time.Second, time.Minute}
	return Update{Canaries: 1, MaxInFlight: 1, CanaryWatch: watch, Watch: watch}
}
