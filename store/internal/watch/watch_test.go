package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put publishes a commit that puts the given keys, each with the value v.
func put(ws *Set, v string, keys ...string) {
	var all []store.Record
	for _, k := range keys {
		all = append(all, store.Record{Key: []byte(k), Value: []byte(v)})
	}
	ws.Publish(all)
}

func (ws *Set) kept() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if n := int(ws.count.Load()); n != len(ws.set) {
		return -1
	}
	return len(ws.set)
}

// A reader that is too slow gets an error as its next and last result. The others continue.
func TestLags(t *testing.T) {
	ws := &Set{}
	slow, other := ws.Watch(t.Context(), []byte("k")), ws.Watch(t.Context(), []byte("other"))
	for i := range buffer + 1 {
		put(ws, "1", fmt.Sprintf("k%d", i))
	}
	put(ws, "1", "other")
	n := 0
	for c, err := range slow {
		if n++; !errors.Is(err, store.ErrLagged) || c.Key != nil {
			t.Errorf("the slow watch yields %q, %v", c.Key, err)
		}
	}
	if n != 1 {
		t.Errorf("the slow watch yields %d times", n)
	}
	next, stop := iter.Pull2(other)
	defer stop()
	if c, err, ok := next(); !ok || err != nil || string(c.Key) != "other" {
		t.Errorf("the other watch yields %q, %v", c.Key, err)
	}
	if n := ws.kept(); n != 1 {
		t.Errorf("%d watchers are kept", n)
	}
}

// The receiver owns the changes: writing to them reaches neither the store nor another watcher.
func TestCopies(t *testing.T) {
	ws := &Set{}
	one, stopOne := iter.Pull2(ws.Watch(t.Context(), nil))
	defer stopOne()
	two, stopTwo := iter.Pull2(ws.Watch(t.Context(), nil))
	defer stopTwo()
	kept := []store.Record{{Key: []byte("a"), Value: []byte("1")}}
	ws.Publish(kept)
	for _, next := range []func() (store.Change, error, bool){one, two} {
		c, err, ok := next()
		if !ok || err != nil || string(c.Key)+"="+string(c.Value) != "a=1" {
			t.Fatalf("%q=%q, %v", c.Key, c.Value, err)
		}
		c.Key[0], c.Value[0] = 'x', 'x'
	}
	if string(kept[0].Key)+"="+string(kept[0].Value) != "a=1" {
		t.Errorf("what was published became %q=%q", kept[0].Key, kept[0].Value)
	}
}

// A watch is read once. A second reader gets an error, whether the first one has left or not.
func TestIsReadOnce(t *testing.T) {
	ws := &Set{}
	w := ws.Watch(t.Context(), nil)
	again := func() {
		n := 0
		for _, err := range w {
			if n++; !errors.Is(err, errUsed) {
				t.Errorf("the second reader hears %v", err)
			}
		}
		if n != 1 {
			t.Errorf("the second reader hears %d times", n)
		}
	}
	put(ws, "1", "a", "b")
	got := ""
	for c, err := range w {
		if err != nil {
			t.Fatal(err)
		}
		again()
		if got += string(c.Key); got == "ab" {
			break
		}
	}
	again()
	if n := ws.kept(); n != 0 {
		t.Errorf("%d watchers are kept", n)
	}
}

// A watch that is never read is forgotten when its context ends.
func TestUnread(t *testing.T) {
	ws := &Set{}
	ctx, cancel := context.WithCancel(t.Context())
	_ = ws.Watch(ctx, nil)
	if ws.kept() != 1 {
		t.Fatal("the watch is not there before it is read")
	}
	cancel()
	for deadline := time.Now().Add(10 * time.Second); ws.kept() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the watch is still there")
		}
	}
}

// After closing, pending changes can still be read. Watches that come later end at once.
func TestClose(t *testing.T) {
	ws := &Set{}
	early := ws.Watch(t.Context(), nil)
	put(ws, "1", "a")
	ws.Close(store.ErrClosed)
	put(ws, "1", "b")
	for _, c := range []struct {
		watch iter.Seq2[store.Change, error]
		want  string
	}{{early, "a,<nil> ,the store is closed "}, {ws.Watch(t.Context(), nil), ",the store is closed "}} {
		got := ""
		for c, err := range c.watch {
			got += fmt.Sprintf("%s,%v ", c.Key, err)
		}
		if got != c.want {
			t.Errorf("the watch yields %q, not %q", got, c.want)
		}
	}
}
