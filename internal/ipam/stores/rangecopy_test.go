package stores

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/store"
	"berth/store/mem"
)

// drawnRecords draws records of few keys, so that two stores share some of them.
func drawnRecords(t *rapid.T, label string) map[string]string {
	key := rapid.StringMatching(`[a-d][x-z]?`)
	return rapid.MapOf(key, rapid.SampledFrom([]string{"", "1", "2"})).Draw(t, label)
}

func storeOf(t *rapid.T, all map[string]string) *mem.Store {
	st := mem.New()
	if err := st.Update(t.Context(), func(tx store.Tx) error {
		for key, value := range all {
			if err := tx.Put([]byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return st
}

func recordsOf(t *rapid.T, st store.Store) map[string]string {
	all := map[string]string{}
	if err := st.View(t.Context(), func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all[string(rec.Key)] = string(rec.Value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// Afterwards the target's range has the source's records, whatever it had before. Records outside stay. A
// transaction copies at most a page of either side. What is read back is compared record by record.
func TestRangeCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, before := drawnRecords(t, "source"), drawnRecords(t, "target")
		inside := func(key string) bool { return "b" <= key && key < "d" }
		odd := func(key, value string) bool { return key == "bz" || value == "2" } // not copied
		want := maps.Clone(before)
		maps.DeleteFunc(want, func(key, _ string) bool { return inside(key) })
		for key, value := range source {
			if inside(key) && !odd(key, value) {
				want[key] = value + "+"
			}
		}
		rc := &rangeCopy{keys: store.Range{From: []byte("b"), To: []byte("d")},
			limit: rapid.IntRange(1, 4).Draw(t, "limit"),
			want: func(rec store.Record) ([]byte, error) {
				if odd(string(rec.Key), string(rec.Value)) {
					return nil, nil
				}
				return append(rec.Value[:len(rec.Value):len(rec.Value)], '+'), nil
			}}
		from, to := storeOf(t, source), storeOf(t, before)
		if rapid.IntRange(0, 3).Draw(t, "nothing") == 0 {
			maps.DeleteFunc(want, func(key, _ string) bool { return inside(key) })
			copyRange(t, rc, nothing, to)
		} else {
			copyRange(t, rc, from.View, to)
			comparedRange(t, rc, from, to, want)
		}
		if diff := cmp.Diff(want, recordsOf(t, to)); diff != "" {
			t.Fatalf("the target has:\n%s", diff)
		}
	})
}

// copyRange copies a range, and fails if a transaction makes too much.
func copyRange(t *rapid.T, rc *rangeCopy, from viewing, to store.Store) {
	writes := 0
	update := func(ctx context.Context, part func(store.Tx) error) error {
		fn := func(tx store.Tx) error {
			writes = 0
			return part(tx)
		}
		again := errors.New("once more") // a function can run again
		if err := to.Update(ctx, func(tx store.Tx) error {
			return errors.Join(fn(tx), again)
		}); err.Error() != again.Error() {
			return err
		}
		return to.Update(ctx, fn)
	}
	err := rc.each(t.Context(), from, update, func(tx store.Tx, key, want, got []byte) error {
		if writes++; writes > 2*rc.limit {
			t.Fatalf("a part of %d has %d keys", rc.limit, writes)
		}
		return write(tx, key, want, got)
	}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
}

// comparedRange compares what was written with its source, and then with one changed record.
func comparedRange(t *rapid.T, rc *rangeCopy, from, to *mem.Store, want map[string]string) {
	differing := func(of store.Store) (keys []string) {
		err := from.View(t.Context(), func(source store.Tx) error {
			return rc.each(t.Context(), within(source), of.View, func(_ store.Tx, key, want, got []byte) error {
				if want == nil || got == nil || string(want) != string(got) {
					keys = append(keys, string(key))
				}
				return nil
			}, func(int) {})
		})
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	if keys := differing(to); len(keys) > 0 {
		t.Fatalf("what was written differs in %q", keys)
	}
	changed, key := maps.Clone(want), rapid.StringMatching(`[bc][x-z]?`).Draw(t, "changed")
	if _, ok := changed[key]; ok && rapid.Bool().Draw(t, "lost") {
		delete(changed, key)
	} else {
		changed[key] += "!"
	}
	if keys := differing(storeOf(t, changed)); !cmp.Equal(keys, []string{key}) {
		t.Fatalf("%q is otherwise, and seen is %q", key, keys)
	}
}
