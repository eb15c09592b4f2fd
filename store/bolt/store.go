// Package bolt keeps a store.Store in one bbolt file of one host. It promises what store promises. If the file is
// damaged, cut, replaced or emptied, opening it fails with the cause and the next step. It never treats such a file as
// new, and never crashes or hangs on one.
//
// Functions passed to Update wait in a queue. One of the callers, the leader, runs all of them, one after the other, in
// one bbolt transaction, commits once, and answers them all (committer.go). A function writes to a buffer (writes.go);
// after success its writes become records with a checksum (seal.go) in the one data bucket. View uses bbolt's read
// transactions.
//
// Next to berth.db, berth.id names the store that belongs here, and berth.lock names the process that has it open.
// While the store is open, astray.go checks that the path still leads to the open file. Writes to a file that was moved
// or deleted are not acknowledged.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"

	"berth/store"
	"berth/store/internal/record"
	"berth/store/internal/watch"
)

// Config says where the store is and how it is opened.
type Config struct {
	// Path is the path of the file, for example /var/lib/berth/berth.db. Its directory is created (0700) if it is
	// missing.
	Path string
	// Log receives messages that are not errors of a call; nil: nothing is logged.
	Log *logrus.Entry
	// LockTimeout is how long Open waits for a process that is about to release the file; 0: one second.
	LockTimeout time.Duration
	// Now returns the time for the lock file; nil: time.Now.
	Now func() time.Time
	// Committed is called with the duration and error of each commit of changes; nil: none. It is called while no other
	// commit can begin, and must return at once.
	Committed func(took time.Duration, err error)
	// NoSync omits every fsync of the data; for tests only. A crash of the machine loses acknowledged writes.
	NoSync bool
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		c.Log = logrus.NewEntry(quiet)
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Committed == nil {
		c.Committed = func(time.Duration, error) {}
	}
	return c
}

// Store is a store.Store in a bbolt file. Open makes it.
type Store struct {
	files   files
	cfg     Config
	id      string
	log     *logrus.Entry
	lock    *os.File
	commit  committer
	watches watch.Set

	gone atomic.Pointer[error] // why bbolt is unusable

	mu     sync.Mutex
	open   *handle   // Save replaces it
	idle   sync.Cond // views has become 0
	views  int
	closed bool
}

var _ store.Store = (*Store)(nil)

var (
	bucketMeta = []byte("meta")
	bucketData = []byte("data")
	keyFormat  = []byte("format")
	keyID      = []byte("id")
)

// Format is the version of the file's layout that this package writes. It is also the newest one that it reads.
const Format = 1

const (
	// mapSize is address space, not memory. bbolt must wait for all readers before it remaps a file that has outgrown
	// its map. So the map is larger than any state from the start.
	mapSize = 1 << 30
	// allocSize is the growth step of the file. Each growth costs one more fsync.
	allocSize = 4 << 20
	// fillPercent is how full a split page stays. Leases and events arrive in the order of their keys, so that page is
	// never written again. bbolt's default would leave it half empty.
	fillPercent = 0.9
)

// Open opens the store at cfg.Path, or creates it. It checks the whole file before it returns. An error wraps
// store.ErrLocked with the process that has the store open, or store.ErrCorrupt with the damage and the next step.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	f, err := newFiles(cfg.Path)
	if err != nil {
		return nil, err
	}
	if err := f.makeDir(); err != nil {
		return nil, err
	}
	lock, err := f.acquire(ctx, cfg.LockTimeout, cfg.Now())
	if err != nil {
		return nil, err
	}
	s := &Store{files: f, cfg: cfg, log: cfg.Log, lock: lock}
	s.idle.L = &s.mu
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.commit.init(s)
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	fresh, err := s.files.fresh()
	if err != nil {
		return err
	}
	if fresh {
		if err := s.files.create(s.cfg.NoSync); err != nil {
			return err
		}
	}
	h, report, err := openHandle(ctx, s.files.db, s.cfg)
	if err != nil {
		return err
	}
	s.open, s.id = h, report.ID
	healed, err := s.files.matchID(report.ID)
	if err != nil {
		return err
	}
	if healed && !fresh {
		s.log.WithField("id", report.ID).Warnf("%s was missing and was written again", s.files.id)
	}
	return nil
}

// guard turns a panic into an error, even a memory fault in the mapped file. Use: defer guard(&err, explain)().
func guard(err *error, explain func(fault any) error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if fault := recover(); fault != nil {
			*err = explain(fault)
		}
	}
}

// ID returns the store's id, 32 random hexadecimal digits. A backup has the id of its store.
func (s *Store) ID() string { return s.id }

// Path returns the path of the file.
func (s *Store) Path() string { return s.files.db }

// View implements store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	h, err := s.enter()
	if err != nil {
		return err
	}
	defer s.leave(h)
	btx, err := s.begin(h, false)
	if err != nil {
		return err
	}
	t := &tx{rules: record.Rules{ReadOnly: true}}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		t.rules.Over = true
		_ = btx.Rollback() // fails only if the read transaction is already over
		if t.scanned > scannedMany {
			h.dropPages()
		}
		if p := recover(); p != nil {
			if !h.isFault(p) {
				panic(p)
			}
			err = s.faultError(p)
		}
	}()
	t.bucket = btx.Bucket(bucketData)
	return fn(t)
}

// scannedMany is the number of records that a View may read before it drops the mapped pages.
const scannedMany = 16384

// begin begins a bbolt transaction. A fault in it means that the file was cut even before the end of its meta pages. It
// leaves bbolt's locks held for ever, so bbolt is not called afterwards.
func (s *Store) begin(h *handle, writable bool) (btx *bbolt.Tx, err error) {
	if gone := s.gone.Load(); gone != nil {
		return nil, *gone
	}
	defer guard(&err, func(fault any) error {
		err := s.faultError(fault)
		s.gone.Store(&err)
		return err
	})()
	if btx, err = h.db.Begin(writable); err != nil {
		return nil, fmt.Errorf("open a transaction on the state %s: %w", s.files.db, err)
	}
	return btx, nil
}

func (s *Store) faultError(p any) error {
	return fmt.Errorf("%w: a page of %s cannot be read (%v): the file was cut short or its disk fails%s",
		store.ErrCorrupt, s.files.db, p, adviceRestore)
}

// enter counts a reader, so that Close can wait for it, and returns the file for it.
func (s *Store) enter() (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: %s", store.ErrClosed, s.files.db)
	}
	s.views++
	s.open.users++
	return s.open, nil
}

func (s *Store) leave(h *handle) {
	s.mu.Lock()
	s.views--
	h.users--
	last := h.users == 0 && h != s.open // the last reader of a file that Save has replaced
	if s.views == 0 {
		s.idle.Broadcast()
	}
	s.mu.Unlock()
	if last {
		s.closeOld(h)
	}
}

// handle returns the open file.
func (s *Store) handle() *handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.commit.join(&call{ctx: ctx, fn: fn})
}

// Watch implements store.Store. The changes of one Update are sorted by key. A reader that falls too far behind ends
// with store.ErrLagged; Close ends it with store.ErrClosed.
func (s *Store) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	return s.watches.Watch(ctx, prefix)
}

// Close implements store.Store. It runs updates that wait in the queue. A second Close returns ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("%w: %s", store.ErrClosed, s.files.db)
	}
	s.closed = true
	s.mu.Unlock()
	s.commit.close()
	s.mu.Lock()
	for s.views > 0 {
		s.idle.Wait()
	}
	s.mu.Unlock()
	s.watches.Close(store.ErrClosed)
	return s.release()
}

// release releases what Open has acquired.
func (s *Store) release() error {
	var errs []error
	if s.open != nil {
		errs = append(errs, s.open.close(s.commit.wedged || s.gone.Load() != nil))
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the state %s: %w", s.files.db, err)
	}
	return nil
}
