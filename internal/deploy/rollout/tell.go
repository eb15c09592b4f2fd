package rollout

// Step is what is done with an instance, or with the project as a whole.
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

// Event is one thing that a deploy tells of.
type Event struct {
	Step     Step     `json:"step"`
	Instance string   `json:"instance,omitempty"` // its owner
	Canary   bool     `json:"canary,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	Lines    []string `json:"lines,omitempty"` // the last that a container which failed has said
}
