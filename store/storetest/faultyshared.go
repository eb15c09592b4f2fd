package storetest

import (
	"context"
	"errors"

	"berth/store"
)

// FaultyShared is Faulty for a handle of a store.Shared, and is a store.Shared itself. It supports all faults except
// Fault.After. Such a commit would have to come through Follow in its place among the commits of others, which only the
// handle knows (mem.Store.LoseNext).
type FaultyShared struct {
	*Faulty
	shared store.Shared
}

var _ store.Shared = (*FaultyShared)(nil)

// NewFaultyShared returns a wrapper of s without faults. Closing it closes s.
func NewFaultyShared(s store.Shared) *FaultyShared { return &FaultyShared{NewFaulty(s), s} }

// Update implements store.Store.
func (f *FaultyShared) Update(ctx context.Context, fn func(store.Tx) error) error {
	fault := f.fault()
	if fault.After != nil {
		return errNoAfter
	}
	return f.update(ctx, fn, fault)
}

var errNoAfter = errors.New("storetest: Fault.After is not for a shared store")

// Follow implements store.Shared.
func (f *FaultyShared) Follow(ctx context.Context, load func(store.Tx) error, apply func([]store.Foreign)) error {
	return f.shared.Follow(ctx, load, apply)
}

// Reach implements store.Shared.
func (f *FaultyShared) Reach() store.Reach { return f.shared.Reach() }

// Announce implements store.Shared.
func (f *FaultyShared) Announce(name string, value []byte) { f.shared.Announce(name, value) }

// Present implements store.Shared.
func (f *FaultyShared) Present() map[string][]byte { return f.shared.Present() }

// Hold implements store.Shared.
func (f *FaultyShared) Hold(ctx context.Context, name string) (store.Session, error) {
	return f.shared.Hold(ctx, name)
}

// Held implements store.Shared.
func (f *FaultyShared) Held() map[string]string { return f.shared.Held() }
