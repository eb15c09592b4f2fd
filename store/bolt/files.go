package bolt

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"berth/store"
	"berth/store/internal/record"
)

// files are the paths of one state: berth.db, and next to it berth.id and berth.lock.
//
// A new state is written and synced under a temporary name and renamed to berth.db. Then berth.id is made in the same
// way. After an interruption there is no berth.db, and the next Open starts again. Or there is a complete berth.db
// without berth.id, which the next Open writes. Therefore a berth.id without a berth.db means that the file was lost.
type files struct {
	db, id, lock, temp string
}

func newFiles(path string) (files, error) {
	if path == "" {
		return files{}, errors.New("bolt: the path of the state is missing")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return files{}, fmt.Errorf("the state's path: %w", err)
	}
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	return files{db: path, id: stem + ".id", lock: stem + ".lock", temp: path + ".new"}, nil
}

// makeDir creates the directory of the state if necessary.
func (f files) makeDir() error {
	dir := filepath.Dir(f.db)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the state: %w", err)
	}
	return syncDir(filepath.Dir(dir))
}

// fresh reports whether there is no state yet. It refuses if there was one.
func (f files) fresh() (bool, error) {
	if _, err := os.Lstat(f.db); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot look for the state: %w", err)
	}
	id, err := f.readID()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, fmt.Errorf("%w: %s is gone: %s says that the store %s belongs there%s, or remove %s to start with "+
		"an empty state",
		store.ErrCorrupt, f.db, f.id, id, adviceRestore, f.id)
}

// create creates an empty state with a new id.
func (f files) create(noSync bool) error {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return fmt.Errorf("cannot draw a store id: %w", err)
	}
	if err := os.Remove(f.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot make the state: %w", err)
	}
	if err := writeEmpty(f.temp, hex.EncodeToString(raw[:]), noSync); err != nil {
		return fmt.Errorf("cannot make the state: %w", spaceError(err))
	}
	return f.install(f.temp)
}

// install renames a complete and synced file to the state's name and writes its id.
func (f files) install(from string) error {
	if err := os.Rename(from, f.db); err != nil {
		return fmt.Errorf("cannot rename the new state to its name: %w", err)
	}
	return syncDir(filepath.Dir(f.db))
}

// writeEmpty writes a bbolt file with our two buckets.
func writeEmpty(path, id string, noSync bool) error {
	db, err := bbolt.Open(path, 0o600,
		&bbolt.Options{NoSync: noSync, NoGrowSync: noSync, FreelistType: bbolt.FreelistMapType,
			OpenFile: func(name string, flag int, _ os.FileMode) (*os.File, error) { return openPlain(name, flag) }})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket(bucketData); err != nil {
			return err
		}
		b, err := tx.CreateBucket(bucketMeta)
		if err != nil {
			return err
		}
		if err := b.Put(keyFormat, record.AppendSealed(nil, keyFormat, []byte(strconv.Itoa(Format)))); err != nil {
			return err
		}
		return b.Put(keyID, record.AppendSealed(nil, keyID, []byte(id)))
	})
	if !noSync {
		err = errors.Join(err, db.Sync())
	}
	return errors.Join(err, db.Close())
}

// matchID compares the id in the file with berth.id, and writes that if it is missing.
func (f files) matchID(id string) (healed bool, err error) {
	err = f.compareID(id)
	if errors.Is(err, fs.ErrNotExist) {
		return true, f.writeID(id)
	}
	return false, err
}

// compareID refuses a file whose id differs from berth.id.
func (f files) compareID(id string) error {
	beside, err := f.readID()
	if err != nil {
		return err
	}
	if beside != id {
		return fmt.Errorf("%w: %s holds the store %s, but %s says that %s belongs there: the file was replaced; put "+
			"the right file back, or restore a backup with `berth state restore FILE`; if this file is right, remove "+
			"%s", store.ErrCorrupt, f.db, id, f.id, beside, f.id)
	}
	return nil
}

func (f files) readID() (string, error) {
	b, err := os.ReadFile(f.id)
	if err != nil {
		return "", fmt.Errorf("read the store id: %w", err)
	}
	id := string(bytes.TrimSpace(b))
	if !validID(id) {
		return "", fmt.Errorf("%w: %s does not hold a store id: if you are sure that %s is the right state, remove %s "+
			"and start again", store.ErrCorrupt, f.id, f.db, f.id)
	}
	return id, nil
}

func (f files) writeID(id string) error {
	if err := writeFile(f.id, []byte(id+"\n")); err != nil {
		return fmt.Errorf("write the store id: %w", spaceError(err))
	}
	return nil
}

// writeFile writes a small file completely or not at all.
func writeFile(path string, b []byte) error {
	t := path + ".new"
	if err := writeNew(t, func(w *os.File) error { _, err := w.Write(b); return err }); err != nil {
		return err
	}
	if err := os.Rename(t, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// stage writes by fill the file that is to replace the state, under its temporary name, and checks it. After an error
// it is gone.
func (f files) stage(ctx context.Context, fill func(*os.File) error) (Report, error) {
	if err := writeNew(f.temp, fill); err != nil {
		return Report{}, spaceError(err)
	}
	report, err := checkPath(ctx, f.temp)
	if err != nil {
		return Report{}, errors.Join(err, os.Remove(f.temp))
	}
	report.Path = f.db
	return report, nil
}

// writeNew writes a new file by fill, and syncs it. After an error it is gone.
func writeNew(path string, fill func(*os.File) error) error {
	w, err := createNew(path)
	if err != nil {
		return err
	}
	if err = fill(w); err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// createNew creates a new file in place of what an earlier attempt left. It does not follow a symbolic link, which
// somebody with access to the directory may have made.
func createNew(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// openPlain opens a file of the state. It refuses a symbolic link, which somebody with access to the directory could
// point at another file.
func openPlain(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, but a file of the state must not be a link: remove the link, "+
			"or give the directory that it leads to as --state", path)
	}
	return f, err
}

// syncDir makes new names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync the directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

func validID(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == 16
}

// parseFormat reads the format version; 0 if it is invalid.
func parseFormat(b []byte) int {
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// openQuiet opens a file that nobody writes to, and locks it until it is closed. Changes during the read would look
// like damage.
func openQuiet(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s%s", store.ErrCorrupt, path, adviceRestore)
	}
	if err != nil {
		return nil, fmt.Errorf("open the state: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(lockedError(path, path, ""), f.Close())
	}
	return f, nil
}
