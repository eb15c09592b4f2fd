package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"berth/store"
)

// Report is the result of a check of a file.
type Report struct {
	Path    string
	ID      string // the store's id, 32 hexadecimal digits
	Format  int    // version of the layout
	Commit  uint64 // number of the last commit
	Size    int64  // size of the file in bytes, including the part reserved for growth
	Pages   int    // used and free pages, of PageSize bytes each
	Free    int    // number of free pages
	Records int
	Bytes   int64 // total size of keys and values, without overhead
	// PageSize is in bytes.
	PageSize int
	// Problems are sentences, at most maxProblems. Check also returns them as an error.
	Problems []string
}

// Check checks a file that no process has open. It checks both meta pages, the structure of all pages and of the free
// list, the format version and the checksum of every record. It also compares the store id with berth.id. The error
// wraps store.ErrCorrupt, or store.ErrLocked if a process has the file open. In that case use the admin socket of that
// process. Check does not change the file.
func Check(ctx context.Context, path string) (Report, error) {
	f, err := newFiles(path)
	if err != nil {
		return Report{Path: path}, err
	}
	report, err := checkPath(ctx, f.db)
	if err != nil {
		return report, err
	}
	return report, f.compareID(report.ID)
}

// checkPath checks a file that no process has open. It ignores berth.id.
func checkPath(ctx context.Context, path string) (Report, error) {
	f, err := openQuiet(path)
	if err != nil {
		return Report{Path: path}, err
	}
	defer f.Close()
	return checkFile(ctx, path, f)
}

// Check checks the open store while it is in use. It checks a copy, which needs space next to the state for that time.
// If the path no longer leads to the file, that is a problem, too (store.ErrAstray).
func (s *Store) Check(ctx context.Context) (Report, error) {
	h, err := s.enter()
	if err != nil {
		return Report{Path: s.files.db}, err
	}
	defer s.leave(h)
	report, err := s.checkCopy(ctx, h)
	report.Path, report.Size = s.files.db, fileSize(h.reader)
	if lost := s.astray(h); lost != nil {
		report.Problems = append(report.Problems, lost.Error())
		err = errors.Join(err, lost)
	}
	return report, err
}

// checkCopy checks a copy of an open file. The copy is unlinked, so nothing of it remains.
func (s *Store) checkCopy(ctx context.Context, h *handle) (Report, error) {
	temp, err := os.CreateTemp(copyDir(s.files.db), ".berth-check-*")
	if err == nil {
		defer temp.Close()
		err = os.Remove(temp.Name())
	}
	if err == nil {
		err = s.copyTo(ctx, h, temp)
	}
	if err != nil {
		return Report{}, fmt.Errorf("copy the state, to check it: %w", spaceError(err))
	}
	return checkFile(ctx, s.files.db, temp)
}

// copyDir returns the directory of a state. If that is gone, it returns one for temporary files.
func copyDir(path string) string {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return os.TempDir()
	}
	return dir
}

// checkFile checks the file of f: its size and meta pages here, and everything else in a child process.
func checkFile(ctx context.Context, path string, f *os.File) (Report, error) {
	info, err := f.Stat()
	if err != nil {
		return Report{Path: path}, fmt.Errorf("check the state: %w", err)
	}
	report := Report{Path: path, Size: info.Size()}
	if err := sane(path, info); err != nil {
		return report, err
	}
	ms := readMetas(f)
	if err := errors.Join(ms.err[0], ms.err[1]); isReadError(err) {
		return report, unreadable(path, err)
	}
	m, ok := ms.newest()
	if !ok {
		return report, fmt.Errorf("%w: %s is not a Berth state, or its beginning was overwritten (meta page 0 %v, "+
			"meta page 1 %v)%s",
			store.ErrCorrupt, path, ms.err[0], ms.err[1], adviceRestore)
	}
	if end := m.pages * uint64(m.pageSize); m.pages > 1<<40 || end > uint64(report.Size) {
		return report, fmt.Errorf("%w: %s has %d bytes, but its last commit reaches to byte %d: the file was cut "+
			"short%s",
			store.ErrCorrupt, path, report.Size, end, adviceRestore)
	}
	report, err = runChild(ctx, path, f, childLimit(info.Size()))
	report.Path, report.Size = path, info.Size()
	if err == nil {
		err = report.verdict(f)
	}
	for i, lost := range ms.err {
		if err == nil && lost != nil {
			err = &metaError{fmt.Errorf("%w: meta page %d of %s %v, so its last commit may be gone (the other page "+
				"is sound, up to commit %d)%s, or, to continue from that commit, run `berth state check "+
				"--repair --state %s`", store.ErrCorrupt, i, path, lost, m.txid, adviceRestore, filepath.Dir(path))}
		}
	}
	return report, err
}

// verdict returns the problems as an error. If the disk could not read the file, the problems say nothing about its
// contents.
func (r *Report) verdict(f *os.File) error {
	if len(r.Problems) == 0 {
		return nil
	}
	if _, err := io.Copy(io.Discard, io.NewSectionReader(f, 0, r.Size)); isReadError(err) {
		return unreadable(r.Path, err)
	}
	const show = 3
	list := r.Problems[:min(show, len(r.Problems))]
	rest := ""
	if n := len(r.Problems) - len(list); n > 0 {
		rest = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("%w: %s: %s%s%s", store.ErrCorrupt, r.Path, strings.Join(list, "; "), rest, adviceRestore)
}

// metaError is the only damage that Repair can repair: one meta page is lost, and the other leads to a valid state.
type metaError struct{ error }

func (e *metaError) Unwrap() error { return e.error }

// isReadError reports whether the disk failed to read, which says nothing about the file's contents.
func isReadError(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

func unreadable(path string, err error) error {
	return fmt.Errorf("the state %s cannot be read: %w: check its disk; the file was not changed", path, err)
}

// sane refuses what cannot be a state.
func sane(path string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%w: %s is a directory, not a file: give the path of the state's file", store.ErrCorrupt,
			path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", store.ErrCorrupt, path)
	case info.Size() == 0:
		return fmt.Errorf("%w: %s is empty (0 bytes), and Berth never leaves it empty: its contents are gone%s",
			store.ErrCorrupt, path, adviceRestore)
	}
	return nil
}
