package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"berth/store"
	"berth/store/internal/record"
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

const maxProblems = 32

// maxDepth bounds the descent: a tree of 4 KiB pages with two entries each holds more than any file at half of it.
const maxDepth = 40

// Check checks a file that no process has open: both meta pages, the structure of all pages and of the list of free
// ones, the format version, the store id against the one beside the file, and the checksum of every record; then it
// asks bbolt's own check for a second opinion. The error wraps store.ErrCorrupt, or store.ErrLocked when a process has
// the file open (ask that one, over its admin socket). The file is not changed.
func Check(ctx context.Context, path string) (Report, error) {
	f, err := newFiles(path)
	if err != nil {
		return Report{Path: path}, err
	}
	db, err := openQuiet(f.db)
	if err != nil {
		return Report{Path: path}, err
	}
	defer db.Close()
	report, err := checkFile(ctx, f.db, db)
	if err != nil {
		return report, err
	}
	if err := f.compareID(report.ID); err != nil {
		return report, err
	}
	return report, secondOpinion(ctx, f.db)
}

// Check checks the open store while it is in use, in one View. That its path does not lead to it any more is a problem,
// too (store.ErrAstray).
func (s *Store) Check(ctx context.Context) (Report, error) {
	h, err := s.enter()
	if err != nil {
		return Report{Path: s.files.db}, err
	}
	defer s.leave(h)
	m, done, err := s.snapshot(ctx, h)
	if err != nil {
		return Report{Path: s.files.db}, err
	}
	defer done()
	c := checker{ctx: ctx, r: h.reader, meta: m, report: Report{Path: s.files.db, Size: fileSize(h.reader)}}
	report, err := c.run()
	if lost := s.astray(h); lost != nil {
		report.Problems = append(report.Problems, lost.Error())
		err = errors.Join(err, lost)
	}
	return report, err
}

// checkFile checks the file behind f, without bbolt.
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
	for i, err := range ms.err {
		if isReadError(err) {
			return report, unreadable(path, uint64(i), err)
		}
	}
	m, ok := ms.newest()
	if !ok {
		return report, fmt.Errorf("%w: %s is not a Berth state, or its beginning was overwritten (meta page 0 %v, "+
			"meta page 1 %v)%s",
			store.ErrCorrupt, path, ms.err[0], ms.err[1], adviceRestore)
	}
	c := checker{ctx: ctx, r: f, meta: m, report: report}
	for i, err := range ms.err {
		if err == nil {
			continue
		}
		report, rest := c.run()
		if rest != nil {
			return report, rest
		}
		return report,
			&metaError{fmt.Errorf("%w: meta page %d of %s %v, so its last commit may be gone (what the other one "+
				"shows is "+
				"sound, up to commit %d)%s, or, to go on from that commit, run `berth state check --repair --state %s`",
				store.ErrCorrupt, i, path, err, m.txid, adviceRestore, filepath.Dir(path))}
	}
	return c.run()
}

// metaError is the one damage that Repair can mend: one meta page is lost, and the other one leads to a sound state.
type metaError struct{ error }

func (e *metaError) Unwrap() error { return e.error }

// isReadError tells whether the disk did not hand out what was asked for, which says nothing of the file's contents.
func isReadError(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

func unreadable(path string, page uint64, err error) error {
	return fmt.Errorf("page %d of the state %s: %w: look at its disk; the file was not changed", page, path, err)
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

// checker walks over one committed state, page by page, with reads of its own: the file need not be mapped, and nothing
// in it can lead the walk astray.
type checker struct {
	ctx    context.Context
	r      io.ReaderAt
	meta   meta
	report Report

	seen  []uint64 // bit set: the page was met
	bufs  [][]byte // one page buffer for each level of the walk
	more  int      // problems beyond maxProblems
	trees map[string]subtree
	fatal error

	last []byte // the key that was met last in this walk, and where it is kept when its page is left
	keep []byte
}

// subtree is a bucket: a page, or a page that lies inline in its parent.
type subtree struct {
	root   uint64
	inline []byte
}

// visit is called for each record or bucket of a tree, in order.
type visit func(element)

func (c *checker) run() (Report, error) {
	c.report.Commit, c.report.PageSize = c.meta.txid, c.meta.pageSize
	if end := c.meta.pages * uint64(c.meta.pageSize); c.meta.pages > 1<<40 || end > uint64(c.report.Size) {
		return c.report, fmt.Errorf("%w: %s has %d bytes, but its last commit reaches to byte %d: the file was cut "+
			"short%s",
			store.ErrCorrupt, c.report.Path, c.report.Size, end, adviceRestore)
	}
	c.report.Pages = int(c.meta.pages)
	c.seen = make([]uint64, c.meta.pages/64+1)
	c.mark(0, 2)
	c.trees = map[string]subtree{}
	c.walk(subtree{root: c.meta.root}, "the root", func(e element) {
		if t, ok := c.subtree(e); ok {
			c.trees[string(e.key)] = t
		}
	})
	if c.ok() {
		c.identity()
	}
	if c.ok() {
		c.records()
		c.freePages()
		c.lostPages()
	}
	return c.report, c.verdict()
}

func (c *checker) ok() bool { return c.fatal == nil && len(c.report.Problems) == 0 }

func (c *checker) verdict() error {
	if c.fatal != nil {
		return c.fatal
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if len(c.report.Problems) == 0 {
		return nil
	}
	const show = 3
	list := c.report.Problems[:min(show, len(c.report.Problems))]
	rest := ""
	if n := len(c.report.Problems) + c.more - len(list); n > 0 {
		rest = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("%w: %s: %s%s%s", store.ErrCorrupt, c.report.Path, strings.Join(list, "; "), rest, adviceRestore)
}

func (c *checker) problem(format string, args ...any) {
	if len(c.report.Problems) >= maxProblems {
		c.more++
		return
	}
	c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
}

// identity reads the meta bucket: format version and store id.
func (c *checker) identity() {
	t, ok := c.trees[string(bucketMeta)]
	if !ok {
		c.fatal = fmt.Errorf("%w: %s is a bbolt file, but not a Berth state (it has no bucket %q)%s",
			store.ErrCorrupt, c.report.Path, bucketMeta, adviceRestore)
		return
	}
	c.walk(t, "the meta bucket", func(e element) {
		v, err := unseal(e.key, e.value)
		switch {
		case err != nil:
			c.problem("the entry %s of the meta bucket is damaged", record.Quote(e.key))
		case bytes.Equal(e.key, keyFormat):
			c.report.Format = parseFormat(v)
		case bytes.Equal(e.key, keyID):
			c.report.ID = string(v)
		}
	})
	switch {
	case !c.ok():
	case c.report.Format > Format:
		c.fatal = fmt.Errorf("%w: %s has the format %d, and this Berth knows formats up to %d: "+
			"start the newer Berth that wrote it, or put an older backup in its place with `berth state restore FILE`",
			store.ErrCorrupt, c.report.Path, c.report.Format, Format)
	case c.report.Format < 1:
		c.problem("the format version is missing")
	case !validID(c.report.ID):
		c.problem("the store id is missing")
	}
}

// records checks every record of the data bucket, and that there is no bucket that does not belong here.
func (c *checker) records() {
	t, ok := c.trees[string(bucketData)]
	if !ok {
		c.problem("the bucket %q is missing", bucketData)
		return
	}
	for name := range c.trees {
		if name != string(bucketData) && name != string(bucketMeta) {
			c.problem("there is a bucket %q that Berth does not know", name)
		}
	}
	c.walk(t, "the data bucket", func(e element) {
		v, err := unseal(e.key, e.value)
		if e.bucket || err != nil {
			c.problem("the record %s is damaged", record.Quote(e.key))
			return
		}
		c.report.Records++
		c.report.Bytes += int64(len(e.key) + len(v))
	})
}

// freePages checks the list of free pages: each is in the file, and no part of a tree.
func (c *checker) freePages() {
	if c.meta.freelist == noFreelist {
		return
	}
	p, err := c.readPage(c.meta.freelist, 0)
	switch {
	case err != nil:
		c.problem("the list of free pages, page %d, %v", c.meta.freelist, err)
		return
	case p.flags != flagFreelist:
		c.problem("page %d is not the list of free pages", c.meta.freelist)
		return
	case !c.mark(p.id, uint64(len(p.data)/c.meta.pageSize)):
		c.problem("page %d, the list of free pages, is used twice", p.id)
		return
	}
	ids, n := p.data[pageHeader:], uint64(p.count)
	if n == 0xFFFF { // the number did not fit its field: it comes first
		n, ids = order.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		c.problem("the list of free pages has %d entries, more than fit it", n)
		return
	}
	for i := range n {
		if id := order.Uint64(ids[8*i:]); !c.mark(id, 1) {
			c.problem("page %d is free and used, or free twice", id)
		}
	}
	c.report.Free = int(n)
}

// lostPages finds pages that are neither used nor free.
func (c *checker) lostPages() {
	if c.meta.freelist == noFreelist || c.more > 0 {
		return
	}
	for id := range c.meta.pages {
		if c.seen[id/64]&(1<<(id%64)) == 0 {
			c.problem("page %d is neither used nor free", id)
		}
	}
}
