// Package store is the durable, ordered key-value store of Berth. It promises serializable transactions over byte
// strings and nothing else. When Update returns nil, the write is on disk, or on a quorum. After an error that wraps
// ErrUnknown the write may or may not be there; after any other error it is not.
//
// A caller passes Update a function of a Tx. The store runs it on a state that no other function can change meanwhile.
// The backends are store/bolt (a file of one host), store/etcd (shared by several hosts; shared.go) and store/mem
// (keeps nothing). Every backend passes the conformance suite in store/storetest.
package store

import (
	"context"
	"errors"
	"iter"
)

// The errors of a Store. Each is wrapped, with what happened and what to do about it.
var (
	// ErrUnknown: the commit may or may not have reached the disk. A store on disk refuses further writes until it is
	// reopened, a Shared one until it knows the outcome.
	ErrUnknown = errors.New("the outcome of the write is unknown")
	// ErrNoSpace: the disk or quota is full and nothing was written. Writes succeed again as soon as there is space.
	ErrNoSpace = errors.New("no space left for the store")
	// ErrCorrupt: the stored data differs from the written data (checksum, structure, version).
	ErrCorrupt = errors.New("the stored data is damaged")
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("the store is in use")
	// ErrReadOnly: a Put or Delete inside View.
	ErrReadOnly = errors.New("the transaction is read-only")
	// ErrLagged ends a Watch whose reader was too slow: read the records afresh and watch again.
	ErrLagged = errors.New("the watch fell behind")
	// ErrTooMany: the update made more than MaxWrites writes.
	ErrTooMany = errors.New("too many writes for one update")
	// ErrTooLarge: a value of more than MaxValue bytes.
	ErrTooLarge = errors.New("too large for one record")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrAstray: the path no longer leads to the open file, so the next start would miss new writes. They are refused.
	// Acknowledged data can still be read and backed up.
	ErrAstray = errors.New("the store's file is not in its place")
	// ErrAway: a Shared store is unreachable. Nothing was written; the next request tries again.
	ErrAway = errors.New("the shared store is out of reach")
	// ErrBack: a Shared store was replaced or went back to an earlier state. It comes with ErrAway.
	ErrBack = errors.New("the shared store went back to an earlier state")
)

// Store is a serializable, durable map from byte strings to byte strings, in the order of bytes.Compare.
// All its methods may be called from many goroutines at once.
type Store interface {
	// View runs fn over one consistent state. It may run in parallel with updates and sees no later commit.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn and commits its writes atomically and durably. If fn fails, nothing is written and Update returns
	// fn's error unchanged. fn may run more than once and must touch nothing but tx (see Tx.OnAbort). It may make at
	// most MaxWrites writes. If ctx ends before fn begins, the update is cancelled. Later, Update waits for the
	// outcome, because the commit can no longer be undone.
	Update(ctx context.Context, fn func(Tx) error) error

	// Watch yields each change to a key with the given prefix that commits after the call, in commit order. It stops
	// without an error when ctx ends. An error is the last thing it yields.
	Watch(ctx context.Context, prefix []byte) iter.Seq2[Change, error]

	// Close waits for running transactions and releases the store. Later calls return ErrClosed.
	Close() error
}

// MaxWrites is the maximum number of Puts and Deletes in one Update.
const MaxWrites = 4096

// MaxValue is the maximum size of a value in bytes. It fits etcd's request limit of 1.5 MiB.
const MaxValue = 1 << 20

// Tx gives the function of a View or Update access to the store. The Tx and the slices that it returns are valid until
// that function returns. The slices must not be modified. Only one goroutine may use a Tx.
type Tx interface {
	// Get returns the value of key, or nil if there is none. An empty value is not nil.
	Get(key []byte) ([]byte, error)
	// Put sets key to value. The key is not empty. Both slices may be reused once Put has returned.
	Put(key, value []byte) error
	// Delete removes key. It succeeds if there is no such key.
	Delete(key []byte) error
	// Scan yields the records of a range in order. Writes to that range while it runs are not allowed.
	Scan(Range) iter.Seq2[Record, error]
	// OnAbort registers undo for the case that this run's writes do not become part of the store. That happens if the
	// function or the commit fails, or the function runs again. undo runs before any other update that would have seen
	// those writes.
	OnAbort(undo func())
}

// Range selects the keys from From (included) to To (excluded).
type Range struct {
	From, To []byte // nil: from the first key, or to the end
	Reverse  bool   // last key first
	Limit    int    // maximum number of records; 0: all
}

// Record is one key and its value.
type Record struct {
	Key, Value []byte
}

// Change is one committed write: Value is nil for a deletion. The slices belong to the receiver.
type Change struct {
	Record
}

// Prefix returns the range of all keys that begin with p.
func Prefix(p []byte) Range {
	to := append([]byte(nil), p...)
	for len(to) > 0 {
		to[len(to)-1]++
		if to[len(to)-1] != 0 {
			return Range{From: p, To: to}
		}
		to = to[:len(to)-1]
	}
	return Range{From: p}
}
