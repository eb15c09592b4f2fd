package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Repair repairs the only repairable damage: one of the two meta pages is lost, and the other leads to a valid state.
// It uses the commit of that one; a later commit is lost. It keeps the damaged file next to the new one. It refuses any
// other file with the reason.
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
	done := Restored{}
	done.Report, err = f.stage(ctx, func(w *os.File) error { return mendedCopy(ctx, w, db) })
	if err != nil {
		return Restored{}, fmt.Errorf("a copy of the state cannot be repaired; nothing was changed: %w", err)
	}
	done.Kept, err = f.exchange(report.ID, now)
	return done, err
}

// mendedCopy writes the content of a file to w. bbolt writes both meta pages of a copy.
func mendedCopy(ctx context.Context, w, from *os.File) error {
	db, err := openReadOnly(from)
	if err != nil {
		return err
	}
	out := &ctxWriter{ctx: ctx, w: w}
	err = db.View(func(tx *bbolt.Tx) error { _, err := tx.WriteTo(out); return cmp.Or(out.err, err) })
	return errors.Join(err, db.Close())
}
