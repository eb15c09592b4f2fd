package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModel(t *testing.T) {
	Run(t, func(*testing.T) store.Store { return NewModel() })
}

func TestFaulty(t *testing.T) {
	Run(t, func(*testing.T) store.Store { return NewFaulty(NewModel()) })
}

func TestFaultyThatReruns(t *testing.T) {
	Run(t, func(*testing.T) store.Store {
		f := NewFaulty(NewModel())
		f.Each(func(n int) Fault { return Fault{Reruns: n % 3} })
		return f
	})
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	f := NewFaulty(NewModel())
	hooks := 0
	try := func(key string) error {
		return f.Update(ctx, func(tx store.Tx) error {
			tx.OnAbort(func() { hooks++ })
			return tx.Put([]byte(key), nil)
		})
	}
	f.Next(Fault{Before: fmt.Errorf("%w: injected", store.ErrNoSpace)}, Fault{Reruns: 2}, Fault{After: errWanted},
		Fault{}, Fault{Lost: errWanted})
	if err := try("a"); !errors.Is(err, store.ErrNoSpace) || hooks != 1 {
		t.Errorf("full: %v, %d hooks", err, hooks)
	}
	wantAll(t, f, "")
	if err := try("b"); err != nil || hooks != 3 {
		t.Errorf("rerun: %v, %d hooks", err, hooks)
	}
	if err := try("c"); !errors.Is(err, store.ErrUnknown) || !errors.Is(err, errWanted) || hooks != 4 {
		t.Errorf("unknown: %v, %d hooks", err, hooks)
	}
	wantAll(t, f, "b= c=")
	if err := try("d"); !errors.Is(err, store.ErrUnknown) || hooks != 4 {
		t.Errorf("after it: %v, %d hooks", err, hooks)
	}
	f.Heal()
	if err := try("e"); !errors.Is(err, store.ErrUnknown) || hooks != 5 {
		t.Errorf("lost: %v, %d hooks", err, hooks)
	}
	wantAll(t, f, "b= c=")
	f.Heal()
	f.FailViews(errWanted)
	if err := f.View(ctx, func(store.Tx) error { return nil }); err != errWanted {
		t.Errorf("view: %v", err)
	}
	gate := make(chan struct{})
	f.FailViews(nil)
	f.Next(Fault{Wait: gate})
	answer := make(chan error, 1)
	go func() { answer <- try("f") }()
	for drawn := false; !drawn; runtime.Gosched() {
		f.mu.Lock()
		drawn = len(f.queue) == 0
		f.mu.Unlock()
	}
	if err := try("g"); err != nil { // it does not wait for the one that waits
		close(gate)
		t.Fatal(err)
	}
	close(gate)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	wantAll(t, f, "b= c= f= g=")
}

// TestHistoryWithUnknownOutcomes: the search must accept that an update with an unknown outcome took effect or
// did not, and nothing else.
func TestHistoryWithUnknownOutcomes(t *testing.T) {
	for name, fault := range map[string]Fault{"committed": {After: errWanted}, "lost": {Lost: errWanted}} {
		t.Run(name, func(t *testing.T) {
			f := NewFaulty(NewModel())
			h, unknown := NewHistory(), 0
			for range 3 {
				f.Each(func(n int) Fault {
					if n == 40 {
						return fault
					}
					return Fault{}
				})
				Drive(h, []store.Store{f}, 4, 30, func(error) bool { return true })
				if f.refusal() != nil {
					unknown++
				}
				f.Heal()
			}
			if unknown != 3 {
				t.Fatalf("the fault was in force %d times of 3", unknown)
			}
			h.Check(t)
		})
	}
}

// forgetful loses every tenth acknowledged write. The suite's search must notice.
type forgetful struct {
	store.Store
	n int
}

func (f *forgetful) Update(ctx context.Context, fn func(store.Tx) error) error {
	f.n++
	if f.n%10 != 0 {
		return f.Store.Update(ctx, fn)
	}
	err := f.Store.Update(ctx, func(tx store.Tx) error { return errors.Join(fn(tx), errRerun) })
	if errors.Is(err, errRerun) {
		return nil
	}
	return err
}

type failures struct {
	testing.TB
	failed bool
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.failed = true }

func TestHistoryNoticesLoss(t *testing.T) {
	h := NewHistory()
	Drive(h, []store.Store{&forgetful{Store: NewModel()}}, 1, 100, func(err error) bool { t.Error(err); return true })
	f := &failures{TB: t}
	h.Check(f)
	if !f.failed {
		t.Error("a store that forgets passes")
	}
}

// idle is a handle that runs nothing.
type idle struct{ store.Shared }

func (idle) Update(context.Context, func(store.Tx) error) error { panic("it ran") }

func TestFaultySharedHasNoAfter(t *testing.T) {
	f := NewFaultyShared(idle{})
	f.Next(Fault{After: errWanted})
	if err := f.Update(context.Background(), puts("a=1")); err != errNoAfter {
		t.Errorf("Fault.After on a shared store: %v", err)
	}
}
