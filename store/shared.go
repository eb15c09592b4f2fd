package store

import (
	"context"
	"errors"
	"time"
)

// Shared is a Store that other processes write to as well, each through a handle of its own.
//
// A handle sees the state as of one moment, and that moment moves on only between two functions: what others have
// committed is handed to the function given to Follow first, and only then seen by the functions of Update. So whoever
// keeps an index of the records is never behind what a function of his reads. An Update that was answered, with success
// or with the error of its function, was decided on a state no older than its call.
//
// An update whose outcome cannot be learnt in time is answered with ErrUnknown, and its hooks (Tx.OnAbort) are run.
// When it turns out that it was committed after all, its writes come by Follow like those of others.
type Shared interface {
	Store

	// Follow runs load over the state as it is, and from then on hands apply each commit of others, whole and in order.
	// Both run where no function of Update runs. Follow is called once.
	Follow(ctx context.Context, load func(Tx) error, apply func([]Foreign)) error

	// Reach tells how the store is reached. It never waits.
	Reach() Reach

	// Announce has name stand among those present, with its value, for as long as this handle is open and reaches the
	// store, and some seconds more. It returns at once. Nothing else depends on it.
	Announce(name string, value []byte)

	// Present is who is announced, by name, as far as is known here.
	Present() map[string][]byte

	// Hold begins a session under a name, a new one, whatever stood there before: that has ended then. It stands for
	// SessionTTL after it was kept last, or begun, at least.
	Hold(ctx context.Context, name string) (Session, error)

	// Held are the sessions that stand, by name, as far as is known here: their ids. What is said to have ended here has
	// ended; what is said to stand may have ended since.
	Held() map[string]string
}

// SessionTTL is how long a session stands that is not kept.
const SessionTTL = 3 * time.Second

// ErrEnded: the session stands no more, and never will again.
var ErrEnded = errors.New("the session has ended")

// Session is something that stands in a Shared store under a name, and falls when it is not kept.
type Session interface {
	// ID is one that no other session has, before or after.
	ID() string

	// Keep has it stand longer. With nil it stood at a moment after the call, as the store's servers agree, and has
	// stood all the time up to that. With ErrEnded it stands no more; with any other error nothing is known.
	Keep(ctx context.Context) error

	// End ends it, where the store can be reached. It ends by itself, too.
	End(ctx context.Context)
}

// Foreign is a write that somebody else committed. The slices belong to the receiver.
type Foreign struct {
	Key    []byte
	Before []byte // nil: there was none
	After  []byte // nil: it was deleted
}

// Reach is how a Shared store is reached at one moment.
type Reach struct {
	Err   error     // why it is out of reach; nil: it is within
	Since time.Time // when that began
	Fresh time.Time // what is read here is all that there was at that time
}

// Trace is how far somebody knows a Shared store: what he compares with what he finds there later. A store that was put
// back to an earlier state does not have it.
type Trace struct {
	Place    uint64            `json:"place,omitempty"`  // the id of the servers that keep it; 0: it is not known
	Revision int64             `json:"revision"`         // of the servers' state, the highest that was seen
	Counts   map[string]uint64 `json:"counts,omitempty"` // how many transactions each host had made, by its id
}

// Back is why a Shared store is not trusted. It is an error that wraps ErrBack and ErrAway.
type Back struct {
	Why     string // a sentence: how that is known
	Since   time.Time
	Emptied bool   // nothing is there
	Own     uint64 // so many transactions of this host are not there any more, as far as is known
	All     uint64 // so many of all hosts
}

func (b *Back) Error() string { return ErrBack.Error() + ": " + b.Why }

// Unwrap has it be of the kinds ErrBack and ErrAway.
func (b *Back) Unwrap() []error { return []error{ErrBack, ErrAway} }

// Written is what has become of a Shared store's records since it was asked last.
type Written struct {
	Trace   Trace             // as of the same moment
	Whole   bool              // Records are all there are, and not only those that have changed
	Records map[string][]byte // by key; nil: it is gone. Values are not to be changed
}
