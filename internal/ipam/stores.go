package ipam

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/store"
)

// CopyOptions control what CopySpaces copies.
type CopyOptions struct {
	Spaces   []string // none: all spaces of the source except local
	DryRun   bool
	Undo     bool        // roll back an interrupted copy
	Command  string      // the command that continues an interrupted copy, for errors
	ReadBack store.Store // a second handle on the target for the comparison; nil: the target's own
	Progress func(done, total int)
}

// CopyReport is what was copied.
type CopyReport struct {
	DryRun bool          `json:"dry_run,omitempty"`
	Undone bool          `json:"undone,omitempty"`
	Spaces []CopiedSpace `json:"spaces"`

	Elastic *CopiedElastic `json:"elastic,omitempty"` // nil: no elastic records were copied
}

// CopiedElastic counts the copied elastic records. Digest covers all records and is the same in both stores.
type CopiedElastic struct {
	Accounts     int    `json:"accounts"`
	Ranges       int    `json:"ranges"`
	Addresses    int    `json:"addresses"`
	Associations int    `json:"associations"` // among these addresses
	Events       int    `json:"events"`
	Digest       string `json:"digest,omitempty"`
	// an earlier run compared it, and was interrupted afterwards
	Finished bool `json:"finished,omitempty"`
}

// CopiedSpace is a space that was copied.
type CopiedSpace struct {
	Name     string          `json:"name"`
	Networks []CopiedNetwork `json:"networks"`
	Events   int             `json:"events"`
	// an earlier run compared it, and was interrupted afterwards
	Finished bool `json:"finished,omitempty"`
}

// CopiedNetwork counts the records of a network. Digest covers all of them and is the same in both stores.
type CopiedNetwork struct {
	Name         string `json:"name"`
	Subnets      int    `json:"subnets"`
	Docker       int    `json:"docker"` // Docker networks
	Leases       int    `json:"leases"`
	Memories     int    `json:"memories"`
	Reservations int    `json:"reservations"`
	Digest       string `json:"digest,omitempty"`
}

// MendOptions control the repair of a shared store that was restored to an earlier state.
type MendOptions struct {
	DryRun bool     `json:"dry_run,omitempty"` // report the changes without making them
	Accept bool     `json:"accept,omitempty"`  // accept the store as it is, and record what runs here
	Gone   []string `json:"gone,omitempty"`    // hosts not to wait for
}

// MendReport is the result of the repair of one host's part.
type MendReport struct {
	Host      string `json:"host"`
	DryRun    bool   `json:"dry_run,omitempty"`
	Accepted  bool   `json:"accepted,omitempty"`
	Nothing   bool   `json:"nothing,omitempty"` // there was nothing to repair
	Remembers bool   `json:"remembers"`         // the host remembers something of the store
	Sees      bool   `json:"sees"`              // its engine has reported what runs
	// the host whose plan counts: so far the one that remembers the highest revision
	Planner  string `json:"planner,omitempty"`
	Networks int    `json:"networks,omitempty"` // restored or corrected networks of the plan
	Reserved int    `json:"reserved,omitempty"` // restored or corrected reservations and external addresses
	Removed  int    `json:"removed,omitempty"`  // of both, those ended again
	Pools    int    `json:"pools,omitempty"`    // restored attachments of Docker networks
	Leases   int    `json:"leases,omitempty"`   // restored
	Headroom int    `json:"headroom,omitempty"` // restored
	Ended    int    `json:"ended,omitempty"`    // attachments and leases that had been released
	Running  int    `json:"running,omitempty"`  // running addresses that no host remembered

	Collisions []MendCollision `json:"collisions,omitempty"`
	Problems   []string        `json:"problems,omitempty"` // what could not be restored, and why
	Missing    []string        `json:"missing,omitempty"`  // hosts that the repair waits for
}

// MendCollision is an address with two holders.
type MendCollision struct {
	Space   string     `json:"space"`
	Address netip.Addr `json:"address"`
	Here    string     `json:"here"`  // the holder as this host remembers it
	There   string     `json:"there"` // the holder as etcd records it
	Kept    string     `json:"kept"`  // the host that keeps it
	Seen    bool       `json:"seen"`  // the engine of this host shows it running
}

// Mending refuses a request that needs a shared store under repair. It wraps store.ErrBack and ErrAway.
type Mending struct {
	Since   time.Time `json:"since"`
	By      string    `json:"by"`
	Missing []string  `json:"missing"` // hosts that have not finished their repair
}

func (e *Mending) Error() string {
	return fmt.Sprintf("the store is being mended, and Berth waits for %s", strings.Join(e.Missing, ", "))
}

// Helps returns the advice to repair the missing hosts.
func (e *Mending) Helps() []Advice { return []Advice{Advise(DoMendThere)} }

func (e *Mending) Unwrap() []error { return []error{store.ErrBack, ErrAway} }

// SharedState is the state of the shared store, and of what this host keeps while it is unreachable, for `berth
// status`.
type SharedState struct {
	Err      error           // why the store is unreachable; nil: it is reachable
	Since    time.Time       // since when it is unreachable
	Fresh    time.Time       // reads show all changes up to this time; zero: never read
	Mark     [4]byte         // the cluster's mark
	Host     HostState       // this host's state, as far as known
	Waiting  int             // releases and uses of headroom that the store does not have yet
	Oldest   time.Time       // since when the oldest of them waits; zero: none waits
	Headroom []HeadroomState // by space, network and subnet
}

// HeadroomState is this host's headroom for one Docker network on a subnet.
type HeadroomState struct {
	Space   string       `json:"space"`
	Network string       `json:"network"`
	Subnet  netip.Prefix `json:"subnet"`
	Wanted  int          `json:"wanted"`
	Claimed int          `json:"claimed"` // addresses ready to be given
	Used    int          `json:"used"`    // given, and not yet in the store
}
