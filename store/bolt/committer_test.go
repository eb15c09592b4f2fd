package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"berth/store"
	"berth/store/storetest"
)

// together runs the functions in one batch, in order, and returns what each caller got: an error, or a panic as
// text. A function before them blocks the committer until all of them wait.
func together(t testing.TB, s *Store, fns ...func(store.Tx) error) []string {
	t.Helper()
	gate, held := make(chan struct{}), make(chan struct{})
	out := make([]string, len(fns))
	var wg sync.WaitGroup
	wg.Go(func() {
		must(t, s.Update(context.Background(), func(store.Tx) error { close(held); <-gate; return nil }))
	})
	<-held
	for i, fn := range fns {
		wg.Go(func() {
			out[i] = "ended its goroutine"
			defer func() {
				if p := recover(); p != nil {
					out[i] = fmt.Sprint("panic: ", p)
				}
			}()
			out[i] = fmt.Sprint(s.Update(context.Background(), fn))
		})
		waitQueued(s, i+1)
	}
	close(gate)
	wg.Wait()
	return out
}

func waitQueued(s *Store, n int) {
	for {
		s.commit.mu.Lock()
		queued := len(s.commit.queue)
		s.commit.mu.Unlock()
		if queued == n {
			return
		}
		runtime.Gosched()
	}
}

func commits(t testing.TB, s *Store) uint64 {
	r, err := s.Check(context.Background())
	must(t, err)
	return r.Commit
}

var errWanted = errors.New("wanted")

// TestBatch: functions fail, panic and end their goroutine in the middle of a batch. Each of them undoes only
// its own writes, at once, and all others are committed by one commit.
func TestBatch(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "berth.db"))
	put(t, s, "base", "0")
	before := commits(t, s)
	var trace []string
	step := func(name string, sees string, end func() error) func(store.Tx) error {
		return func(tx store.Tx) error {
			var keys []string
			for rec, err := range tx.Scan(store.Range{}) {
				if err != nil {
					return err
				}
				keys = append(keys, string(rec.Key))
			}
			if got := strings.Join(keys, " "); got != sees {
				t.Errorf("%s sees %q, not %q", name, got, sees)
			}
			tx.OnAbort(func() { trace = append(trace, name+"-") })
			trace = append(trace, name)
			if err := errors.Join(tx.Delete([]byte("base")), tx.Put([]byte(name), nil)); err != nil {
				return err
			}
			return end()
		}
	}
	got := together(t, s,
		step("a-fails", "base", func() error { return errWanted }),
		step("b", "base", func() error { return nil }),
		step("c-panics", "b", func() error { panic("on purpose") }),
		step("d", "b", func() error { return nil }),
		step("e-goes", "b d", func() error { runtime.Goexit(); return nil }),
		step("f", "b d", func() error { return nil }),
	)
	want := []string{"wanted", "<nil>", "panic: on purpose", "<nil>",
		"the function handed to Update ended its goroutine", "<nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("the callers heard %q", got)
	}
	if got := strings.Join(trace, " "); got != "a-fails a-fails- b c-panics c-panics- d e-goes e-goes- f" {
		t.Errorf("the functions and hooks ran as %q", got)
	}
	if n := commits(t, s) - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	if get(t, s, "base") != "" {
		t.Error("the deletion is gone")
	}
}

// TestGoexitOfTheOnlyCaller ends the goroutine that leads the batch.
func TestGoexitOfTheOnlyCaller(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "berth.db"))
	for range 3 {
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = s.Update(context.Background(), func(tx store.Tx) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
		put(t, s, "after", "1")
	}
}

// TestFailedCommit: the commit of a batch fails. The hooks of all functions run in reverse order, before a later
// function.
func TestFailedCommit(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "berth.db"))
	var trace []string
	fn := func(name string, err error) func(store.Tx) error {
		return func(tx store.Tx) error {
			tx.OnAbort(func() { trace = append(trace, name+"1") })
			tx.OnAbort(func() { trace = append(trace, name+"2") })
			if err == nil {
				err = tx.Put([]byte(name), make([]byte, 64<<10)) // more than fits in the file
			}
			return err
		}
	}
	// the commit then fails when it needs a new page
	fail := func(store.Tx) error { s.open.db.MaxSize = 1; return nil }
	got := together(t, s, fail, fn("refused", errWanted), fn("a", nil), fn("b", nil), fn("late", errWanted))
	if got[0] != "<nil>" || got[1] != "wanted" {
		t.Errorf("what ran before any write heard %q", got[:2])
	}
	for _, heard := range got[2:] {
		if !strings.Contains(heard, "outcome of the write is unknown") || !strings.Contains(heard, "restarts") {
			t.Errorf("a caller heard %q", heard)
		}
	}
	if got := strings.Join(trace, " "); got != "refused2 refused1 late2 late1 b2 b1 a2 a1" {
		t.Errorf("the hooks ran as %q", got)
	}
	err := s.Update(context.Background(), func(store.Tx) error { t.Error("a function ran after it"); return nil })
	if !errors.Is(err, store.ErrUnknown) {
		t.Errorf("afterwards: %v", err)
	}
	if get(t, s, "a") != "" {
		t.Error("reading fails afterwards")
	}
}

// TestModelInOneBatch compares random functions in one batch with the model: later functions read, in the shared
// transaction, what earlier ones wrote and deleted, even on pages that became empty.
func TestModelInOneBatch(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "berth.db"))
	rapid.Check(t, func(r *rapid.T) {
		m := storetest.NewModel()
		wipe := func(tx store.Tx) error {
			for rec, err := range tx.Scan(store.Range{}) {
				if err != nil {
					return err
				}
				defer func(key []byte) { _ = tx.Delete(key) }(slices.Clone(rec.Key))
			}
			return nil
		}
		must(t, s.Update(context.Background(), wipe))
		for range rapid.IntRange(1, 3).Draw(r, "batches") {
			var fns []func(store.Tx) error
			var heard [2][]string
			for range rapid.IntRange(1, 6).Draw(r, "functions") {
				seed := rapid.IntRange(0, 1<<20).Draw(r, "seed")
				at := len(fns)
				heard[0], heard[1] = append(heard[0], ""), append(heard[1], "")
				fns = append(fns, func(tx store.Tx) error { return randomFunction(tx, seed, &heard[0][at]) })
				must(t, ignoreWanted(m.Update(context.Background(), func(tx store.Tx) error {
					return randomFunction(tx, seed, &heard[1][at])
				})))
			}
			together(t, s, fns...)
			if !slices.Equal(heard[0], heard[1]) {
				r.Fatalf("\n got %q\nwant %q", heard[0], heard[1])
			}
		}
	})
}

func ignoreWanted(err error) error {
	if errors.Is(err, errWanted) {
		return nil
	}
	return err
}

// randomFunction deletes one range of keys, writes another, and notes what it reads in both directions.
func randomFunction(tx store.Tx, seed int, heard *string) error {
	key := func(n int) []byte { return fmt.Appendf(nil, "key%03d", n) }
	var b strings.Builder
	lo, n := seed%97, seed/97%60
	for i := lo; i < lo+n; i++ {
		if err := tx.Delete(key(i)); err != nil {
			return err
		}
	}
	lo, n = seed/7%97, seed/1013%25
	for i := lo; i < lo+n; i++ {
		if err := tx.Put(key(i), []byte(strings.Repeat(string(rune('a'+seed%26)), 700))); err != nil {
			return err
		}
	}
	for _, r := range []store.Range{{}, {Reverse: true}, {From: key(seed % 89), Limit: 3},
		{To: key(seed % 83), Reverse: true, Limit: 3}} {
		for rec, err := range tx.Scan(r) {
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s%c ", rec.Key[3:], rec.Value[0])
		}
		b.WriteString("| ")
	}
	*heard = b.String()
	if seed%5 == 0 {
		return errWanted
	}
	return nil
}

// TestNoSpaceAfterTheMetaPage: "no space" from the last sync comes after the meta page was written, so the
// commit may still be there.
func TestNoSpaceAfterTheMetaPage(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "berth.db"))
	put(t, s, "a", "1")
	last := int(commits(t, s))
	if err := s.commit.commitFailed(last+1, syscall.ENOSPC); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("before the meta page: %v", err)
	}
	put(t, s, "a", "2")
	if err := s.commit.commitFailed(last+1, syscall.ENOSPC); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("after the meta page: %v", err)
	}
}
