package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"berth/store"
)

// shadow is an index in memory of everything that one handle reads. Follow loads it. The commits of others and the
// handle's own functions update it, and their hooks restore it. store.Shared promises that this is possible.
type shadow struct {
	t    *testing.T
	s    store.Shared
	rule func(data map[string]string) error // holds for each state; nil: none

	inside, applying atomic.Int32

	mu      sync.Mutex
	data    map[string]string
	applied int // number of calls of apply
}

// newShadow follows s.
func newShadow(t *testing.T, s store.Shared, rule func(map[string]string) error) *shadow {
	t.Helper()
	sh := &shadow{t: t, s: s, rule: rule}
	sh.follow(func() {})
	return sh
}

// follow follows the store. It also runs while before the load is over.
func (sh *shadow) follow(while func()) {
	sh.t.Helper()
	load := func(tx store.Tx) error {
		defer while()
		return sh.load(tx)
	}
	if err := sh.s.Follow(context.Background(), load, sh.apply); err != nil {
		sh.t.Errorf("Follow: %v", err)
	}
}

func (sh *shadow) load(tx store.Tx) error {
	defer sh.alone(&sh.applying)()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all, err := everything(tx)
	sh.data = all
	return err
}

func everything(tx store.Tx) (map[string]string, error) {
	all := map[string]string{}
	for rec, err := range tx.Scan(store.Range{}) {
		if err != nil {
			return nil, err
		}
		all[string(rec.Key)] = string(rec.Value)
	}
	return all, nil
}

// alone records in mine that something runs, and checks that nothing else does.
func (sh *shadow) alone(mine *atomic.Int32) func() {
	mine.Add(1)
	if in, ap := sh.inside.Load(), sh.applying.Load(); in+ap != 1 {
		sh.t.Errorf("%d functions and %d applies of one handle run at the same time", in, ap)
	}
	return func() { mine.Add(-1) }
}

// apply compares the value before each write with the shadow. This detects a commit that came twice, too late or not at
// all, or that was the handle's own.
func (sh *shadow) apply(foreign []store.Foreign) {
	defer sh.alone(&sh.applying)()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.data == nil {
		sh.t.Error("apply before load")
		sh.data = map[string]string{}
	}
	sh.applied++
	if len(foreign) == 0 {
		sh.t.Error("apply is handed nothing")
	}
	seen := map[string]bool{}
	for _, f := range foreign {
		key := string(f.Key)
		was, had := sh.data[key]
		if had != (f.Before != nil) || was != string(f.Before) || seen[key] {
			sh.t.Errorf("apply is told that %q was %q (there: %t), it was %q (%t); told of it twice: %t", key, f.Before,
				f.Before != nil, was, had, seen[key])
		}
		seen[key] = true
		if f.After == nil {
			delete(sh.data, key)
		} else {
			sh.data[key] = string(f.After)
		}
		spoil(f.Key, f.Before, f.After)
	}
	if sh.rule != nil {
		if err := sh.rule(sh.data); err != nil {
			sh.t.Errorf("after apply: %v", err)
		}
	}
}

// spoil overwrites slices that belong to the receiver.
func spoil(slices ...[]byte) {
	for _, s := range slices {
		for i := range s {
			s[i] = 'x'
		}
	}
}

// update runs fn, whose writes also change the shadow. Before and after fn, the shadow must equal what the function
// reads: everything or, with keys, only those. Reading only some keys keeps updates from conflicting with all others.
func (sh *shadow) update(fn func(tx store.Tx) error, keys ...string) error {
	return sh.s.Update(context.Background(), func(tx store.Tx) error {
		defer sh.alone(&sh.inside)()
		sh.mu.Lock()
		defer sh.mu.Unlock()
		moved := &shadowTx{Tx: tx, sh: sh}
		tx.OnAbort(moved.back)
		if err := sh.compare(tx, keys); err != nil {
			sh.t.Errorf("at the begin of a function: %v", err)
		}
		if err := fn(moved); err != nil {
			return err
		}
		if err := sh.compare(tx, keys); err != nil {
			sh.t.Errorf("at the end of a function: %v", err)
		}
		return nil
	})
}

// compare returns the difference between the shadow and what tx reads.
func (sh *shadow) compare(tx store.Tx, keys []string) error {
	if len(keys) == 0 {
		all, err := everything(tx)
		if err == nil && !maps.Equal(all, sh.data) {
			err = fmt.Errorf("there is %s, the shadow says otherwise", difference(all, sh.data))
		}
		return err
	}
	for _, k := range keys {
		v, err := tx.Get([]byte(k))
		if err != nil {
			return err
		}
		if was, had := sh.data[k]; had != (v != nil) || was != string(v) {
			return fmt.Errorf("%q is %q (there: %t), the shadow says %q (%t)", k, v, v != nil, was, had)
		}
	}
	return nil
}

// difference lists what is in only one of got and want.
func difference(got, want map[string]string) []string {
	var all []string
	for k, v := range got {
		if w, ok := want[k]; !ok || w != v {
			all = append(all, fmt.Sprintf("%q=%.20q", k, v))
		}
	}
	for k := range want {
		if _, ok := got[k]; !ok {
			all = append(all, fmt.Sprintf("no %q", k))
		}
	}
	slices.Sort(all)
	if len(all) > 8 {
		all = append(all[:8], fmt.Sprintf("and %d more", len(all)-8))
	}
	return all
}

// is reports whether the shadow equals want.
func (sh *shadow) is(want map[string]string) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return maps.Equal(sh.data, want)
}

// shadowTx changes the shadow with each write.
type shadowTx struct {
	store.Tx
	sh   *shadow
	undo []func()
}

func (m *shadowTx) Put(key, value []byte) error {
	if err := m.Tx.Put(key, value); err != nil {
		return err
	}
	m.note(string(key))
	m.sh.data[string(key)] = string(value)
	return nil
}

func (m *shadowTx) Delete(key []byte) error {
	if err := m.Tx.Delete(key); err != nil {
		return err
	}
	m.note(string(key))
	delete(m.sh.data, string(key))
	return nil
}

// note records how to restore key.
func (m *shadowTx) note(key string) {
	was, had := m.sh.data[key]
	m.undo = append(m.undo, func() {
		if had {
			m.sh.data[key] = was
		} else {
			delete(m.sh.data, key)
		}
	})
}

func (m *shadowTx) back() {
	m.sh.mu.Lock()
	defer m.sh.mu.Unlock()
	for _, undo := range slices.Backward(m.undo) {
		undo()
	}
}

// wantSame waits until all shadows equal what a view of each handle sees.
func wantSame(t *testing.T, all []*shadow) {
	t.Helper()
	var want map[string]string
	view(t, all[0].s, func(tx store.Tx) (err error) { want, err = everything(tx); return err })
	for i, sh := range all {
		settle(t, sh.s)
		if !sh.is(want) {
			t.Errorf("the shadow of handle %d is not what the store holds", i)
		}
		view(t, sh.s, func(tx store.Tx) error {
			now, err := everything(tx)
			if !maps.Equal(now, want) {
				t.Errorf("handle %d sees %q otherwise", i, difference(now, want))
			}
			return err
		})
	}
}
