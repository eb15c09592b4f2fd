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

// The errors that a Store answers with; each comes wrapped, with what happened and what to do about it.
var (
	// ErrUnknown: the commit may or may not have reached the disk. A store on a disk refuses further writes until it is
	// opened again; a Shared one until it has found out.
	ErrUnknown = errors.New("the outcome of the write is unknown")
	// ErrNoSpace: there was no room; nothing was written, and writes succeed again as soon as there is room.
	ErrNoSpace = errors.New("no space left for the store")
	// ErrCorrupt: what is stored is not what was written (checksum, structure, version).
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
	// ErrAstray: the store's place does not lead to what is open any more, so that the next start would not find what
	// is written; it is refused instead. What was acknowledged before can still be read and backed up.
	ErrAstray = errors.New("the store's file is not in its place")
	// ErrAway: a Shared store is out of reach. Nothing was written, and it is tried again with the next request.
	ErrAway = errors.New("the shared store is out of reach")
	// ErrBack: a Shared store is not the one that was written to, or not as far as it was written. It comes with
	// ErrAway.
	ErrBack = errors.New("the shared store went back")
)

// Store is a serializable, durable map from byte strings to byte strings, in the order of bytes.Compare.
// All its methods may be called from many goroutines at once.
type Store interface {
	// View runs fn over one consistent state. It may run beside updates and sees none that commits after it began.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn and commits what it wrote, atomically and durably, or, when fn fails, nothing of it: fn's error is
	// returned as it is. fn may run more than once and must touch nothing but tx (see Tx.OnAbort). It must make a
	// bounded number of writes, at most MaxWrites. A ctx that ends before fn began cancels the update; afterwards the
	// answer is awaited, because the commit can no longer be taken back.
	Update(ctx context.Context, fn func(Tx) error) error

	// Watch yields, in commit order, each change to a key with the given prefix that commits after Watch was called,
	// until ctx ends (then it stops without an error) or an error is yielded, which is the last.
	Watch(ctx context.Context, prefix []byte) iter.Seq2[Change, error]

	// Close waits for running transactions and releases the store. Calls after it answer ErrClosed.
	Close() error
}

// MaxWrites is how many Puts and Deletes one Update may make.
const MaxWrites = 4096

// MaxValue is how many bytes one value has at most. etcd's request of 1.5 MiB bounds it, too.
const MaxValue = 1 << 20

// Tx is the view that a function passed to View or Update has of the store. It is valid, and the slices that it hands
// out are valid and unchanged, until that function returns; they must not be modified. It is for one goroutine.
type Tx interface {
	// Get returns the value of key, or nil where there is none. An empty value is not nil.
	Get(key []byte) ([]byte, error)
	// Put sets key to value. The key is not empty. Both slices may be reused once Put has returned.
	Put(key, value []byte) error
	// Delete removes key; deleting what is not there succeeds.
	Delete(key []byte) error
	// Scan yields the records of a range in order. Writes to that range while it runs are not allowed.
	Scan(Range) iter.Seq2[Record, error]
	// OnAbort has undo called when what this run of the function wrote does not become part of the store: it failed,
	// the commit failed, or it is run again. It is called before any other update can run that would have seen those
	// writes.
	OnAbort(undo func())
}

// Range selects the keys from From (included) to To (excluded).
type Range struct {
	From, To []byte // nil: from the first key, to behind the last one
	Reverse  bool   // last key first
	Limit    int    // at most so many records; 0: all
}

// Record is one key and its value.
type Record struct {
	Key, Value []byte
}

// Change is one committed write: Value is nil for a deletion. The slices belong to the receiver.
type Change struct {
	Record
}

// Prefix is the range of all keys that begin with p.
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
