package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth/store"
)

// acquire locks berth.lock and writes this process's name to it. The kernel releases the lock when the process ends in
// any way; the file stays. It is separate from the state's file, so that a restore can replace that one under the lock.
func (f files) acquire(ctx context.Context, wait time.Duration, now time.Time) (*os.File, error) {
	l, err := openPlain(f.lock, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("lock the state: %w", err)
	}
	if err := f.checkLock(l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := flock(ctx, l, wait); err != nil {
		_ = l.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, lockedError(f.db, f.lock, f.holderNote())
		}
		return nil, fmt.Errorf("lock %s: %w", f.lock, err)
	}
	note := fmt.Sprintf("process %d (%s), started %s\n", os.Getpid(), ownCommand(), now.UTC().Format(time.RFC3339))
	err = errors.Join(l.Truncate(0), func() error { _, err := l.WriteAt([]byte(note), 0); return err }())
	if err != nil && !isNoSpace(err) { // the note is not essential: a full disk must not prevent reading
		_ = l.Close()
		return nil, fmt.Errorf("write %s: %w", f.lock, err)
	}
	return l, nil
}

// checkLock refuses a lock file that may also be another file, for example through a hard link, because it is written
// to.
func (f files) checkLock(l *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(l.Fd()), &st); err != nil {
		return fmt.Errorf("lock %s: %w", f.lock, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 {
		return fmt.Errorf("%s is not a lock file of Berth, or has a second name elsewhere: remove it",
			f.lock)
	}
	return nil
}

// flock takes the lock, and retries for the time of wait.
func flock(ctx context.Context, l *os.File, wait time.Duration) error {
	const pause = 20 * time.Millisecond
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// holderNote returns what the holder has written about itself in the lock file.
func (f files) holderNote() string {
	b, err := os.ReadFile(f.lock)
	if err != nil || len(b) > 4096 {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(b)), "?")
}

// lockedError names the process that holds the lock on the file locked. note is that process's own text. It is used if
// the kernel does not show the process, because it is in another pid namespace.
func lockedError(state, locked, note string) error {
	who := "another process"
	if pid := lockHolder(locked); pid > 0 {
		who = fmt.Sprintf("process %d (%s)", pid, commandOf(pid))
	} else if note != "" {
		who = note + " (in another pid namespace, where it has this number)"
	}
	return fmt.Errorf("%w: the state %s is in use by %s: stop that process, or give this command another --state",
		store.ErrLocked, state, who)
}

// lockHolder finds the process that holds a flock on path in /proc/locks, or returns 0. The device number there can
// differ from stat's, for example with overlayfs. So it compares inodes and, if visible, the process's open files.
func lockHolder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	for _, pid := range flockPids(b, st.Ino) {
		if hasOpen(pid, info) {
			return pid
		}
	}
	return 0
}

// flockPids returns the processes in the text of /proc/locks that hold a flock on an inode number. A line looks like
// "1: FLOCK ADVISORY WRITE 1234 08:01:131 0 EOF". A waiting process has "->" after the number.
func flockPids(locks []byte, ino uint64) []int {
	var pids []int
	for line := range bytes.Lines(locks) {
		f := strings.Fields(string(line))
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(ino, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasOpen reports whether a process has the file open. If that is not visible, it returns true.
func hasOpen(pid int, file os.FileInfo) bool {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		return true
	}
	for _, fd := range fds {
		if info, err := os.Stat(fd); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}

func commandOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return "its command is unknown"
	}
	return printable(strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"))
}

func ownCommand() string { return printable(os.Args) }

// printable joins a command line for a message, with the program's name only.
func printable(args []string) string {
	const most = 200
	args = append([]string{filepath.Base(args[0])}, args[1:]...)
	s := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.Join(args, " "), "?"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
