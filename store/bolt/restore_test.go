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

// TestRestore: a row has the state that a backup is restored over, what befalls it and the backup, and the refusal, or
// whether the old file is kept.
func TestRestore(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for row := range strings.Lines(strings.TrimSpace(`
		nothing there | new
		an empty state of another store | empty | kept
		a state with records | other | holds 1 records
		a state with records, forced | other force | kept
		a damaged state | own cut | cannot be read
		a damaged state, forced | own cut force | kept
		the own state is gone | own gone
		another state is gone | other gone | belongs to the store
		another state is gone, forced | other gone force
		a damaged backup | other force backup-cut | nothing was changed
		an empty backup | other force backup-empty | nothing was changed
		no backup | other force backup-gone | open the backup
		the state itself | own force backup-linked | is the state itself
	`)) {
		c := strings.Split(strings.TrimSpace(row)+" | ", " | ")
		t.Run(c[0], func(t *testing.T) {
			path, force := state(t, "backed up"), false
			backup := backupOf(t, path)
			for word := range strings.FieldsSeq(c[1]) {
				switch word {
				case "new":
					path = filepath.Join(t.TempDir(), "new", "berth.db")
				case "empty":
					path = state(t, "")
				case "other":
					path = state(t, "now")
				case "cut":
					must(t, os.Truncate(path, 100))
				case "gone":
					must(t, os.Remove(path))
				case "force":
					force = true
				case "backup-cut":
					must(t, os.Truncate(backup, 9000))
				case "backup-empty":
					must(t, os.Truncate(backup, 0))
				case "backup-gone":
					must(t, os.Remove(backup))
				case "backup-linked":
					must(t, errors.Join(os.Remove(backup), os.Link(path, backup)))
				}
			}
			before, _ := os.ReadFile(path)
			r, err := restore(ctx, backup, path, force, now)
			kept := c[2] == "kept"
			if c[2] != "" && !kept {
				if err == nil || !strings.Contains(err.Error(), c[2]) {
					t.Errorf("got %v, want %q", err, c[2])
				}
				if after, _ := os.ReadFile(path); string(before) != string(after) {
					t.Error("the state was changed all the same")
				}
				return
			}
			must(t, err)
			if kept != (r.Kept == path+".2026-01-02T03-04-05.000Z") {
				t.Errorf("kept as %q", r.Kept)
			}
			if kept {
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
			!strings.Contains(err.Error(), "stop that process") {
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
