package ipam

import (
	"context"
	"encoding/json"
	"net/netip"
)

// Onlooker reads an engine for a daemon without access, and makes changes there that the daemon requests.
type Onlooker interface {
	// Locked returns the possible requesters, as docker.Engine does.
	Locked(context.Context, Question) Locked
	// Move does one step of moving a container. An error means that nobody answered.
	Move(context.Context, MoveOrder) (MoveAnswer, error)
}

// MoveStep is a step of moving a container off a Docker network and on again.
type MoveStep string

// The steps.
const (
	MoveRead    MoveStep = "read"    // read its endpoint
	MoveOff     MoveStep = "off"     // disconnect it
	MoveOn      MoveStep = "on"      // connect it again
	MoveRestore MoveStep = "restore" // connect it again unless it is connected
)

// MoveOrder requests one step.
type MoveOrder struct {
	Step      MoveStep        `json:"step"`
	Container string          `json:"container"` // its id
	Network   string          `json:"network"`   // Docker's name of it
	Endpoint  json.RawMessage `json:"endpoint,omitempty"`
	// the container requests these afterwards, because they are reserved for it; none: they are only remembered
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// MoveAnswer is the result of one step.
type MoveAnswer struct {
	Endpoint json.RawMessage `json:"endpoint,omitempty"` // of MoveRead
	Off      bool            `json:"off,omitempty"`      // it is disconnected and could not be connected again
	Error    string          `json:"error,omitempty"`
	Gone     bool            `json:"gone,omitempty"` // the container does not exist, or is not on the network
}

// EngineQuestion is a question to a `berth witness` that reads an engine for a daemon without access. It asks who is
// locked, or requests a step of a move.
type EngineQuestion struct {
	ID     uint64     `json:"id"`
	Locked *Question  `json:"locked,omitempty"`
	Move   *MoveOrder `json:"move,omitempty"`
}

// EngineAnswer is the answer to the question with the same id.
type EngineAnswer struct {
	ID     uint64      `json:"id"`
	Locked *Locked     `json:"locked,omitempty"`
	Move   *MoveAnswer `json:"move,omitempty"`
}
