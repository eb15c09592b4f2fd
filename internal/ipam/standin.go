package ipam

import (
	"time"
)

// Compose never fills a gap in its numbers: after `docker rm -f shop-web-2` of three the next replica is shop-web-4,
// for whom nothing is reserved (BO-2). So a new replica without a reservation of its own stands in for one that was
// destroyed while a higher one stayed: an alias, until its container is destroyed, and never a move of one that is
// there. Scale-down takes the highest numbers, and `down` all of them, so that neither leaves a gap.

// Newcomer is what a witness knows of a container that Compose has made, and of the numbers of its service.
type Newcomer struct {
	ID       string    // the container's; empty: nobody of the name is known, or not all that happens is
	Replicas []string  // the ids of all containers of its service
	Vacant   []Vacancy // numbers below its own that had a container before it came, the lowest first
}

// Vacancy is a number of a service whose container was destroyed, and that has no other one.
type Vacancy struct {
	Name  string   // the container's
	Above []string // names of those with a higher number that were there then, and have been ever since
}

// StandIn is a container that has taken the place of a replica which was destroyed.
type StandIn struct {
	Name  string    `json:"name"`  // its own
	ID    string    `json:"id"`    // its own
	For   string    `json:"for"`   // the name of the container whose owner it stands in for
	Host  string    `json:"host"`  // on which both are
	Since time.Time `json:"since"` // when it began
}

// Stray is a container whose address is not that which reservations say, as a witness has seen it. A request that says
// no name cannot show this.
type Stray struct {
	LeaseRef             // of the address that it runs with
	Kind     FindingKind // ForeignHolder or OwnerElsewhere
	Name     string      // the container's
	Detail   string
}
