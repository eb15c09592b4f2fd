package ipam

import (
	"net/netip"
	"time"
)

// HostState is what a host of a cluster may do.
type HostState string

// The states. A normal member has none.
const (
	HostDraining HostState = "draining" // it takes no new address, and keeps those that it has
	HostLeaving  HostState = "leaving"  // it was asked to leave, and will release everything when it learns that
	HostRemoved  HostState = "removed"  // it is refused until it is admitted again
)

// MaxHosts is the maximum number of hosts that share a store. It is also the distance between two event ids of one
// host, in microseconds, so that ids of two hosts never collide.
const MaxHosts = 256

// Host is the record of a host in a shared store.
type Host struct {
	Name    string    `json:"name"`
	ID      ID        `json:"id"`
	Session ID        `json:"session"` // of its current daemon
	Slot    int       `json:"slot"`    // less than MaxHosts; unique among hosts that are not removed
	State   HostState `json:"state,omitempty"`
	Joined  time.Time `json:"joined"`
	Started time.Time `json:"started"` // when the daemon started
	Version string    `json:"version,omitempty"`
}

// HostInfo is a host as shown to users, with what `berth host rm` would release.
type HostInfo struct {
	Host
	Present  bool `json:"present"` // its daemon is connected now
	Self     bool `json:"self"`    // it is the host that answers
	Pools    int  `json:"pools"`   // attachments of Docker networks
	Leases   int  `json:"leases"`  // addresses held through them, without headroom
	Headroom int  `json:"headroom"`

	First []netip.Addr `json:"first,omitempty"` // a few of the leased addresses, to identify them for a person
}

// ErrNoShared refuses a request about a shared store if there is none. It wraps ErrAlone.
var ErrNoShared error = Refuse(ErrAlone, "this Berth has a store of its own (--store bolt): it knows no other hosts")

// DrainHost stops a host from taking new addresses. Undo allows them again.
type DrainHost struct {
	Name string `json:"name"`
	Undo bool   `json:"undo,omitempty"`
}

// RemoveHost removes a host with all it holds. If its daemon is connected, it is asked to leave and releases everything
// itself. If not, a person must confirm that it is Off, because its addresses may be in use.
type RemoveHost struct {
	Name string `json:"name"`
	Off  bool   `json:"off,omitempty"`
}

// AdmitHost lets a removed host take part again.
type AdmitHost struct {
	Name string `json:"name"`
}

// Member identifies a host among those that share a store. A Service whose Config has a Member runs on a store.Shared.
type Member struct {
	Host    ID      // the host's permanent id, kept in its own state; a name may be reused, an id is not
	Session ID      // this run of the daemon; if two daemons use one host's id, the later run continues
	Version string  // the daemon's version, for other hosts to see
	Mark    [4]byte // the last bytes of every id made in this store, and in no other store
}

// Marked returns id with the store's mark in its last bytes. A nil Member leaves it unchanged.
func (m *Member) Marked(id ID) ID {
	if m != nil {
		copy(id[len(id)-len(m.Mark):], m.Mark[:])
	}
	return id
}

// Bears reports whether id was made in the store with this mark.
func (id ID) Bears(mark [4]byte) bool { return [4]byte(id[len(id)-len(mark):]) == mark }
