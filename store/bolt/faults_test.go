package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/store"
	"berth/store/storetest"
)

// TestKilled repeatedly kills a process with 16 callers at work, on one state: no acknowledged write is lost.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	var runs []ran
	acked := 0
	for round := range 8 {
		n := 0
		r := runHelper(t, path, "16 9999", func(line string, c *exec.Cmd) {
			if n++; n == 10+97*round {
				must(t, c.Process.Kill())
			}
		})
		if !r.killed {
			t.Fatalf("round %d ended by itself: %q", round, r.lines[len(r.lines)-1])
		}
		acked += len(r.answer["ack"])
		runs = append(runs, r)
	}
	if found := wantWhole(t, path, runs...); found < acked || acked < 1000 {
		t.Errorf("%d found, %d acknowledged", found, acked)
	}
}

// TestKilledAtEachCall kills the process at the n-th system call of each kind that the store makes, from the
// creation of the state on: the state always opens again, with all acknowledged writes.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"openat", "flock", "pwrite64", "fdatasync", "fsync", "ftruncate", "/^rename", "mmap",
		"pread64", "/^mkdir"} {
		t.Run(strings.Trim(call, "/^"), func(t *testing.T) {
			t.Parallel()
			killed, drawn := 0, storetest.Drawn(t, 2)
			for _, when := range []int{1, 2, 3, 4, 6, 11} {
				if when > 1 && !drawn() {
					continue
				}
				path := filepath.Join(t.TempDir(), "state", "berth.db")
				r := runHelper(t, path, "4 5", nil, "-e", "trace="+call, "-e",
					fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, when))
				if r.killed {
					killed++
				}
				wantWhole(t, path, r)
			}
			if killed == 0 {
				t.Errorf("no call of %s was met", call)
			}
		})
	}
}

// TestFailingCalls: one system call fails. Acknowledged writes stay, and the answers to the callers are true.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	// the call, its error, which call fails, the verdict that must occur, and whether updates succeed after it
	for row := range strings.Lines(strings.TrimSpace(`
		fdatasync EIO 3 unknown
		fdatasync EIO 4 unknown
		pwrite64 EIO 10 unknown
		pwrite64 EIO 11 unknown
		pwrite64 ENOSPC 10 full goes-on
		pwrite64 ENOSPC 11 full goes-on
		pwrite64 EDQUOT 13 full goes-on
		pwrite64 ENOSPC 10+ full
		ftruncate ENOSPC 1 full goes-on
		ftruncate EFBIG 1 full goes-on
		ftruncate EIO 1 unknown
		fsync EIO 1 unknown
	`)) {
		c := strings.Fields(row)
		t.Run(strings.Join(c[:3], " "), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "berth.db")
			// The state is created first, so that the faults hit the store at work. strace counts the calls of each
			// thread.
			before := runHelper(t, path, "0 0", nil)
			r := runHelper(t, path, "4 60", nil, "-P", path, "-e", "trace="+c[0], "-e", "inject="+c[0]+":error="+
				c[1]+":when="+c[2])
			bad := len(r.answer[c[3]])
			if !r.opened || bad == 0 {
				t.Errorf("no caller heard %q: %q", c[3], r.lines)
			}
			last := strings.Fields(r.lines[len(r.lines)-1])[0]
			if (len(c) > 4) != (last == "ack") {
				t.Errorf("the last answer is %q", last)
			}
			wantWhole(t, path, before, r)
		})
	}
}

// TestFullDisk fills a small file system: a write that does not fit is refused and leaves nothing, reads
// continue, and with more room writes continue too, without reopening the store.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	defer func() { must(t, unix.Unmount(dir, 0)) }()
	path := filepath.Join(dir, "berth.db")
	now := time.Now()
	s, err := Open(context.Background(), Config{Path: path, Now: func() time.Time { return now }})
	must(t, err)
	must(t, s.Writable(context.Background()))
	var acked, full, undone int
	n := 0
	try := func() error {
		n++
		err := s.Update(context.Background(), func(tx store.Tx) error {
			tx.OnAbort(func() { undone++ })
			return tx.Put(fmt.Appendf(nil, "lease/%020d", n), []byte(strings.Repeat("v", 900)))
		})
		switch {
		case err == nil:
			acked++
		case errors.Is(err, store.ErrNoSpace):
			full++
		default:
			t.Fatal(err)
		}
		return err
	}
	count := func() (records int) {
		must(t, s.View(context.Background(), func(tx store.Tx) error {
			for _, err := range tx.Scan(store.Range{}) {
				if err != nil {
					return err
				}
				records++
			}
			return nil
		}))
		return records
	}
	for size := 2; size <= 4; size++ {
		for try() == nil {
		}
		for range 10 {
			_ = try()
		}
		if err := s.Writable(context.Background()); !errors.Is(err, store.ErrNoSpace) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("whoever asks on a full disk whether writes are taken hears %v", err)
		}
		if err := s.Backup(context.Background(), filepath.Join(dir, "backup")); !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("Backup to a full disk: %v", err)
		}
		if got := count(); got != acked || full != undone || full == 0 {
			t.Fatalf("%d records, %d acknowledged; %d refused, %d taken back", got, acked, full, undone)
		}
		must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, fmt.Sprintf("size=%dm", size)))
		if size%2 == 0 { // otherwise Writable is not called
			now = now.Add(roomEvery)
			if err := s.Writable(context.Background()); err != nil {
				t.Errorf("with more room it is not seen that writes are taken: %v", err)
			}
		}
		if err := try(); err != nil {
			t.Fatalf("with more room: %v", err)
		}
		must(t, s.Writable(context.Background()))
	}
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=16m")) // the check needs room for a copy
	if _, err := s.Check(context.Background()); err != nil {
		t.Error(err)
	}
	must(t, s.Close())
	if r, err := Check(context.Background(), path); err != nil || r.Records != acked {
		t.Errorf("%d records, %d acknowledged, %v", r.Records, acked, err)
	}
}

// TestFullDiskAtTheStart: without room no state is created; with room it is.
func TestFullDiskAtTheStart(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"))
	defer func() { must(t, unix.Unmount(dir, 0)) }()
	path := filepath.Join(dir, "berth.db")
	if _, err := Open(context.Background(), Config{Path: path}); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("Open on a full disk: %v", err)
	}
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=1m"))
	s, err := Open(context.Background(), Config{Path: path})
	must(t, err)
	must(t, s.Close())
}

// TestSecondProcess: the second process gets an error that names the first.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "berth.db")
	s := open(t, path)
	r := runHelper(t, path, "1 1", nil)
	want := fmt.Sprintf("in use by process %d (", os.Getpid())
	if r.exit != 3 || len(r.answer["open"]) != 1 || !strings.Contains(r.answer["open"][0], want) {
		t.Errorf("exit %d, %q; want %q", r.exit, r.lines, want)
	}
	must(t, s.Close())
	if r = runHelper(t, path, "1 1", nil); r.exit != 0 {
		t.Errorf("after it was closed: exit %d, %q", r.exit, r.lines)
	}
}
