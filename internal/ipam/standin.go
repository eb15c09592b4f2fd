package ipam

import (
	"time"
)

// Compose never fills a gap in its numbers. If you remove shop-web-2 of three, the next replica is shop-web-4, which
// has no reservation. So a new replica without its own reservation stands in for one that was destroyed while a
// higher one stayed. This alias lasts until its container is destroyed, and existing containers never move. Scale-down
// removes the highest numbers and `down` removes all, so neither leaves a gap.

// Replica is what a witness knows of a container that Compose made, and of the numbers of its service.
type Replica struct {
	ID       string           // the container's id; empty: it is unknown, or the witness does not follow all events
	Replicas []string         // the ids of all containers of the service
	Removed  []RemovedReplica // lower numbers that had a container before this one came, ascending
}

// RemovedReplica is a number of a service whose container was destroyed and not replaced.
type RemovedReplica struct {
	Name  string   // the destroyed container's
	Above []string // names with a higher number that existed then and ever since
}

// StandIn is a container that stands in for a destroyed replica.
type StandIn struct {
	Name  string    `json:"name"`  // its own
	ID    string    `json:"id"`    // its own
	For   string    `json:"for"`   // the destroyed container's name; its owner is the one meant
	Host  string    `json:"host"`  // the host of both
	Since time.Time `json:"since"` // when it began
}

// Stray is a container whose address contradicts the reservations, as seen by a witness. A request without a name
// cannot reveal this.
type Stray struct {
	LeaseRef             // the address that it runs with
	Kind     FindingKind // ForeignHolder or OwnerElsewhere
	Name     string      // the container's
	Detail   string
}
