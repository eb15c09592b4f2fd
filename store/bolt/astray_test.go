package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"berth/store"
)

// taken lists the ways in which an open file ceases to be in its place.
var taken = []struct {
	name string
	take func(t *testing.T, path, copied string)
	says string
	kept bool // Save keeps the other file that is in the place
}{
	{"directory removed", func(t *testing.T, path, _ string) { must(t, os.RemoveAll(filepath.Dir(path))) },
		"no longer exists (it was removed)", false}, {"file " +
		"removed", func(t *testing.T, path, _ string) { must(t, os.Remove(path)) },
		"no longer exists (it was removed)", false}, {"file " +
		"moved", func(t *testing.T, path, _ string) { must(t, os.Rename(path, path+".away")) },
		"it was moved elsewhere", false},
	{"copy moved over it", func(t *testing.T, path, copied string) { must(t, os.Rename(copied, path)) },
		"is not the file that Berth has open, which was removed", true}, {"a link in its place", func(t *testing.T,
		path, _ string) {
		must(t, os.Rename(path, path+".away"))
		must(t, os.Symlink(path+".away", path))
	}, "is not the file that Berth has open", true},
}

// TestFileGone: if an open file was removed or exchanged, no write is acknowledged that the next start would not
// find. Its records can be read and backed up, and Save writes them to the file's place.
func TestFileGone(t *testing.T) {
	ctx := t.Context()
	for _, c := range taken {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "state", "berth.db")
			s := open(t, path)
			put(t, s, "old", "1")
			copied := filepath.Join(dir, "copy")
			must(t, s.Backup(ctx, copied))
			put(t, s, "new", "2")
			c.take(t, path, copied)

			err := s.Update(ctx, func(tx store.Tx) error { return tx.Put([]byte("lost"), []byte("3")) })
			if !errors.Is(err, store.ErrAstray) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "berth state save") {
				t.Fatalf("answered with %v; want a refusal that says %q", err, c.says)
			}
			if err := s.Update(ctx, func(store.Tx) error { return nil }); !errors.Is(err, store.ErrAstray) {
				t.Errorf("whoever asks whether writes are taken hears %v", err)
			}
			if report, err := s.Check(ctx); !errors.Is(err, store.ErrAstray) || report.Records != 2 ||
				len(report.Problems) != 1 {
				t.Errorf("Check: %+v, %v; want the two records and one problem", report, err)
			}
			backup := filepath.Join(dir, "backup")
			must(t, s.Backup(ctx, backup))
			wantRecords(t, backup, "", "old 1", "new 2")

			done, err := s.Save(ctx)
			if err != nil || done.Report.Records != 2 || done.Restart != nil || (done.Kept != "") != c.kept {
				t.Fatalf("Save: %+v, %v", done, err)
			}
			put(t, s, "after", "4")
			if get(t, s, "new") != "2" || get(t, s, "after") != "4" {
				t.Error("the store does not go on with what it held")
			}
			must(t, s.Close())
			wantRecords(t, path, s.ID(), "old 1", "new 2", "after 4")
		})
	}
}

// wantRecords opens a state or, if id is empty, a backup, and checks that it holds these records, "key value",
// and no others.
func wantRecords(t *testing.T, path, id string, want ...string) {
	t.Helper()
	if id == "" {
		place := filepath.Join(t.TempDir(), "berth.db")
		_, err := Restore(t.Context(), path, place, false)
		must(t, err)
		path = place
	}
	s := open(t, path)
	defer s.Close()
	if id != "" && s.ID() != id {
		t.Errorf("%s holds the store %s, not %s", path, s.ID(), id)
	}
	var n int
	must(t, s.View(t.Context(), func(tx store.Tx) error {
		for _, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	}))
	for _, w := range want {
		key, value, _ := strings.Cut(w, " ")
		if got := get(t, s, key); got != value {
			t.Errorf("%s: %s is %q, not %q", path, key, got, value)
		}
	}
	if n != len(want) {
		t.Errorf("%s holds %d records, not %d", path, n, len(want))
	}
}

// TestFileMovedBack: a file that was moved away and put back is used again, without an error.
func TestFileMovedBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	s := open(t, path)
	put(t, s, "a", "1")
	must(t, os.Rename(path, path+".away"))
	if err := s.Update(t.Context(), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrAstray) {
		t.Fatal(err)
	}
	must(t, os.Rename(path+".away", path))
	put(t, s, "b", "2")
	if _, err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Save(t.Context()); !errors.Is(err, ErrInPlace) {
		t.Errorf("Save of a store of which nothing is wrong: %v", err)
	}
}

// TestFileGoneInACommit: a commit into a file that is removed at the same moment is not acknowledged, and
// nothing more is written before the file was reopened.
func TestFileGoneInACommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "berth.db")
	s := open(t, path)
	put(t, s, "a", "1")
	undone := false
	err := s.Update(t.Context(), func(tx store.Tx) error {
		tx.OnAbort(func() { undone = true })
		must(t, os.RemoveAll(filepath.Dir(path)))
		return tx.Put([]byte("b"), []byte("2"))
	})
	if !errors.Is(err, store.ErrUnknown) || !errors.Is(err, store.ErrAstray) || !undone {
		t.Fatalf("answered with %v, hooks run: %v", err, undone)
	}
	done, err := s.Save(t.Context())
	if err != nil || !errors.Is(done.Restart, store.ErrUnknown) {
		t.Fatalf("Save: %+v, %v; want it to say that a start is needed", done, err)
	}
	if err := s.Update(t.Context(), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("afterwards: %v", err)
	}
	must(t, s.Close())
	wantRecords(t, path, s.ID(), "a 1", "b 2") // a write that was not acknowledged may be there
}

// TestSaveWhereAnotherBegan: Save does not touch a path that another process has begun to use.
func TestSaveWhereAnotherBegan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "berth.db")
	s := open(t, path)
	put(t, s, "a", "1")
	must(t, os.RemoveAll(filepath.Dir(path)))
	other := open(t, path)
	put(t, other, "b", "2")
	if _, err := s.Save(t.Context()); !errors.Is(err, store.ErrLocked) {
		t.Fatal(err)
	}
	put(t, other, "c", "3")
	must(t, other.Close())
	done, err := s.Save(t.Context())
	must(t, err)
	must(t, s.Close())
	wantRecords(t, path, s.ID(), "a 1")
	must(t, os.Remove(filepath.Join(filepath.Dir(path), "berth.id")))
	wantRecords(t, done.Kept, other.ID(), "b 2", "c 3")
}

// TestSaveUnderLoad: readers and writers continue during Save. Acknowledged writes are in the new file, and a
// reader that began before sees one state to its end.
func TestSaveUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "berth.db")
	s := open(t, path)
	put(t, s, "first", "0")
	began, release := make(chan struct{}), make(chan struct{})
	var reader, writers sync.WaitGroup
	reader.Go(func() {
		err := s.View(context.Background(), func(tx store.Tx) error {
			close(began)
			<-release
			if v, err := tx.Get([]byte("first")); string(v) != "0" || err != nil {
				return fmt.Errorf("read %q, %v", v, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-began
	acked := make([][]string, 4)
	refused := make(chan struct{}, 1)
	stop := make(chan struct{})
	for w := range acked {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%d/%06d", w, i)
				err := s.Update(context.Background(),
					func(tx store.Tx) error { return tx.Put([]byte(key), []byte("x")) })
				switch {
				case err == nil:
					acked[w] = append(acked[w], key+" x")
				case errors.Is(err, store.ErrAstray):
					select {
					case refused <- struct{}{}:
					default:
					}
				default:
					t.Errorf("%s: %v", key, err)
					return
				}
			}
		})
	}
	moved := path + ".away"
	// quietly: a commit during the rename would have an unknown outcome
	must(t, s.commit.quietly(t.Context(), func() error { return os.Rename(path, moved) }))
	<-refused
	_, err := s.Save(t.Context())
	close(stop)
	writers.Wait()
	close(release)
	reader.Wait()
	must(t, err)
	must(t, s.Close())
	want := []string{"first 0"}
	for _, keys := range acked {
		want = append(want, keys...)
	}
	wantRecords(t, path, s.ID(), want...)
}
