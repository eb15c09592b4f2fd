package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Restored is the result of Restore.
type Restored struct {
	Report Report // of the new state; of TryRestore, of the backup
	// Kept is the new path of the earlier file; empty if there was none.
	Kept string
	// OtherStore is the id of the earlier store, if it differs from the backup's.
	OtherStore string
}

// Restore replaces the state at statePath by the backup from. The state's daemon must be stopped: while a process has
// the state open, it returns store.ErrLocked with the holder's name, even with force. It checks the whole backup before
// it changes anything. Without force, it does not replace a state that has records, is unreadable or belongs to another
// store. It keeps the old file next to the new one, with the time in its name.
//
// After an interruption, either the old or the new state is at the path.
func Restore(ctx context.Context, from, statePath string, force bool) (Restored, error) {
	return restore(ctx, from, statePath, force, time.Now())
}

func restore(ctx context.Context, from, statePath string, force bool, now time.Time) (Restored, error) {
	f, err := newFiles(statePath)
	if err != nil {
		return Restored{}, err
	}
	if err := f.makeDir(); err != nil {
		return Restored{}, err
	}
	lock, err := f.acquire(ctx, time.Second, now)
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	backup, done, err := f.mayRestore(ctx, from, force)
	if err != nil {
		return Restored{}, err
	}
	defer backup.Close()
	if done.Report, err = f.stage(ctx, copyOf(ctx, backup)); err != nil {
		return Restored{}, fmt.Errorf("copy the backup (nothing was changed): %w", err)
	}
	done.Kept, err = f.exchange(done.Report.ID, now)
	return done, err
}

// TryRestore returns what Restore would do, or its refusal, and changes no state.
func TryRestore(ctx context.Context, from, statePath string, force bool) (Restored, error) {
	f, err := newFiles(statePath)
	if err != nil {
		return Restored{}, err
	}
	now := time.Now()
	if _, err := os.Stat(f.lock); err == nil { // else nobody has the state open
		lock, err := f.acquire(ctx, time.Second, now)
		if err != nil {
			return Restored{}, err
		}
		defer lock.Close()
	}
	backup, done, err := f.mayRestore(ctx, from, force)
	if err != nil {
		return Restored{}, err
	}
	done.Report.Path, done.Kept = f.db, f.keptName(now)
	return done, backup.Close()
}

// mayRestore opens and checks the backup, and refuses a state that it must not replace. The caller has locked the state
// and closes the backup.
func (f files) mayRestore(ctx context.Context, from string, force bool) (backup *os.File, done Restored, err error) {
	if err := f.unheld(); err != nil {
		return nil, done, err
	}
	if backup, err = openBackup(f, from); err != nil {
		return nil, done, err
	}
	if done.Report, err = checkFile(ctx, from, backup); err != nil {
		err = fmt.Errorf("the backup cannot be used; nothing was changed: %w", err)
	} else {
		done.OtherStore, err = f.replaceable(ctx, done.Report.ID, force)
	}
	if err != nil {
		return nil, done, errors.Join(err, backup.Close())
	}
	return backup, done, nil
}

// unheld refuses if a process has locked the state's file itself, because that process does not use our lock file.
func (f files) unheld() error {
	db, err := openPlain(f.db, os.O_RDONLY)
	if err != nil {
		return nil // nothing can be held; other errors appear at the replacement
	}
	defer db.Close()
	if err := unix.Flock(int(db.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return lockedError(f.db, f.db, "")
	}
	return nil
}

// openBackup opens the backup. It refuses a backup that is the state itself or in use.
func openBackup(f files, from string) (*os.File, error) {
	backup, err := os.Open(from)
	if err != nil {
		return nil, fmt.Errorf("open the backup: %w", err)
	}
	info, err := backup.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the backup: %w", err), backup.Close())
	}
	if now, err := os.Stat(f.db); err == nil && os.SameFile(info, now) {
		_ = backup.Close()
		return nil, fmt.Errorf("%s is the state itself: give a backup of it", from)
	}
	if err := unix.Flock(int(backup.Fd()), unix.LOCK_SH|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		_ = backup.Close()
		return nil, fmt.Errorf("%s is a state in use, not a backup: make a backup with `berth state backup FILE`: %w",
			from, lockedError(from, from, ""))
	}
	return backup, nil
}

// replaceable refuses if the state may not be replaced. It returns the id of another store that it belongs to.
func (f files) replaceable(ctx context.Context, id string, force bool) (other string, err error) {
	beside, err := f.readID()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !force {
		return "", err
	}
	if beside != id {
		other = beside
	}
	if _, err := os.Lstat(f.db); errors.Is(err, fs.ErrNotExist) {
		if other != "" && !force {
			return "", fmt.Errorf("the backup is of the store %s, but %s belongs to the store %s: to restore the "+
				"backup anyway, force the restore (--force)", id, f.db, other)
		}
		return other, nil
	}
	if info, err := os.Stat(f.db); err == nil && info.IsDir() {
		return "", sane(f.db, info)
	}
	if force {
		return other, nil
	}
	report, err := checkPath(ctx, f.db)
	switch {
	case err != nil:
		return "", fmt.Errorf("the existing state cannot be read, so it may hold something: force the restore "+
			"(--force), which keeps its file under another name: %w", err)
	case report.Records > 0:
		return "", fmt.Errorf("%s holds %d records: force the restore (--force) to replace them; it keeps the file "+
			"under another name",
			f.db, report.Records)
	}
	return other, nil
}

// copyOf returns a function that writes the content of a file.
func copyOf(ctx context.Context, from *os.File) func(*os.File) error {
	return func(w *os.File) error {
		_, err := io.Copy(&ctxWriter{ctx: ctx, w: w}, io.NewSectionReader(from, 0, math.MaxInt64))
		return err
	}
}

// keptName returns the new name of the earlier file; empty if there is none.
func (f files) keptName(now time.Time) string {
	if _, err := os.Lstat(f.db); err != nil {
		return ""
	}
	return f.db + "." + now.UTC().Format("2006-01-02T15-04-05.000Z")
}

// exchange moves f.temp to the state's path and keeps the old file under a name with the time. It removes berth.id
// first and writes it last, so after an interruption the existing file is accepted.
func (f files) exchange(id string, now time.Time) (kept string, err error) {
	if kept = f.keptName(now); kept != "" {
		if err := keep(f.db, kept); err != nil {
			return "", fmt.Errorf("keep the old state (nothing was changed): %w", spaceError(err))
		}
	}
	if err := os.Remove(f.id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kept, fmt.Errorf("restore: %w", err)
	}
	if err := syncDir(filepath.Dir(f.db)); err != nil {
		return kept, err
	}
	if err := f.install(f.temp); err != nil {
		return kept, err
	}
	return kept, f.writeID(id)
}

// keep gives a file a second name. If the file system has no links, it copies the file.
func keep(path, name string) error {
	err := os.Link(path, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	return writeNew(name, copyOf(context.Background(), from))
}
