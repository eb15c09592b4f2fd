package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"berth/store"
)

// Fault is a failure of one Update of a Faulty store. The zero Fault is none.
type Fault struct {
	// Wait delays the update until it is closed.
	Wait <-chan struct{}
	// Reruns is how many times the function runs and is undone before its real run.
	Reruns int
	// Before makes the update fail after its function has succeeded. Nothing is committed. Wrap store.ErrNoSpace for a
	// full disk.
	Before error
	// After makes the update fail after the commit, with an error that wraps store.ErrUnknown and this one.
	After error
	// Lost is like After, but nothing was committed. Both are possible meanings of an unknown outcome.
	Lost error
}

// Faulty wraps a store.Store and makes it fail on demand. After an update with an unknown outcome it refuses further
// updates with store.ErrUnknown until Heal is called, like a store on a disk.
type Faulty struct {
	inner store.Store

	// An update with an unknown outcome runs alone, so that no other update sees its writes before its hooks have
	// run.
	alone sync.RWMutex

	mu     sync.Mutex
	queue  []Fault
	each   func(n int) Fault
	n      int
	views  error
	broken error
}

var _ store.Store = (*Faulty)(nil)

// NewFaulty returns a wrapper of s without faults. Closing it closes s.
func NewFaulty(s store.Store) *Faulty { return &Faulty{inner: s} }

// Inner returns the wrapped store.
func (f *Faulty) Inner() store.Store { return f.inner }

// Next sets the faults of the next updates, one each, in the order of their calls.
func (f *Faulty) Next(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, faults...)
}

// Each sets a function that returns the fault of each update without one from Next; n counts them from 1. nil: none.
func (f *Faulty) Each(fn func(n int) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.each, f.n = fn, 0
}

// FailViews makes all views fail with err; nil: none.
func (f *Faulty) FailViews(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views = err
}

// Heal allows updates again after an unknown outcome, as reopening the store does.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = nil
}

// fault returns the fault of the next update.
func (f *Faulty) fault() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) > 0 {
		next := f.queue[0]
		f.queue = f.queue[1:]
		return next
	}
	if f.each == nil {
		return Fault{}
	}
	f.n++
	return f.each(f.n)
}

func (f *Faulty) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

var errRerun = errors.New("run again")

// Update implements store.Store.
func (f *Faulty) Update(ctx context.Context, fn func(store.Tx) error) error {
	return f.update(ctx, fn, f.fault())
}

func (f *Faulty) update(ctx context.Context, fn func(store.Tx) error, fault Fault) error {
	if fault.Wait != nil {
		select {
		case <-fault.Wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if unknown := errors.Join(fault.After, fault.Lost); unknown != nil {
		f.alone.Lock()
		defer f.alone.Unlock()
		return f.unknown(ctx, fn, unknown, fault.Lost != nil)
	}
	f.alone.RLock()
	defer f.alone.RUnlock()
	if err := f.refusal(); err != nil {
		return err
	}
	for range fault.Reruns {
		err := f.inner.Update(ctx, func(tx store.Tx) error {
			_ = fn(tx) // an undone run
			return errRerun
		})
		if !errors.Is(err, errRerun) {
			return err
		}
		ctx = context.WithoutCancel(ctx) // the function has begun
	}
	return f.inner.Update(ctx, func(tx store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return fault.Before
	})
}

// unknown runs an update whose outcome the caller does not learn.
func (f *Faulty) unknown(ctx context.Context, fn func(store.Tx) error, why error, lost bool) error {
	if err := f.refusal(); err != nil {
		return err
	}
	kept := &hooked{}
	err := f.inner.Update(ctx, func(tx store.Tx) error {
		kept.Tx, kept.undo = tx, nil
		if err := fn(kept); err != nil {
			return err
		}
		if lost {
			return errRerun
		}
		return nil
	})
	switch {
	case lost && errors.Is(err, errRerun): // the hooks have run
	case err != nil:
		return err
	default:
		for _, undo := range slices.Backward(kept.undo) {
			undo()
		}
	}
	err = fmt.Errorf("%w: %w", store.ErrUnknown, why)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = err
	return err
}

// hooked is a Tx that records its hooks.
type hooked struct {
	store.Tx
	undo []func()
}

func (h *hooked) OnAbort(undo func()) {
	h.undo = append(h.undo, undo)
	h.Tx.OnAbort(undo)
}

// View implements store.Store.
func (f *Faulty) View(ctx context.Context, fn func(store.Tx) error) error {
	f.mu.Lock()
	err := f.views
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.inner.View(ctx, fn)
}

// Watch implements store.Store.
func (f *Faulty) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	return f.inner.Watch(ctx, prefix)
}

// Close implements store.Store.
func (f *Faulty) Close() error { return f.inner.Close() }
