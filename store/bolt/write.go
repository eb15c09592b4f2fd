package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"berth/store/internal/record"
)

// writePage is the maximum number of records in one bbolt transaction of a new file.
const writePage = 16384

// Write creates a new file (0600), like Backup, with the records and the id of another store. fill passes each record
// to put once. Write checks the whole file before it gets its name. It does not overwrite an existing file.
func Write(ctx context.Context, path, id string, fill func(put func(key, value []byte) error) error) error {
	if !validID(id) {
		return fmt.Errorf("backup: %q is not the id of a store", id)
	}
	w := &fileWriter{ctx: ctx}
	return writeBackup(ctx, path, func(temp *os.File) (err error) {
		if err := writeEmpty(temp.Name(), id, true); err != nil {
			return err
		}
		if w.db, err = bbolt.Open(temp.Name(), 0o600,
			&bbolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType}); err != nil {
			return err
		}
		return errors.Join(w.write(fill), w.db.Close())
	}, func(r Report) error {
		if r.ID != id || r.Records != w.records {
			return fmt.Errorf("the file has %d records of the store %s, but Berth wrote %d of the store %s",
				r.Records, r.ID, w.records, id)
		}
		return nil
	})
}

// fileWriter writes records to a private file, many in each transaction.
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
	return w.bucket.Put(key, record.AppendSealed(nil, key, value)) // bbolt copies the key but keeps the value
}
