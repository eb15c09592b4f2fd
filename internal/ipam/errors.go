package ipam

import "errors"

// The errors of the room, each wrapped in a sentence that says which object, who holds it and what to do. Errors of the
// store come through as they are.
var (
	// ErrInvalid: the request itself makes no sense, whatever the state.
	ErrInvalid = errors.New("invalid request")
	// ErrNotFound: the named space, subnet, pool or attachment is not there.
	ErrNotFound = errors.New("not found")
	// ErrInUse: somebody else holds it.
	ErrInUse = errors.New("already in use")
	// ErrExhausted: there is nothing left to give.
	ErrExhausted = errors.New("nothing free")
	// ErrOverlap: the prefix or range overlaps another.
	ErrOverlap = errors.New("overlap")
	// ErrChanged: it is no longer as the requester saw it.
	ErrChanged = errors.New("changed meanwhile")
	// ErrKeyReused: the key of an edit was used for another one.
	ErrKeyReused = errors.New("key used for another request")
	// ErrAlone: hosts are asked for, and the store is one host's own.
	ErrAlone = errors.New("no other hosts")
	// ErrHost: this host may not do that in the cluster, or take no part in it at all.
	ErrHost = errors.New("the host is refused")
	// ErrDamaged: a record cannot be read, or contradicts another.
	ErrDamaged = errors.New("damaged record")
)

// refusal is a sentence for a person and the kind of error for errors.Is; the kind is not spoken.
type refusal struct {
	kind error
	text string
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.kind }
