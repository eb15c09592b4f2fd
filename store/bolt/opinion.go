package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"berth/store"
)

// secondOpinion has bbolt check a file that our own check has passed. bbolt's check trusts what it reads, and would run
// in circles on a tree that is one; after ours it cannot.
func secondOpinion(ctx context.Context, path string) (err error) {
	defer guard(&err, func(fault any) error {
		return fmt.Errorf("%w: bbolt cannot read %s (%v)%s", store.ErrCorrupt, path, fault, adviceRestore)
	})()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		ReadOnly: true, Timeout: time.Second, PreLoadFreelist: true, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, _ int, _ os.FileMode) (*os.File, error) { return os.Open(name) },
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return lockedError(path, path, "")
	}
	if err != nil {
		return fmt.Errorf("%w: bbolt cannot open %s (%v)%s", store.ErrCorrupt, path, err, adviceRestore)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		var first error
		n := 0
		for problem := range tx.Check() { // to the end: the sender waits for a reader
			if n++; first == nil {
				first = problem
			}
		}
		if first != nil {
			return fmt.Errorf("%w: %s: bbolt finds %d problems, the first: %v%s", store.ErrCorrupt, path, n, first,
				adviceRestore)
		}
		return ctx.Err()
	})
}
