package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"berth/store"
)

// Repair mends the one damage that can be: one of the two meta pages is lost, and the other one leads to a sound state.
// It goes on from the commit that one names; the commit after it, if there was one, is gone. The file as it was is kept
// beside it. Any other file is left alone, with the reason.
func Repair(ctx context.Context, path string) (Restored, error) {
	return repair(ctx, path, time.Now())
}

func repair(ctx context.Context, path string, now time.Time) (Restored, error) {
	f, err := newFiles(path)
	if err != nil {
		return Restored{}, err
	}
	lock, err := f.acquire(ctx, time.Second, now)
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	if err := f.unheld(); err != nil {
		return Restored{}, err
	}
	db, err := openQuiet(f.db)
	if err != nil {
		return Restored{}, err
	}
	defer db.Close()
	report, err := checkFile(ctx, f.db, db)
	if err == nil {
		return Restored{Report: report}, nil
	}
	var damage *metaError
	if !errors.As(err, &damage) {
		return Restored{}, fmt.Errorf("this damage cannot be repaired: %w", err)
	}
	if err := f.compareID(report.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Restored{}, err
	}
	if err := copyFile(ctx, f.temp, db); err != nil {
		return Restored{}, fmt.Errorf("copy the state, nothing was changed: %w", spaceError(err))
	}
	done := Restored{}
	if err = mendMeta(f.temp); err == nil {
		done.Report, err = checkPath(ctx, f.temp)
	}
	if err != nil {
		return Restored{}, errors.Join(fmt.Errorf("the copy cannot be mended, nothing was changed: %w", err),
			os.Remove(f.temp))
	}
	done.Report.Path = f.db
	done.Kept, err = f.exchange(report.ID, now)
	return done, err
}

// mendMeta writes the sound meta page over the damaged one, as one commit older, the way bbolt's own copies have it.
func mendMeta(path string) error {
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	ms := readMetas(w)
	m, ok := ms.newest()
	if !ok || ms.err[0] == nil && ms.err[1] == nil {
		return fmt.Errorf("%w: %s has no single damaged meta page", store.ErrCorrupt, path)
	}
	good := uint64(0)
	if ms.err[0] != nil {
		good = 1
	}
	b := make([]byte, m.pageSize)
	if _, err := w.ReadAt(b, int64(good)*int64(m.pageSize)); err != nil {
		return err
	}
	other := 1 - good
	setMeta(b, other, m.txid-1)
	if _, err := w.WriteAt(b, int64(other)*int64(m.pageSize)); err != nil {
		return err
	}
	return w.Sync()
}
