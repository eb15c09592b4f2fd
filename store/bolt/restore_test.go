package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/store"
)

// state creates a closed state with the record a=value.
func state(t *testing.T, value string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.db")
	s, err := Open(context.Background(), Config{Path: path})
	must(t, err)
	if value != "" {
		put(t, s, "a", value)
	}
	must(t, s.Close())
	return path
}

func backupOf(t *testing.T, path string) string {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: path})
	must(t, err)
	file := filepath.Join(t.TempDir(), "backup")
	must(t, s.Backup(context.Background(), file))
	must(t, s.Close())
	return file
}

func TestRestore(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, backup, own string) string // returns the state's path
		force   bool
		refused string // "" : it works
		kept    bool
	}{
		{"nothing there", func(t *testing.T, _,
			_ string) string {
			return filepath.Join(t.TempDir(), "new", "berth.db")
		}, false, "", false},
		{"an empty state of another store", func(t *testing.T, _, _ string) string { return state(t, "") }, false, "",
			true},
		{"a state with records", func(t *testing.T, _, _ string) string { return state(t, "now") }, false,
			"holds 1 records", false},
		{"a state with records, forced", func(t *testing.T, _, _ string) string { return state(t, "now") }, true, "",
			true},
		{"a damaged state", func(t *testing.T, _, own string) string { must(t, os.Truncate(own, 100)); return own },
			false, "cannot be read", false},
		{"a damaged state, forced",
			func(t *testing.T, _, own string) string { must(t, os.Truncate(own, 100)); return own }, true, "", true},
		{"the own state is gone", func(t *testing.T, _, own string) string { must(t, os.Remove(own)); return own },
			false, "", false},
		{"another state is gone", func(t *testing.T, _, _ string) string {
			path := state(t, "now")
			must(t, os.Remove(path))
			return path
		}, false, "belongs to the store", false},
		{"another state is gone, forced", func(t *testing.T, _, _ string) string {
			path := state(t, "now")
			must(t, os.Remove(path))
			return path
		}, true, "", false},
		{"a damaged backup", func(t *testing.T, backup, _ string) string {
			must(t, os.Truncate(backup, 9000))
			return state(t, "now")
		}, true, "nothing was changed", false},
		{"an empty backup", func(t *testing.T, backup, _ string) string {
			must(t, os.Truncate(backup, 0))
			return state(t, "now")
		}, true, "nothing was changed", false},
		{"no backup", func(t *testing.T, backup, _ string) string {
			must(t, os.Remove(backup))
			return state(t, "now")
		}, true, "open the backup", false},
		{"the state itself", func(t *testing.T, backup, own string) string {
			must(t, os.Remove(backup))
			must(t, os.Link(own, backup))
			return own
		}, true, "is the state itself", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := state(t, "backed up")
			backup := backupOf(t, own)
			path := c.prepare(t, backup, own)
			before, _ := os.ReadFile(path)
			r, err := restore(ctx, backup, path, c.force, now)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want %q", err, c.refused)
				}
				if after, _ := os.ReadFile(path); string(before) != string(after) {
					t.Error("the state was changed all the same")
				}
				return
			}
			must(t, err)
			if c.kept != (r.Kept == path+".2026-01-02T03-04-05.000Z") {
				t.Errorf("kept as %q", r.Kept)
			}
			if c.kept {
				if old, err := os.ReadFile(r.Kept); err != nil || string(old) != string(before) {
					t.Errorf("the old file was not kept as it was (%v)", err)
				}
			}
			if s := open(t, path); get(t, s, "a") != "backed up" || s.ID() != r.Report.ID {
				t.Error("the state is not the backup's")
			}
		})
	}
}

func TestRestoreOverALiveState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	backup := backupOf(t, state(t, "old"))
	path := state(t, "now")
	s := open(t, path)
	for _, force := range []bool{false, true} {
		_, err := Restore(ctx, backup, path, force)
		if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "process ") ||
			!strings.Contains(err.Error(), "stop it") {
			t.Errorf("forced %t: %v", force, err)
		}
	}
	if _, err := Restore(ctx, path, filepath.Join(t.TempDir(), "berth.db"), false); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a live state as the backup: %v", err)
	}
	if _, err := Check(ctx, path); !errors.Is(err, store.ErrLocked) {
		t.Errorf("Check of a live state: %v", err)
	}
	if get(t, s, "a") != "now" {
		t.Error("the live state was changed")
	}
}

func TestBackup(t *testing.T) {
	ctx := context.Background()
	s := open(t, filled(t))
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	must(t, os.WriteFile(taken, []byte("mine"), 0o600))
	if err := s.Backup(ctx, taken); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	if err := s.Backup(ctx, filepath.Join(dir, "no", "such")); err == nil {
		t.Error("into a directory that is not there")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Backup(ended, filepath.Join(dir, "ended")); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	// During updates, each backup is one whole state.
	for i := range 3 {
		file := filepath.Join(dir, string(rune('a'+i)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 20 {
				put(t, s, "left", string(rune('a'+n)), "right", string(rune('a'+n)))
			}
		}()
		must(t, s.Backup(ctx, file))
		<-done
		b := filepath.Join(t.TempDir(), "berth.db")
		_, err := Restore(ctx, file, b, false)
		must(t, err)
		if c := open(t, b); get(t, c, "left") != get(t, c, "right") || get(t, c, "lease/003999") == "" {
			t.Error("the backup is not one state")
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 4 {
		t.Errorf("files are left: %v", entries)
	}
}
