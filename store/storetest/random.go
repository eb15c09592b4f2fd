package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth/store"
)

// testModel runs random updates and views on the store and on a Model. Their results must be equal.
func testModel(t *testing.T, s store.Store) {
	rapid.Check(t, func(r *rapid.T) {
		wipe(r, s)
		m := NewModel()
		for range rapid.IntRange(1, 12).Draw(r, "transactions") {
			ops := rapid.SliceOfN(rapid.Custom(drawOp), 1, 25).Draw(r, "ops")
			fail := rapid.IntRange(0, 4).Draw(r, "fails") == 0
			got, want := runOps(s, ops, fail), runOps(m, ops, fail)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					r.Fatalf("op %d, %v:\n got %v\nwant %v", i, ops[min(i, len(ops)-1)], got[min(i, len(got)-1)],
						want[i])
				}
			}
			got, want = readAll(s), readAll(m)
			if !slices.Equal(got, want) {
				r.Fatalf("after %v\n got %v\nwant %v", ops, got, want)
			}
		}
	})
}

// op is one call of a Tx.
type op struct {
	kind string
	key  string
	size int
	r    store.Range
}

func (o op) String() string {
	if o.kind == "scan" {
		return fmt.Sprintf("scan %q..%q reverse=%t limit=%d", o.r.From, o.r.To, o.r.Reverse, o.r.Limit)
	}
	return fmt.Sprintf("%s %q (%d)", o.kind, o.key, o.size)
}

func drawKey(r *rapid.T, name string) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 'c', 0xff}), 1, 3).Draw(r, name))
}

func drawOp(r *rapid.T) op {
	o := op{kind: rapid.SampledFrom([]string{"put", "put", "delete", "get", "scan", "sweep"}).Draw(r, "kind"),
		key: drawKey(r, "key")}
	switch o.kind {
	case "put": // large values give a tree many pages
		o.size = rapid.SampledFrom([]int{0, 1, 100, 1500, 9000}).Draw(r, "size")
	case "scan", "sweep":
		if rapid.Bool().Draw(r, "from") {
			o.r.From = []byte(o.key)
		}
		if rapid.Bool().Draw(r, "to") {
			o.r.To = []byte(drawKey(r, "upper"))
		}
		o.r.Reverse = rapid.Bool().Draw(r, "reverse")
		o.r.Limit = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(r, "limit")
	}
	return o
}

// runOps runs ops in one update and returns their results.
func runOps(s store.Store, ops []op, fail bool) []string {
	var out []string
	failed := errors.New("fails")
	err := s.Update(context.Background(), func(tx store.Tx) error {
		out = out[:0]
		for i, o := range ops {
			out = append(out, o.run(tx, byte('A'+i)))
		}
		if fail {
			return failed
		}
		return nil
	})
	return append(out, fmt.Sprint(err))
}

func (o op) run(tx store.Tx, mark byte) string {
	switch o.kind {
	case "put":
		return fmt.Sprint(tx.Put([]byte(o.key), bytes.Repeat([]byte{mark}, o.size)))
	case "delete":
		return fmt.Sprint(tx.Delete([]byte(o.key)))
	case "get":
		v, err := tx.Get([]byte(o.key))
		return fmt.Sprint(v == nil, short(v), err)
	case "sweep": // deletes a whole range
		var keys [][]byte
		for rec, err := range tx.Scan(o.r) {
			if err != nil {
				return err.Error()
			}
			keys = append(keys, bytes.Clone(rec.Key))
		}
		for _, k := range keys {
			if err := tx.Delete(k); err != nil {
				return err.Error()
			}
		}
		return fmt.Sprint(len(keys))
	}
	return fmt.Sprint(scanAll(tx, o.r))
}

func short(v []byte) string {
	if len(v) > 4 {
		return fmt.Sprintf("%s..%d", v[:2], len(v))
	}
	return string(v)
}

func scanAll(tx store.Tx, r store.Range) []string {
	var out []string
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return append(out, err.Error())
		}
		out = append(out, fmt.Sprintf("%q=%s", rec.Key, short(rec.Value)))
	}
	return out
}

func readAll(s store.Store) []string {
	var out []string
	err := s.View(context.Background(), func(tx store.Tx) error {
		out = append(scanAll(tx, store.Range{}), scanAll(tx, store.Range{Reverse: true})...)
		return nil
	})
	return append(out, fmt.Sprint(err))
}

// wipe deletes everything.
func wipe(t interface {
	Fatalf(string, ...any)
}, s store.Store) {
	for more := true; more; {
		err := s.Update(context.Background(), func(tx store.Tx) error {
			more = false
			var keys [][]byte
			for rec, err := range tx.Scan(store.Range{Limit: store.MaxWrites}) {
				if err != nil {
					return err
				}
				keys = append(keys, bytes.Clone(rec.Key))
			}
			for _, k := range keys {
				more = true
				if err := tx.Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("wipe: %v", err)
		}
	}
}
