package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"berth/store"
)

func testValues(t *testing.T, s store.Store) {
	update(t, s, puts("a=1", "empty=", "\x00\xff=\xff\x00"))
	view(t, s, func(tx store.Tx) error {
		for _, c := range []struct {
			key  string
			want []byte // nil: missing
		}{
			{"a", []byte("1")}, {"empty", []byte{}}, {"\x00\xff", []byte("\xff\x00")},
			{"b", nil}, {"A", nil}, {"aa", nil}, {"", nil}, {"\x00", nil},
		} {
			got, err := tx.Get([]byte(c.key))
			if err != nil || !bytes.Equal(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("Get(%q) = %v, %v; want %v", c.key, got, err, c.want)
			}
		}
		return nil
	})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Delete([]byte("a")), tx.Delete([]byte("never was")), tx.Put([]byte("empty"), []byte("x")))
	})
	wantAll(t, s, "\x00\xff=\xff\x00 empty=x")
	update(t, s, func(tx store.Tx) error { return nil })
	wantAll(t, s, "\x00\xff=\xff\x00 empty=x")
}

func testReadYourWrites(t *testing.T, s store.Store) {
	update(t, s, puts("a=1", "b=2", "c=3"))
	update(t, s, func(tx store.Tx) error {
		step := func(err error, want string) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			wantList(t, tx, store.Range{}, want)
		}
		step(tx.Put([]byte("b"), []byte("new")), "a=1 b=new c=3")
		step(tx.Delete([]byte("a")), "b=new c=3")
		step(tx.Put([]byte("d"), nil), "b=new c=3 d=")
		step(tx.Put([]byte("a"), []byte("again")), "a=again b=new c=3 d=")
		step(tx.Delete([]byte("d")), "a=again b=new c=3")
		for key, want := range map[string][]byte{"a": []byte("again"), "b": []byte("new"), "c": []byte("3"), "d": nil} {
			got, err := tx.Get([]byte(key))
			if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("Get(%q) = %q, %v; want %q", key, got, err, want)
			}
		}
		return nil
	})
	wantAll(t, s, "a=again b=new c=3")
}

// scans are ranges and what they yield of the keys a, ab, b, c, c\xff, c\xff\xff and d, each with the value v. A ~ is
// \xff.
const scans = `
	-> a ab b c c~ c~~ d
	reverse -> d c~~ c~ c b ab a
	limit=2 -> a ab
	limit=2 reverse -> d c~~
	limit=100 -> a ab b c c~ c~~ d
	from=ab -> ab b c c~ c~~ d
	from=aa to=c -> ab b
	from=aa to=c reverse -> b ab
	from=aa to=c reverse limit=1 -> b
	to=ab -> a
	to=ab reverse -> a
	to=zzz reverse limit=1 -> d
	from=zzz ->
	from=zzz reverse ->
	to=a ->
	to=a reverse ->
	from=b to=b ->
	from=c to=b ->
	from=c to=b reverse ->
	from= -> a ab b c c~ c~~ d
	to= ->
	to= reverse ->
	prefix=a -> a ab
	prefix=c~ -> c~ c~~
	prefix=c~~ -> c~~
	prefix=~ ->
	prefix= -> a ab b c c~ c~~ d
`

// rangeOf reads a range of a table.
func rangeOf(text string) (r store.Range) {
	for word := range strings.FieldsSeq(text) {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "from":
			r.From = []byte(value)
		case "to":
			r.To = []byte(value)
		case "limit":
			r.Limit, _ = strconv.Atoi(value)
		case "reverse":
			r.Reverse = true
		case "prefix":
			r = store.Prefix([]byte(value))
		}
	}
	return r
}

var scanKeys = []string{"a", "ab", "b", "c", "c\xff", "c\xff\xff", "d"}

func wantScans(t *testing.T, tx store.Tx) {
	t.Helper()
	for row := range strings.Lines(strings.TrimSpace(strings.ReplaceAll(scans, "~", "\xff"))) {
		asked, want, _ := strings.Cut(strings.TrimSpace(row), "->")
		keys := ""
		for rec, err := range tx.Scan(rangeOf(asked)) {
			if err != nil {
				t.Fatal(err)
			}
			if string(rec.Value) != "v" {
				t.Errorf("the value of %q is %q", rec.Key, rec.Value)
			}
			keys += " " + string(rec.Key)
		}
		if keys != want {
			t.Errorf("Scan %q\n got %q\nwant %q", asked, keys, want)
		}
	}
}

func testScan(t *testing.T, s store.Store) {
	wantAll(t, s, "")
	view(t, s, func(tx store.Tx) error { wantList(t, tx, store.Range{Reverse: true}, ""); return nil })
	update(t, s, func(tx store.Tx) error {
		for _, k := range scanKeys {
			if err := tx.Put([]byte(k), []byte("v")); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, s, func(tx store.Tx) error { wantScans(t, tx); return nil })
	view(t, s, func(tx store.Tx) error { // stopped early, nested, and started twice
		seq := tx.Scan(store.Range{From: []byte("b")})
		for range 2 {
			n := 0
			for rec, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				wantList(t, tx, store.Range{Limit: 1}, "a=v")
				if string(rec.Key) != []string{"b", "c"}[n] {
					t.Errorf("record %d is %q", n, rec.Key)
				}
				if n++; n == 2 {
					break
				}
			}
		}
		return nil
	})
}

// testScanOverWrites tries all combinations of stored and just written records in one range.
func testScanOverWrites(t *testing.T, s store.Store) {
	var state string
	for n := range 1 << len(scanKeys) {
		// stored: the keys whose bit is 0, an outdated value, and an extra key
		update(t, s, func(tx store.Tx) error {
			for i, k := range scanKeys {
				var err error
				switch {
				case n>>i&1 == 0:
					err = tx.Put([]byte(k), []byte("v"))
				case i%2 == 0:
					err = tx.Put([]byte(k), []byte("stale"))
				default:
					err = tx.Delete([]byte(k))
				}
				if err != nil {
					return err
				}
			}
			return tx.Put([]byte("bb"), []byte("too many"))
		})
		undone := errors.New("undone")
		err := s.Update(context.Background(), func(tx store.Tx) error {
			if err := tx.Delete([]byte("bb")); err != nil {
				return err
			}
			for i := len(scanKeys) - 1; i >= 0; i-- {
				if n>>i&1 == 1 {
					if err := tx.Put([]byte(scanKeys[i]), []byte("v")); err != nil {
						return err
					}
				}
			}
			wantScans(t, tx)
			return undone
		})
		if !errors.Is(err, undone) {
			t.Fatal(err)
		}
		view(t, s, func(tx store.Tx) error {
			var err error
			state, err = list(tx, store.Prefix([]byte("bb")))
			return err
		})
		if state != "bb=too many" {
			t.Fatalf("after a failed update: %q", state)
		}
		if t.Failed() {
			t.Fatalf("with the writes %b", n)
		}
	}
}

// testScanBesideWrites scans a range while the function writes outside of it, however much of the tree moves.
func testScanBesideWrites(t *testing.T, s store.Store) {
	const n = 300
	for _, reverse := range []bool{false, true} {
		update(t, s, func(tx store.Tx) error {
			for i := range n { // in the same update, so that the tree is its own
				if err := puts(fmt.Sprintf("m%03d", i))(tx); err != nil {
					return err
				}
			}
			i := 0
			for rec, err := range tx.Scan(store.Range{From: []byte("m"), To: []byte("n"), Reverse: reverse}) {
				want := i
				if reverse {
					want = n - 1 - i
				}
				if i++; err != nil || string(rec.Key) != fmt.Sprintf("m%03d", want) {
					t.Fatalf("record %d of %d (reverse: %t) is %q, %v", i, n, reverse, rec.Key, err)
				}
				if err := puts("a"+string(rec.Key), "z"+string(rec.Key))(tx); err != nil {
					return err
				}
			}
			if i != n {
				t.Errorf("%d records of %d (reverse: %t)", i, n, reverse)
			}
			return nil
		})
	}
}

// testReuse reuses the slices that it passed in, and keeps the returned ones until the function ends. It appends to
// those, which must not reach another record.
func testReuse(t *testing.T, s store.Store) {
	update(t, s, func(tx store.Tx) error {
		key, value := []byte("k0"), []byte("v0")
		for i := range 10 {
			key[1], value[1] = byte('0'+i), byte('0'+i)
			if err := tx.Put(key, value); err != nil {
				return err
			}
		}
		key[1] = '5'
		err := tx.Delete(key)
		key[1] = 'x'
		return err
	})
	wantAll(t, s, "k0=v0 k1=v1 k2=v2 k3=v3 k4=v4 k6=v6 k7=v7 k8=v8 k9=v9")
	update(t, s, func(tx store.Tx) error {
		held, err := tx.Get([]byte("k1"))
		if err != nil {
			return err
		}
		_ = append(held, "more"...)
		var keys [][]byte
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			keys = append(keys, rec.Key)
			_, _ = append(rec.Key, "more"...), append(rec.Value, "more"...)
		}
		wantList(t, tx, store.Range{}, "k0=v0 k1=v1 k2=v2 k3=v3 k4=v4 k6=v6 k7=v7 k8=v8 k9=v9")
		if err := errors.Join(tx.Put([]byte("k1"), []byte("other")), tx.Delete([]byte("k2"))); err != nil {
			return err
		}
		own, err := tx.Get([]byte("k1"))
		if err != nil {
			return err
		}
		if err := tx.Put([]byte("k1"), []byte("third")); err != nil {
			return err
		}
		if string(held) != "v1" || string(own) != "other" || string(keys[2]) != "k2" {
			t.Errorf("slices changed under the function: %q %q %q", held, own, keys[2])
		}
		return nil
	})
}

func testReadOnly(t *testing.T, s store.Store) {
	update(t, s, puts("a=1"))
	view(t, s, func(tx store.Tx) error {
		if err := tx.Put([]byte("a"), []byte("2")); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("Put in a View: %v", err)
		}
		if err := tx.Delete([]byte("a")); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("Delete in a View: %v", err)
		}
		tx.OnAbort(func() { t.Error("a View has nothing to take back") })
		return nil
	})
	wanted := errors.New("wanted")
	if err := s.View(context.Background(), func(store.Tx) error { return wanted }); err != wanted {
		t.Errorf("View answers %v, not its function's error", err)
	}
	wantAll(t, s, "a=1")
}

// testRefusals checks that a refused write fails the update even if its function ignores the error.
func testRefusals(t *testing.T, s store.Store) {
	for _, key := range [][]byte{nil, bytes.Repeat([]byte("k"), 5000)} {
		err := s.Update(context.Background(), func(tx store.Tx) error {
			if tx.Put(key, []byte("v")) == nil {
				t.Errorf("a key of %d bytes was taken", len(key))
			}
			return tx.Put([]byte("a"), []byte("1"))
		})
		if err == nil {
			t.Error("the update succeeded without one of its writes")
		}
	}
	wantAll(t, s, "")
}

func testMaxValue(t *testing.T, s store.Store) {
	put := func(n int) error {
		return s.Update(context.Background(), func(tx store.Tx) error { return tx.Put([]byte("k"), make([]byte, n)) })
	}
	if err := put(store.MaxValue + 1); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a value of more than MaxValue bytes: %v", err)
	}
	wantAll(t, s, "")
	if err := put(store.MaxValue); err != nil {
		t.Errorf("a value of MaxValue bytes was refused: %v", err)
	}
}

func testMaxWrites(t *testing.T, s store.Store) {
	write := func(n int) error {
		return s.Update(context.Background(), func(tx store.Tx) error {
			for i := range n {
				if err := tx.Put(fmt.Appendf(nil, "k%05d", i*7919%n), []byte("v")); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := write(store.MaxWrites + 1); !errors.Is(err, store.ErrTooMany) {
		t.Errorf("more than MaxWrites writes: %v", err)
	}
	wantAll(t, s, "")
	if err := write(store.MaxWrites); err != nil {
		t.Errorf("MaxWrites writes were refused: %v", err)
	}
	n := 0
	view(t, s, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			if string(rec.Key) != fmt.Sprintf("k%05d", n) {
				t.Fatalf("record %d is %q", n, rec.Key)
			}
			n++
		}
		return nil
	})
	if n != store.MaxWrites {
		t.Errorf("%d records", n)
	}
}

// testOver uses a transaction after its function has returned. That must be an error and cause no damage.
func testOver(t *testing.T, s store.Store) {
	update(t, s, puts("a=1"))
	var kept []store.Tx
	keep := func(tx store.Tx) error { kept = append(kept, tx); return nil }
	view(t, s, keep)
	update(t, s, keep)
	for i, tx := range kept {
		if _, err := tx.Get([]byte("a")); err == nil {
			t.Errorf("%d: Get works", i)
		}
		if err := tx.Put([]byte("a"), nil); err == nil {
			t.Errorf("%d: Put works", i)
		}
		if err := tx.Delete([]byte("a")); err == nil {
			t.Errorf("%d: Delete works", i)
		}
		if _, err := list(tx, store.Range{}); err == nil {
			t.Errorf("%d: Scan works", i)
		}
	}
	wantAll(t, s, "a=1")
}
