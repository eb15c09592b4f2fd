package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "berth.db")
	s := open(t, path)
	id := s.ID()
	for i := range 300 {
		put(t, s, fmt.Sprintf("k%06d", i), fmt.Sprintf("v%d", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Check(context.Background(), path); err != nil || r.Records != 300 {
		t.Fatalf("check: %+v, %v", r, err)
	}
	s = open(t, path)
	if s.ID() != id {
		t.Fatalf("id %s became %s", id, s.ID())
	}
	if got := get(t, s, "k000017"); got != "v17" {
		t.Fatalf("got %q", got)
	}
	if r, err := s.Check(context.Background()); err != nil || r.Records != 300 {
		t.Fatalf("check: %+v, %v", r, err)
	}
}

func TestSecondOpenNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	open(t, path)
	_, err := Open(context.Background(), Config{Path: path, LockTimeout: 1})
	if !errors.Is(err, store.ErrLocked) {
		t.Fatal(err)
	}
	t.Log(err)
}

func TestBackupRestore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "a", "berth.db"))
	put(t, s, "a", "1")
	file := filepath.Join(dir, "backup")
	if err := s.Backup(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(context.Background(), file, filepath.Join(dir, "b", "berth.db"), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	s2 := open(t, filepath.Join(dir, "b", "berth.db"))
	if get(t, s2, "a") != "1" || s2.ID() != s.ID() {
		t.Fatal("not the same")
	}
}
