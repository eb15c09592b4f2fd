package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"berth/store"
)

// take reads n changes as "key=value", or "key deleted".
func take(t *testing.T, next func() (store.Change, error, bool), n int) string {
	t.Helper()
	var out []string
	for range n {
		c, err, ok := next()
		if !ok || err != nil {
			t.Fatalf("the watch ended after %q: %v", out, err)
		}
		if c.Value == nil {
			out = append(out, string(c.Key)+" deleted")
		} else {
			out = append(out, string(c.Key)+"="+string(c.Value))
		}
	}
	return strings.Join(out, ", ")
}

func testWatch(t *testing.T, s store.Store) {
	update(t, s, puts("w/before=1", "w/old=1"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	all, stopAll := iter.Pull2(s.Watch(ctx, nil))
	defer stopAll()
	prefix := []byte("w/")
	some, stopSome := iter.Pull2(s.Watch(ctx, prefix))
	defer stopSome()
	prefix[0] = 'x' // the slice belongs to the caller again
	update(t, s, puts("w/a=1", "z/other=1"))
	if err := s.Update(ctx,
		func(tx store.Tx) error { _ = puts("w/failed=1")(tx); return errWanted }); err != errWanted {
		t.Fatal(err)
	}
	_ = panics(func() {
		_ = s.Update(ctx,
			func(tx store.Tx) error { _ = puts("w/failed=1")(tx); panic("on purpose") })
	})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Delete([]byte("w/old")), tx.Delete([]byte("w/never was")), tx.Put([]byte("w/empty"), nil))
	})
	update(t, s, puts("w/last="))
	if got, want := take(t, some, 4), "w/a=1, w/empty=, w/old deleted, w/last="; got != want {
		t.Errorf("with a prefix\n got %s\nwant %s", got, want)
	}
	if got, want := take(t, all, 5), "w/a=1, z/other=1, w/empty=, w/old deleted, w/last="; got != want {
		t.Errorf("of everything\n got %s\nwant %s", got, want)
	}
}

// testWatchOrder replays a watch and compares it with the store.
func testWatchOrder(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watch := s.Watch(ctx, []byte("n"))
	copied := map[string]string{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for c, err := range watch {
			if err != nil {
				t.Error(err)
				return
			}
			if bytes.Equal(c.Key, []byte("n/end")) {
				return
			}
			if c.Value == nil {
				delete(copied, string(c.Key))
				continue
			}
			if was := copied[string(c.Key)]; len(was) >= len(c.Value) && was != "" {
				t.Errorf("%s goes back from %q to %q", c.Key, was, c.Value)
			}
			copied[string(c.Key)] = string(c.Value)
		}
	})
	crowd(func(w, r int) {
		update(t, s, func(tx store.Tx) error { // values only grow, or are deleted
			key := fmt.Appendf(nil, "n/%d", (w+r)%5)
			v, err := tx.Get(key)
			if err != nil {
				return err
			}
			if len(v) > 20 {
				return tx.Delete(key)
			}
			return tx.Put(key, append(bytes.Clone(v), 'x'))
		})
	})
	update(t, s, puts("n/end=1"))
	wg.Wait()
	view(t, s, func(tx store.Tx) error {
		n := 0
		for rec, err := range tx.Scan(store.Range{From: []byte("n/0"), To: []byte("n/9")}) {
			if err != nil {
				return err
			}
			if n++; copied[string(rec.Key)] != string(rec.Value) {
				t.Errorf("%s holds %q, the watch says %q", rec.Key, rec.Value, copied[string(rec.Key)])
			}
		}
		if n != len(copied) {
			t.Errorf("the store holds %d records, the watch says %d", n, len(copied))
		}
		return nil
	})
}

func testWatchEnds(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	w := s.Watch(ctx, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		for c, err := range w {
			if err != nil {
				t.Errorf("a watch whose context ends yields %v", err)
			}
			if string(c.Key) == "a" {
				cancel()
			}
		}
	})
	update(t, s, puts("a=1"))
	wg.Wait()
	w = s.Watch(context.Background(), nil)
	var last error
	wg.Go(func() {
		for _, err := range w {
			if last != nil {
				t.Error("something comes after an error")
			}
			last = err
		}
	})
	update(t, s, puts("a=2"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !errors.Is(last, store.ErrClosed) {
		t.Errorf("a watch of a store that closes ends with %v", last)
	}
}

// testWatchLag writes far more than any buffer holds before it reads the watch. The watch must yield everything in
// order or report that it lagged. It must never omit something.
func testWatchLag(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := s.Watch(ctx, nil)
	const batches, each = 8, 3000
	for b := range batches {
		update(t, s, func(tx store.Tx) error {
			for i := range each {
				if err := tx.Put(fmt.Appendf(nil, "%06d", b*each+i), nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	n := 0
	for c, err := range w {
		if errors.Is(err, store.ErrLagged) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(c.Key) != fmt.Sprintf("%06d", n) {
			t.Fatalf("change %d is %s", n, c.Key)
		}
		if n++; n == batches*each {
			return
		}
	}
	t.Errorf("the watch ended after %d changes", n)
}
