package rollout

// Step is a step for an instance or for the whole project.
type Step string

// The steps of a deploy.
const (
	pulling  Step = "pull"
	draining Step = "drain"
	stopping Step = "stop"
	saving   Step = "snapshot"
	removing Step = "remove"
	making   Step = "make"
	starting Step = "start"
	watching Step = "watch"
	Running  Step = "run"
	naming   Step = "rename"
	freeing  Step = "release"
	Done     Step = "done"
	Failed   Step = "failed"
)

// Event is one progress message of a deploy.
type Event struct {
	Step     Step     `json:"step"`
	Instance string   `json:"instance,omitempty"` // its owner
	Canary   bool     `json:"canary,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	Lines    []string `json:"lines,omitempty"` // the last output of a failed container
}
