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

// Report says what a check has found in a file.
type Report struct {
	Path    string
	ID      string // the store's id, 32 hexadecimal digits
	Format  int    // version of the layout
	Commit  uint64 // number of the last commit
	Size    int64  // bytes of the file, the part that lies ready for growing included
	Pages   int    // pages in use and free, of PageSize bytes each
	Free    int    // free ones among them
	Records int
	Bytes   int64 // keys and values of the records, without what storing them takes
	// PageSize in bytes.
	PageSize int
	// Problems are sentences, at most maxProblems of them; Check also answers them as an error.
	Problems []string
}

// Check checks a file that no process has open: both meta pages, the structure of all pages and of the list of free
// ones, the format version, the store id against the one beside the file, and the checksum of every record. The error
// wraps store.ErrCorrupt, or store.ErrLocked when a process has the file open (ask that one, over its admin socket).
// The file is not changed.
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

// checkPath checks a file that no process has open, whatever id lies beside it.
func checkPath(ctx context.Context, path string) (Report, error) {
	f, err := openQuiet(path)
	if err != nil {
		return Report{Path: path}, err
	}
	defer f.Close()
	return checkFile(ctx, path, f)
}

// Check checks the open store while it is in use: a copy of it as it is now, which needs room beside the state for as
// long. That its path does not lead to it any more is a problem, too (store.ErrAstray).
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

// checkCopy checks a copy of an open file. It has no name, so that nothing is left of it.
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

// copyDir is the directory of a state, or, where that was taken away, one for temporary files.
func copyDir(path string) string {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return os.TempDir()
	}
	return dir
}

// checkFile checks the file behind f: its size and meta pages here, all else in a child process.
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
			err = &metaError{fmt.Errorf("%w: meta page %d of %s %v, so its last commit may be gone (what the other "+
				"one shows is sound, up to commit %d)%s, or, to go on from that commit, run `berth state check "+
				"--repair --state %s`", store.ErrCorrupt, i, path, lost, m.txid, adviceRestore, filepath.Dir(path))}
		}
	}
	return report, err
}

// verdict makes an error of the problems. Where the disk did not hand out the file, they say nothing of its contents.
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

// metaError is the one damage that Repair can mend: one meta page is lost, and the other one leads to a sound state.
type metaError struct{ error }

func (e *metaError) Unwrap() error { return e.error }

// isReadError tells whether the disk did not hand out what was asked for, which says nothing of the file's contents.
func isReadError(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

func unreadable(path string, err error) error {
	return fmt.Errorf("the state %s cannot be read: %w: look at its disk; the file was not changed", path, err)
}

// sane refuses what cannot be a state at all.
func sane(path string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%w: %s is a directory, not a file: give the path of the state's file", store.ErrCorrupt,
			path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", store.ErrCorrupt, path)
	case info.Size() == 0:
		return fmt.Errorf("%w: %s is empty (0 bytes), and Berth never leaves it so: what it held is gone%s",
			store.ErrCorrupt, path, adviceRestore)
	}
	return nil
}
