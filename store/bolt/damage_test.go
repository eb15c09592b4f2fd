package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"berth/store"
	"berth/store/internal/record"
)

// filled makes a closed state with many pages, and returns its path.
func filled(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.db")
	s, err := Open(context.Background(), Config{Path: path, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 4 {
		err := s.Update(context.Background(), func(tx store.Tx) error {
			for i := range 1000 {
				key := fmt.Appendf(nil, "lease/%06d", round*1000+i)
				if err := tx.Put(key, []byte(strings.Repeat("v", 100))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func truncateTo(size int64) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.Truncate(path, size)) }
}

// scribble writes random bytes at an offset.
func scribble(at int64, n int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		b := make([]byte, n)
		r := rand.New(rand.NewPCG(1, uint64(at)))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		_, err = f.WriteAt(b, at)
		must(t, err)
	}
}

func both(fns ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		for _, fn := range fns {
			fn(t, path)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setMetaRecord writes one entry of the meta bucket.
func setMetaRecord(key []byte, value string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		db, err := bbolt.Open(path, 0o600, nil)
		must(t, err)
		must(t, db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(key, record.AppendSealed(nil, key, []byte(value)))
		}))
		must(t, db.Close())
	}
}

func foreignBolt(t *testing.T, path string) {
	must(t, os.Remove(path))
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }))
	must(t, db.Close())
}

func exchanged(t *testing.T, path string) {
	must(t, os.Rename(filled(t), path))
}

// pageOf finds a page of a kind whose following page's kind satisfies next, and writes n at an offset in it.
func pageOf(kind string, next func(kind string) bool, at int64, n uint32) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
		must(t, err)
		found := int64(0)
		must(t, db.View(func(tx *bbolt.Tx) error {
			for id := 2; found == 0; id++ {
				p, err := tx.Page(id)
				if p == nil || err != nil {
					return fmt.Errorf("there is no such page: %w", err)
				}
				behind := ""
				if q, _ := tx.Page(id + 1); q != nil {
					behind = q.Type
				}
				if p.Type == kind && next(behind) {
					found = int64(id)
				}
			}
			return nil
		}))
		must(t, db.Close())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		_, err = f.WriteAt(order.AppendUint32(nil, n), found*4096+at)
		must(t, err)
	}
}

func anyKind(string) bool { return true }

// damages is the table of faults.md: a damage to a closed state, and what Open must say.
var damages = []struct {
	name   string
	damage func(*testing.T, string)
	says   string // split at "; "
}{
	{"0 bytes", truncateTo(0), "is empty (0 bytes); berth state restore"},
	{"cut to 1 byte", truncateTo(1), "not a Berth state; berth state restore"},
	{"cut to 4 KiB", truncateTo(4 << 10), "berth state restore"},
	{"cut to 8 KiB", truncateTo(8 << 10), "was cut short; berth state restore"},
	{"cut to 12 KiB", truncateTo(12 << 10), "was cut short; berth state restore"},
	{"cut to 16 KiB", truncateTo(16 << 10), "was cut short; berth state restore"},
	{"cut to 100 KiB", truncateTo(100 << 10), "was cut short; berth state restore"},
	{"meta page 0", scribble(16, 64), "meta page 0; last commit may be gone; berth state restore; --repair"},
	{"meta page 1", scribble(4096+16, 64),
		"meta page 1; last commit may be gone; berth state restore; --repair"},
	{"both meta pages", both(scribble(16, 64), scribble(4096+16, 64)),
		"beginning was overwritten; berth state restore"},
	{"not bbolt", func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte(strings.Repeat("PNG?", 20000)), 0o600))
	}, "not a Berth state; berth state restore"},
	{"bbolt of somebody else", foreignBolt, "not a Berth state; berth state restore"},
	{"a directory", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, 0o700))
	}, "is a directory"},
	{"gone", func(t *testing.T, path string) { must(t, os.Remove(path)) }, "is gone; berth state restore"},
	{"exchanged", exchanged, "was replaced; berth state restore"},
	{"newer format", setMetaRecord(keyFormat, "2"), "has the format 2; newer Berth"},
	{"no format", setMetaRecord(keyFormat, "x"), "format version is missing; berth state restore"},
	{"no id", setMetaRecord(keyID, ""), "store id is missing; berth state restore"},
	{"id file is garbage", func(t *testing.T, path string) {
		must(t, os.WriteFile(strings.TrimSuffix(path, ".db")+".id", []byte("garbage"), 0o600))
	}, "does not hold a store id"},
	// bbolt's own check finds none of these four.
	{"a page that reaches into a free one", pageOf("leaf", func(kind string) bool { return kind == free }, 12, 1),
		"is both free and in use; berth state restore"},
	{"a page that reaches out of the file", pageOf("leaf", anyKind, 12, 1<<30),
		"extends beyond the end of the file; berth state restore"},
	{"an entry that reaches out of its page", pageOf("branch", anyKind, pageHeader+4, 5000),
		"has an entry that extends beyond the page; berth state restore"},
	{"a list of free pages that is too long", pageOf("freelist", anyKind, 8, 500<<16|0x10),
		"the list of free pages has 500 entries; berth state restore"},
	{"one flipped bit in a record", func(t *testing.T, path string) {
		b, err := os.ReadFile(path)
		must(t, err)
		for at := strings.Index(string(b), "lease/000500"); at >= 0 && at < len(b); {
			b[at+40] ^= 1
			next := strings.Index(string(b[at+1:]), "lease/000500") // free pages have older copies
			if next < 0 {
				break
			}
			at += next + 1
		}
		must(t, os.WriteFile(path, b, 0o600))
	}, `record "lease/000500" is damaged; berth state restore`},
}

func TestDamage(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			path := filled(t)
			c.damage(t, path)
			wantRefused(t, path, c.says)
			if _, err := Check(context.Background(), path); err == nil {
				t.Error("Check finds nothing")
			}
			wantRefused(t, path, c.says) // the refusal changed nothing
		})
	}
}

func wantRefused(t *testing.T, path, says string) {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: path})
	if err == nil {
		_ = s.Close()
		t.Fatal("the damaged state was opened")
	}
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("the error does not wrap ErrCorrupt: %v", err)
	}
	for _, say := range append(strings.Split(says, "; "), filepath.Dir(path)) {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("the error does not say %q: %v", say, err)
		}
	}
}

// TestDamagedPages overwrites each page in turn: the check must find damage in each used page, and in no free
// page.
func TestDamagedPages(t *testing.T) {
	path := filled(t)
	whole, err := os.ReadFile(path)
	must(t, err)
	report, err := Check(context.Background(), path)
	must(t, err)
	if report.Pages < 100 {
		t.Fatalf("only %d pages", report.Pages)
	}
	found := 0
	for page := 2; page < report.Pages; page++ {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		scribble(int64(page)*4096, 4096)(t, path)
		if _, err := checkFile(context.Background(), path, f); errors.Is(err, store.ErrCorrupt) {
			found++
		} else if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(whole[page*4096:(page+1)*4096], int64(page)*4096)
		must(t, err)
		must(t, f.Close())
	}
	if used := report.Pages - 2 - report.Free; found != used {
		t.Errorf("%d of %d damaged pages were found", found, used)
	}
	if s, err := Open(context.Background(), Config{Path: path}); err != nil {
		t.Errorf("the file as it was is refused: %v", err)
	} else {
		must(t, s.Close())
	}
}

// FuzzCheck damages a small state at random: the check must end without a panic, and bbolt must open what passes
// it.
func FuzzCheck(f *testing.F) {
	path := filepath.Join(f.TempDir(), "berth.db")
	s, err := Open(context.Background(), Config{Path: path, NoSync: true})
	must(f, err)
	for i := range 40 {
		put(f, s, fmt.Sprintf("key%03d", i), strings.Repeat("v", 200))
	}
	must(f, s.Close())
	whole, err := os.ReadFile(path)
	must(f, err)
	f.Add(uint16(4096), []byte{1}, uint16(8200), []byte{0xff, 0xff})
	f.Add(uint16(8192+8), []byte{1, 0, 1}, uint16(3*4096+16), []byte{0xff})
	f.Fuzz(func(t *testing.T, at1 uint16, b1 []byte, at2 uint16, b2 []byte) {
		b := append([]byte(nil), whole...)
		copy(b[int(at1)%len(b):], b1)
		copy(b[int(at2)%len(b):], b2)
		path := filepath.Join(t.TempDir(), "damaged.db")
		must(t, os.WriteFile(path, b, 0o600))
		if _, err := checkPath(context.Background(), path); err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("neither passed nor ErrCorrupt: %v", err)
		}
	})
}

// TestChildFails: if the process that checks a file does not finish, the file is refused or not checked.
func TestChildFails(t *testing.T) {
	ctx, path := context.Background(), filled(t)
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	if r, err := runChild(ctx, path, f, time.Nanosecond); err != nil || len(r.Problems) != 1 ||
		!strings.Contains(r.Problems[0], "did not end within 1ns") {
		t.Errorf("out of time: %v, %v", r.Problems, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := runChild(ended, path, f, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("not wanted any more: %v", err)
	}
	short, err := os.Create(filepath.Join(t.TempDir(), "short"))
	must(t, err)
	defer short.Close()
	_, err = io.CopyN(short, f, 8192)
	must(t, err)
	if r, err := runChild(ctx, path, short, time.Minute); err != nil || len(r.Problems) != 1 ||
		!strings.Contains(r.Problems[0], "bbolt crashes when it reads the file: ") {
		t.Errorf("a file on which bbolt faults: %v, %v", r.Problems, err)
	}
}

// TestInterruptedCreation interrupts the creation of a state at each of its steps.
func TestInterruptedCreation(t *testing.T) {
	ctx := context.Background()
	for name, cut := range map[string]func(t *testing.T, f files){
		"only the lock file":      func(t *testing.T, f files) { must(t, os.WriteFile(f.lock, nil, 0o600)) },
		"an empty temporary file": func(t *testing.T, f files) { must(t, os.WriteFile(f.temp, nil, 0o600)) },
		"half a temporary file": func(t *testing.T, f files) {
			must(t, os.WriteFile(f.temp, make([]byte, 9000), 0o600))
		},
		"a whole temporary file": func(t *testing.T, f files) {
			must(t, writeEmpty(f.temp, strings.Repeat("ab", 16), true))
		},
		"no id": func(t *testing.T, f files) { must(t, f.create(true)) },
		"a temporary file of the id": func(t *testing.T, f files) {
			must(t, errors.Join(f.create(true), os.WriteFile(f.id+".new", nil, 0o600)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := newFiles(filepath.Join(t.TempDir(), "berth.db"))
			must(t, err)
			cut(t, f)
			s, err := Open(ctx, Config{Path: f.db})
			must(t, err)
			put(t, s, "a", "1")
			must(t, s.Close())
			s, err = Open(ctx, Config{Path: f.db})
			must(t, err)
			if get(t, s, "a") != "1" {
				t.Error("the record is gone")
			}
			must(t, s.Close())
			for _, p := range []string{f.db, f.id, f.lock} {
				if info, err := os.Stat(p); err != nil || info.Mode() != 0o600 {
					t.Errorf("%s: %v, %v", p, info, err)
				}
			}
		})
	}
}

// TestCutUnderAnOpenStore truncates the file of a running store: reading missing data is an error, not a crash.
func TestCutUnderAnOpenStore(t *testing.T) {
	path := filled(t)
	s := open(t, path)
	must(t, os.Truncate(path, 16<<10))
	read := func(tx store.Tx) error {
		for _, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.View(context.Background(), read); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("View: %v", err)
	}
	if err := s.Update(context.Background(), read); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Update that reads: %v", err)
	}
	write := func(tx store.Tx) error { return tx.Put([]byte("lease/000001"), nil) }
	for range 2 {
		if err := s.Update(context.Background(), write); !errors.Is(err, store.ErrCorrupt) &&
			!errors.Is(err, store.ErrUnknown) {
			t.Errorf("Update that writes: %v", err)
		}
	}
	if _, err := s.Check(context.Background()); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Check: %v", err)
	}
}

func TestRepair(t *testing.T) {
	ctx := context.Background()
	for _, page := range []int64{0, 1} {
		path := filled(t)
		scribble(page*4096+16, 64)(t, path)
		r, err := Repair(ctx, path)
		must(t, err)
		if r.Kept == "" || r.Report.Records == 0 {
			t.Errorf("repaired: %+v", r)
		}
		s, err := Open(ctx, Config{Path: path})
		must(t, err)
		put(t, s, "after", "1")
		put(t, s, "after", "2")
		must(t, s.Close())
		if _, err := Check(ctx, path); err != nil {
			t.Error(err)
		}
	}
	path := filled(t)
	scribble(16, 5000)(t, path)
	if _, err := Repair(ctx, path); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("what cannot be repaired: %v", err)
	}
	if _, err := Repair(ctx, filled(t)); err != nil {
		t.Errorf("a whole file: %v", err)
	}
}
