package ipam

import (
	"context"
	"encoding/json"
	"net/netip"
)

// Onlooker reads an engine for a daemon that may not, and changes there what the daemon asks it to.
type Onlooker interface {
	// Locked tells from whom a request can be, as docker.Engine does.
	Locked(context.Context, Question) Locked
	// Move takes one step of moving a container; an error is that nobody answered.
	Move(context.Context, MoveOrder) (MoveAnswer, error)
}

// MoveStep is what is to be done with a container on a Docker network.
type MoveStep string

// The steps.
const (
	MoveRead    MoveStep = "read"    // tell its endpoint
	MoveOff     MoveStep = "off"     // take it off
	MoveOn      MoveStep = "on"      // put it on again
	MoveRestore MoveStep = "restore" // put it on again unless it is on
)

// MoveOrder is one step.
type MoveOrder struct {
	Step      MoveStep        `json:"step"`
	Container string          `json:"container"` // its id
	Network   string          `json:"network"`   // Docker's, by its name
	Endpoint  json.RawMessage `json:"endpoint,omitempty"`
	// it asks for them afterwards, because they are reserved for it; none: they are only remembered
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// MoveAnswer is what came of one step.
type MoveAnswer struct {
	Endpoint json.RawMessage `json:"endpoint,omitempty"` // of MoveRead
	Off      bool            `json:"off,omitempty"`      // it is off its network, and could not be put on again
	Error    string          `json:"error,omitempty"`
	Gone     bool            `json:"gone,omitempty"` // there is no such container, or it is not on the network
}

// EngineQuestion asks one who reads an engine for a daemon that may not: who is locked, or for a step of a move.
type EngineQuestion struct {
	ID     uint64     `json:"id"`
	Locked *Question  `json:"locked,omitempty"`
	Move   *MoveOrder `json:"move,omitempty"`
}

// EngineAnswer is what came of the question of an id.
type EngineAnswer struct {
	ID     uint64      `json:"id"`
	Locked *Locked     `json:"locked,omitempty"`
	Move   *MoveAnswer `json:"move,omitempty"`
}
