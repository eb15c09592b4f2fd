package ipam

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/store"
)

// MendOptions say how a shared store is mended that was put back to an earlier state.
type MendOptions struct {
	DryRun bool     `json:"dry_run,omitempty"` // tell what would be done, and do nothing
	Accept bool     `json:"accept,omitempty"`  // take the store as it is, and hold what runs here
	Gone   []string `json:"gone,omitempty"`    // hosts that are not waited for
}

// MendReport is what the mending of one host's part came to.
type MendReport struct {
	Host      string `json:"host"`
	DryRun    bool   `json:"dry_run,omitempty"`
	Accepted  bool   `json:"accepted,omitempty"`
	Nothing   bool   `json:"nothing,omitempty"` // there was nothing to mend
	Remembers bool   `json:"remembers"`         // the host remembers something of the store
	Sees      bool   `json:"sees"`              // its engine has said what runs
	// whose plan it is: the host that remembers the highest revision, so far
	Planner  string `json:"planner,omitempty"`
	Networks int    `json:"networks,omitempty"` // of the plan, put back or put right
	Reserved int    `json:"reserved,omitempty"` // reservations, and what a person has taken, likewise
	Removed  int    `json:"removed,omitempty"`  // of both, ended again
	Pools    int    `json:"pools,omitempty"`    // Docker networks' holds on subnets, put back
	Leases   int    `json:"leases,omitempty"`   // put back
	Headroom int    `json:"headroom,omitempty"` // put back
	Ended    int    `json:"ended,omitempty"`    // holds and leases that had been released
	Running  int    `json:"running,omitempty"`  // addresses that run, and that nobody remembered

	Collisions []MendCollision `json:"collisions,omitempty"`
	Problems   []string        `json:"problems,omitempty"` // what could not be put back, and why
	Missing    []string        `json:"missing,omitempty"`  // hosts that are waited for
}

// MendCollision is an address that two have.
type MendCollision struct {
	Space   string     `json:"space"`
	Address netip.Addr `json:"address"`
	Here    string     `json:"here"`  // who has it by this host's word
	There   string     `json:"there"` // and who by etcd's
	Kept    string     `json:"kept"`  // the host with which it stays
	Seen    bool       `json:"seen"`  // it runs here, by the engine's word
}

// Mending is the refusal of what needs a shared store that is being mended. It wraps store.ErrBack and ErrAway.
type Mending struct {
	Since   time.Time `json:"since"`
	By      string    `json:"by"`
	Missing []string  `json:"missing"` // hosts that have not mended yet
}

func (e *Mending) Error() string {
	return fmt.Sprintf("it is being mended, and waits for %s", strings.Join(e.Missing, ", "))
}

// Helps says what its hosts are waited for with.
func (e *Mending) Helps() []Advice { return []Advice{Advise(DoMendThere)} }

// Unwrap has it be of these kinds.
func (e *Mending) Unwrap() []error { return []error{store.ErrBack, ErrAway} }
