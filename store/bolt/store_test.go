package bolt

import (
	"context"
	"errors"
	"testing"

	"berth/store"
)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func put(t testing.TB, s store.Store, kv ...string) {
	t.Helper()
	err := s.Update(context.Background(), func(tx store.Tx) error {
		for i := 0; i < len(kv); i += 2 {
			if err := tx.Put([]byte(kv[i]), []byte(kv[i+1])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s store.Store, key string) string {
	t.Helper()
	var v []byte
	err := s.View(context.Background(), func(tx store.Tx) error {
		b, err := tx.Get([]byte(key))
		v = append(v, b...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}
