package record

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"berth/store"
)

// The form on disk does not change: these bytes were written by the first release.
func TestSealIsStable(t *testing.T) {
	if got := AppendSealed(nil, []byte("k"), []byte("v")); !bytes.Equal(got, []byte{1, 0x6e, 0xfe, 0x91, 0x64, 'v'}) {
		t.Errorf("% x", got)
	}
}

// Each flipped bit, each cut, and the value under another key is noticed.
func TestUnseal(t *testing.T) {
	key, value := []byte("some/key"), []byte("a value")
	sealed := AppendSealed([]byte("before")[:0], key, value)
	if got, err := Unseal(key, sealed); err != nil || !bytes.Equal(got, value) || cap(got) != len(got) {
		t.Fatalf("%q (%v)", got, err)
	}
	if got, err := Unseal(key, AppendSealed(nil, key, nil)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("an empty value: %v, %v", got, err)
	}
	wrong := func(key, stored []byte) {
		t.Helper()
		if got, err := Unseal(key, stored); !errors.Is(err, store.ErrCorrupt) ||
			!strings.Contains(err.Error(), Quote(key)) {
			t.Errorf("% x under %q: %q, %v", stored, key, got, err)
		}
	}
	for i := range sealed {
		for bit := range 8 {
			flipped := bytes.Clone(sealed)
			flipped[i] ^= 1 << bit
			wrong(key, flipped)
		}
		wrong(key, sealed[:i])
	}
	wrong([]byte("some/kez"), sealed)
	wrong([]byte("some/keya"), AppendSealed(nil, key, value))
	wrong(bytes.Repeat([]byte("long"), 100), sealed)
}

func TestRules(t *testing.T) {
	key := []byte("k")
	var r Rules
	for range store.MaxWrites / 2 {
		if err := errors.Join(r.Put(key, nil), r.Delete(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Delete(key); !errors.Is(err, store.ErrTooMany) || r.Failed != err || r.Count != store.MaxWrites {
		t.Errorf("%v, %+v", err, r)
	}
	for name, c := range map[string]struct {
		rules Rules
		key   []byte
		size  int
		want  error // nil: any
		fails bool  // the whole update
	}{
		"over":      {Rules{Over: true}, key, 0, ErrOver, false},
		"read-only": {Rules{ReadOnly: true}, key, 0, store.ErrReadOnly, false},
		"no key":    {Rules{}, nil, 0, nil, true},
		"long key":  {Rules{}, make([]byte, MaxKey+1), 0, nil, true},
		"too large": {Rules{}, key, store.MaxValue + 1, store.ErrTooLarge, true},
	} {
		err := c.rules.Put(c.key, make([]byte, c.size))
		if err == nil || c.want != nil && !errors.Is(err, c.want) || (c.rules.Failed != nil) != c.fails ||
			c.rules.Count != 0 {
			t.Errorf("%s: %v, %+v", name, err, c.rules)
		}
	}
	first := Rules{}
	one, two := first.Put(nil, nil), first.Put(key, make([]byte, store.MaxValue+1))
	if first.Failed != one || one == nil || two == nil {
		t.Errorf("the update fails with %v, not with its first refusal", first.Failed)
	}
}
