package ipam

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/store"
)

// CopyOptions say what CopySpaces copies.
type CopyOptions struct {
	Spaces   []string // none: all that the source has but the local one
	DryRun   bool
	Undo     bool        // take back a copy that was cut off
	Command  string      // that goes on with a copy which is cut off, for errors
	ReadBack store.Store // another handle on the target, through which it is compared; nil: the target's own
	Progress func(done, total int)
}

// CopyReport says what was copied.
type CopyReport struct {
	DryRun bool          `json:"dry_run,omitempty"`
	Undone bool          `json:"undone,omitempty"`
	Spaces []CopiedSpace `json:"spaces"`

	Elastic *CopiedElastic `json:"elastic,omitempty"` // nil: nothing of it was copied
}

// CopiedElastic counts what was copied of elastic addresses. The digest is that of all records, and the same in both
// stores.
type CopiedElastic struct {
	Accounts     int    `json:"accounts"`
	Ranges       int    `json:"ranges"`
	Addresses    int    `json:"addresses"`
	Associations int    `json:"associations"` // of these addresses
	Events       int    `json:"events"`
	Digest       string `json:"digest,omitempty"`
	// it was compared by a run before, which was cut off behind that
	Finished bool `json:"finished,omitempty"`
}

// CopiedSpace is a space that was copied.
type CopiedSpace struct {
	Name     string          `json:"name"`
	Networks []CopiedNetwork `json:"networks"`
	Events   int             `json:"events"`
	// it was compared by a run before, which was cut off behind that
	Finished bool `json:"finished,omitempty"`
}

// CopiedNetwork counts the records of a network. The digest is that of all of them, and the same in both stores.
type CopiedNetwork struct {
	Name         string `json:"name"`
	Subnets      int    `json:"subnets"`
	Docker       int    `json:"docker"` // Docker networks
	Leases       int    `json:"leases"`
	Memories     int    `json:"memories"`
	Reservations int    `json:"reservations"`
	Digest       string `json:"digest,omitempty"`
}

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

// SharedState is how it stands with the shared store and with what this host keeps meanwhile, for `berth status`.
type SharedState struct {
	Err      error           // why the store is out of reach; nil: it is within
	Since    time.Time       // when that began
	Fresh    time.Time       // what is read of it is all that there was at that time; zero: it was never read
	Mark     [4]byte         // of the cluster
	Host     HostState       // of this host, as far as is known
	Waiting  int             // releases, and uses of headroom, that the store has not heard of yet
	Oldest   time.Time       // since when the first of them waits; zero: none does
	Headroom []HeadroomState // by space, network and subnet
}

// HeadroomState is this host's headroom of one Docker network on a subnet.
type HeadroomState struct {
	Space   string       `json:"space"`
	Network string       `json:"network"`
	Subnet  netip.Prefix `json:"subnet"`
	Wanted  int          `json:"wanted"`
	Claimed int          `json:"claimed"` // those that can be given out
	Used    int          `json:"used"`    // given out, and the store has not heard of it yet
}
