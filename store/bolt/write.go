package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"berth/store"
	"berth/store/internal/record"
)

// writePage is how many records one of bbolt's transactions takes while a file is written.
const writePage = 16384

// Write makes a new file (0600), as Backup does, of the records of another store, whose id it has: fill hands them to
// put, each once. The file is checked as a whole, and only then called path. A file that is there already is not
// overwritten.
func Write(ctx context.Context, path, id string, fill func(put func(key, value []byte) error) error) error {
	if !validID(id) {
		return fmt.Errorf("backup: %q is no id of a store", id)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("backup: %s exists already: give another name: %w", path, fs.ErrExist)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part") // 0600
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer os.Remove(temp.Name()) // after the rename there is nothing of that name
	defer temp.Close()
	if err := writeEmpty(temp.Name(), id, true); err != nil {
		return fmt.Errorf("backup to %s: %w", path, spaceError(err))
	}
	w := &fileWriter{ctx: ctx}
	if w.db, err = bbolt.Open(temp.Name(), 0o600,
		&bbolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType}); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	if err := errors.Join(w.write(fill), w.db.Close(), temp.Sync()); err != nil {
		return fmt.Errorf("backup to %s: %w", path, spaceError(err))
	}
	report, err := checkFile(ctx, temp.Name(), temp)
	if err != nil {
		return fmt.Errorf("backup to %s: what was written cannot be read back: %w", path, err)
	}
	if report.ID != id || report.Records != w.records {
		return fmt.Errorf("%w: backup to %s: it has %d records of the store %s, and %d of %s were written",
			store.ErrCorrupt, path, report.Records, report.ID, w.records, id)
	}
	return publish(temp.Name(), path)
}

// fileWriter puts records into a file that nobody else has, many in each transaction.
type fileWriter struct {
	ctx     context.Context
	db      *bbolt.DB
	tx      *bbolt.Tx
	bucket  *bbolt.Bucket
	records int
}

func (w *fileWriter) write(fill func(put func(key, value []byte) error) error) error {
	err := w.begin()
	if err == nil {
		err = fill(w.put)
	}
	if w.tx == nil {
		return err
	}
	if err != nil {
		return errors.Join(err, w.tx.Rollback())
	}
	return w.tx.Commit()
}

func (w *fileWriter) begin() (err error) {
	if w.tx, err = w.db.Begin(true); err == nil {
		w.bucket = w.tx.Bucket(bucketData)
		w.bucket.FillPercent = fillPercent
	}
	return err
}

func (w *fileWriter) put(key, value []byte) error {
	if w.records++; w.records%writePage == 0 {
		err := errors.Join(w.ctx.Err(), w.tx.Commit())
		if w.tx = nil; err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.bucket.Put(key, record.AppendSealed(nil, key, value)) // bbolt copies the key, and keeps the value
}
