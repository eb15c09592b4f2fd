package ipam

import (
	"net/netip"
	"time"
)

// HostState says what a host of a cluster may do.
type HostState string

// The states. A host that takes part as usual has none.
const (
	HostDraining HostState = "draining" // it takes no new address, and keeps what it has
	HostLeaving  HostState = "leaving"  // it was asked to go, and gives everything back as soon as it hears of it
	HostRemoved  HostState = "removed"  // it is refused until it is admitted
)

// MaxHosts is how many hosts share a store at most. It is the distance between two event ids of one host, in
// microseconds, so that no two hosts make the same.
const MaxHosts = 256

// Host is a host's record in a shared store.
type Host struct {
	Name    string    `json:"name"`
	ID      ID        `json:"id"`
	Session ID        `json:"session"` // of the daemon that speaks for it
	Slot    int       `json:"slot"`    // less than maxHosts; no two hosts that are not removed have the same
	State   HostState `json:"state,omitempty"`
	Joined  time.Time `json:"joined"`
	Started time.Time `json:"started"` // the daemon
	Version string    `json:"version,omitempty"`
}

// HostInfo is a host as it is shown, with what `berth host rm` would free.
type HostInfo struct {
	Host
	Present  bool `json:"present"` // its daemon is there at this moment
	Self     bool `json:"self"`    // it is the host that answers
	Pools    int  `json:"pools"`   // Docker networks' holds on subnets
	Leases   int  `json:"leases"`  // addresses in use through them, headroom not counted
	Headroom int  `json:"headroom"`

	First []netip.Addr `json:"first,omitempty"` // of the leases, so that a person knows which they are
}

// ErrNoShared refuses what is about a shared store where there is none. It wraps ErrAlone.
var ErrNoShared error = Refuse(ErrAlone, "this Berth has a store of its own (--store bolt): it knows no other hosts")

// DrainHost has a host take no new address, or, with Undo, take them again.
type DrainHost struct {
	Name string `json:"name"`
	Undo bool   `json:"undo,omitempty"`
}

// RemoveHost takes a host out of the cluster with all it holds. One whose daemon is there is asked to go, and gives
// everything back by itself; of one that is not, a person must say that it is Off, because what it holds may be in use.
type RemoveHost struct {
	Name string `json:"name"`
	Off  bool   `json:"off,omitempty"`
}

// AdmitHost lets a host take part again that was removed.
type AdmitHost struct {
	Name string `json:"name"`
}

// Member is what makes a host one of several that share a store. A Service whose Config has one stands on a
// store.Shared.
type Member struct {
	Host    ID      // the host's own id, kept with its own state: a name may be given again, an id is not
	Session ID      // of this run of the daemon: of two that call themselves the same host, the later one goes on
	Version string  // of the daemon, for others to see
	Mark    [4]byte // which each id ends with that is made in the store, and no other: it tells which store an id is of
}

// Marked is id with the mark of the store that it is made in.
func (m *Member) Marked(id ID) ID {
	if m != nil {
		copy(id[len(id)-len(m.Mark):], m.Mark[:])
	}
	return id
}

// Bears tells whether id was made in the store of that mark.
func (id ID) Bears(mark [4]byte) bool { return [4]byte(id[len(id)-len(mark):]) == mark }
