package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"berth/store"
)

// Backup writes a snapshot of the state to a new file on this host (0600). It gives the file its name after it has
// checked the whole file. The store stays in use; later commits are not in the backup. It does not overwrite an
// existing file.
//
// The read transaction lasts as long as the local write, and not as long as a client needs to fetch the file. Meanwhile
// no page of the state can be reused, so the state grows.
func (s *Store) Backup(ctx context.Context, path string) error {
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.leave(h)
	return writeBackup(ctx, path, func(temp *os.File) error { return s.copyTo(ctx, h, temp) }, func(r Report) error {
		if r.ID != s.id {
			return fmt.Errorf("the written file has the store id %s, not %s", r.ID, s.id)
		}
		return nil
	})
}

// writeBackup writes a new file by fill, and gives it its name after the check of the whole file. matches returns what
// differs in it from what was to be written.
func writeBackup(ctx context.Context, path string, fill func(temp *os.File) error, matches func(Report) error) error {
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
	defer os.Remove(temp.Name()) // after the rename nothing has that name
	defer temp.Close()
	if err = fill(temp); err == nil {
		err = temp.Sync()
	}
	if err != nil {
		return fmt.Errorf("backup to %s: %w", path, spaceError(err))
	}
	report, err := checkFile(ctx, temp.Name(), temp)
	if err != nil {
		return fmt.Errorf("backup to %s: the written data cannot be read back: %w", path, err)
	}
	if err := matches(report); err != nil {
		return fmt.Errorf("%w: backup to %s: %w", store.ErrCorrupt, path, err)
	}
	return publish(temp.Name(), path)
}

// publish gives a synced file its name, unless the name is taken.
func publish(from, path string) error {
	// Unlike a rename, a link never replaces an existing file.
	if err := os.Link(from, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("backup: %s exists already: give another name: %w", path, err)
		}
		if err := os.Rename(from, path); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	return syncDir(filepath.Dir(path))
}

// copyTo writes the state to w.
func (s *Store) copyTo(ctx context.Context, h *handle, w *os.File) (err error) {
	defer guard(&err, s.faultError)()
	btx, err := s.begin(h, false)
	if err != nil {
		return err
	}
	defer func() { _ = btx.Rollback() }() // a read transaction loses nothing
	out := &ctxWriter{ctx: ctx, w: w}
	if _, err := btx.WriteTo(out); errors.Is(err, io.EOF) {
		return s.faultError(err)
	} else if err != nil {
		return cmp.Or(out.err, err) // bbolt passes some errors on only as text
	}
	return nil
}

// ctxWriter is a file that refuses writes after its context has ended, and keeps its first error.
type ctxWriter struct {
	ctx context.Context
	w   *os.File
	err error
}

func (c *ctxWriter) Write(b []byte) (n int, err error) {
	if c.err = c.ctx.Err(); c.err == nil {
		n, c.err = c.w.Write(b)
	}
	return n, c.err
}
