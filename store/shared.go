package store

import (
	"context"
	"errors"
	"time"
)

// Shared is a Store that other processes write to as well, each through its own handle.
//
// A handle sees the state at one revision, which changes only between two functions. Commits of others go first to the
// function passed to Follow, and only then become visible to functions of Update. So an index that Follow maintains
// always matches what a function reads. An Update that returned, with success or its function's error, saw a state no
// older than its call.
//
// If the outcome of an update stays unknown, Update returns ErrUnknown and runs its hooks (Tx.OnAbort). If it was
// committed after all, its writes arrive through Follow, like those of others.
type Shared interface {
	Store

	// Follow runs load over the current state. From then on it passes each commit of others to apply, whole and in
	// order. Neither runs at the same time as a function of Update. Follow may be called once.
	Follow(ctx context.Context, load func(Tx) error, apply func([]Foreign)) error

	// Reach returns whether the store is reachable. It never waits.
	Reach() Reach

	// Announce lists name with its value among those present. The entry lasts while this handle is open and reaches the
	// store, and some seconds more. Announce returns at once. Nothing else depends on it.
	Announce(name string, value []byte)

	// Present returns the announced names and their values, as far as this handle knows.
	Present() map[string][]byte

	// Hold begins a new session under a name and ends any earlier one. The session lasts at least SessionTTL after its
	// beginning or its last Keep.
	Hold(ctx context.Context, name string) (Session, error)

	// Held returns the ids of the active sessions by name, as far as this handle knows. A session that is missing has
	// ended; one that is listed may have ended since.
	Held() map[string]string
}

// SessionTTL is how long a session lasts without Keep.
const SessionTTL = 3 * time.Second

// ErrEnded means that the session has ended for good.
var ErrEnded = errors.New("the session has ended")

// Session is a named entry in a Shared store that expires unless it is kept.
type Session interface {
	// ID is unique among all sessions, past and future.
	ID() string

	// Keep extends the session. nil: the servers agree that it has existed without a break until some time after the
	// call. ErrEnded: it has ended. Any other error: its state is unknown.
	Keep(ctx context.Context) error

	// End ends the session if the store is reachable. It also expires by itself.
	End(ctx context.Context)
}

// Foreign is a write that somebody else committed. The slices belong to the receiver.
type Foreign struct {
	Key    []byte
	Before []byte // nil: there was none
	After  []byte // nil: it was deleted
}

// Reach describes whether a Shared store is reachable.
type Reach struct {
	Err   error     // why it is unreachable; nil: it is reachable
	Since time.Time // when that began
	Fresh time.Time // reads are at least as recent as this time
}

// Trace is the latest known state of a Shared store, for comparison with what is found later. A store that went back to
// an earlier state does not match it.
type Trace struct {
	Place    uint64            `json:"place,omitempty"`  // the id of the servers that keep it; 0: unknown
	Revision int64             `json:"revision"`         // the highest known revision of the servers' state
	Counts   map[string]uint64 `json:"counts,omitempty"` // the number of each host's transactions, by the host's id
}

// Back is the reason why a Shared store is not trusted. It is an error that wraps ErrBack and ErrAway.
type Back struct {
	Why     string // a sentence with the reason
	Since   time.Time
	Emptied bool   // the store is empty
	Own     uint64 // number of missing transactions of this host, as far as known
	All     uint64 // number of missing transactions of all hosts
}

func (b *Back) Error() string { return ErrBack.Error() + ": " + b.Why }

// Unwrap returns ErrBack and ErrAway.
func (b *Back) Unwrap() []error { return []error{ErrBack, ErrAway} }

// Written holds the changes to a Shared store's remembered records since the last call.
type Written struct {
	Trace   Trace             // at the same time
	Whole   bool              // Records has everything, not only changes
	Records map[string][]byte // by key; nil: deleted. Do not change the values.
}
