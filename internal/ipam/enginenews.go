package ipam

import "time"

// EngineNews is one thing that an engine has just said of its containers: what a witness needs at once, and not in
// the next view. One of its parts is set.
type EngineNews struct {
	At   time.Time     `json:"at"`             // when it was heard
	Late time.Duration `json:"late,omitempty"` // for how long it was on its way

	Begins   bool               `json:"begins,omitempty"` // all that happens is told from here on
	Ends     bool               `json:"ends,omitempty"`   // the engine has ended
	Event    *EngineEvent       `json:"event,omitempty"`
	Listed   []EngineContainer  `json:"listed,omitempty"` // containers with all their places, as they are now
	Networks *EngineNetworkList `json:"networks,omitempty"`
}

// EngineEvent is what happened to a container.
type EngineEvent struct {
	Action    string          `json:"action"` // create, start, die, stop, destroy, rename, connect or disconnect
	Container EngineContainer `json:"container"`
	// by its id: to which it was connected, or from which it was disconnected
	Network string `json:"network,omitempty"`
}

// EngineNetworkList is all networks of an engine, as in a view.
type EngineNetworkList struct {
	Networks []EngineNetwork `json:"networks"`
	Bridges  []EngineNetwork `json:"bridges,omitempty"`
}
