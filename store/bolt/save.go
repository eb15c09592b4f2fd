package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInPlace is the error of Save if the path leads to the open file.
var ErrInPlace = errors.New("there is nothing to write again")

// Saved is the result of Save.
type Saved struct {
	Report Report // of the new file
	// Kept is the new path of a file that somebody else had put there; empty if there was none.
	Kept string
	// Restart is why the store refuses writes until it is reopened; nil if it continues.
	Restart error
}

// Save writes the content of the open store to its path, if the path no longer leads to the open file, and continues
// with the new file. It keeps a file at the path under a name with the time. It returns ErrInPlace if nothing is wrong,
// and store.ErrLocked if another process uses the path.
//
// Earlier views finish on the old file.
func (s *Store) Save(ctx context.Context) (done Saved, err error) {
	err = s.commit.quietly(ctx, func() (err error) {
		done, err = s.save(ctx, s.cfg.Now())
		return err
	})
	return done, err
}

// save is Save on the committer's goroutine. Nothing is written meanwhile.
func (s *Store) save(ctx context.Context, now time.Time) (done Saved, err error) {
	old := s.handle()
	if s.astray(old) == nil {
		return done, fmt.Errorf("%s is in its place: %w", s.files.db, ErrInPlace)
	}
	if gone := s.gone.Load(); gone != nil {
		return done, *gone
	}
	if err := s.files.makeDir(); err != nil {
		return done, fmt.Errorf("%w; write a backup elsewhere with `berth state backup FILE`, and restore that backup "+
			"with `berth state restore`", err)
	}
	if err := s.relock(ctx, now); err != nil {
		return done, err
	}
	if err := s.files.unheld(); err != nil {
		return done, err
	}
	if _, err := s.files.stage(ctx, func(w *os.File) error { return s.copyTo(ctx, old, w) }); err != nil {
		return done, fmt.Errorf("write the state again (nothing was changed): %w", err)
	}
	if done.Kept, err = s.files.exchange(s.id, now); err != nil {
		return done, err
	}
	h, report, err := openHandle(ctx, s.files.db, s.cfg)
	done.Report = report
	if err != nil {
		return done, err
	}
	s.log.WithField("records", report.Records).Warnf("%s was written again", s.files.db)
	if done.Restart = s.commit.brokenNow(); done.Restart != nil {
		return done, h.close(false)
	}
	s.exchange(h)
	return done, nil
}

// relock takes the lock of the path, if the current lock file is gone together with the state's file.
func (s *Store) relock(ctx context.Context, now time.Time) error {
	var there, held unix.Stat_t
	err := unix.Fstat(int(s.lock.Fd()), &held)
	if err == nil && unix.Lstat(s.files.lock, &there) == nil && there.Dev == held.Dev && there.Ino == held.Ino {
		return nil
	}
	lock, err := s.files.acquire(ctx, s.cfg.LockTimeout, now)
	if err != nil {
		return err
	}
	old := s.lock
	s.lock = lock
	return old.Close()
}

// exchange makes h the open file. The old one is closed when its last reader has left.
func (s *Store) exchange(h *handle) {
	s.mu.Lock()
	old := s.open
	s.open = h
	idle := old.users == 0
	s.mu.Unlock()
	if idle {
		s.closeOld(old)
	}
}

// closeOld closes a file that Save has replaced.
func (s *Store) closeOld(h *handle) {
	if err := h.close(false); err != nil {
		s.log.WithError(err).Warnf("Berth could not close the old file of %s", s.files.db)
	}
}

// brokenNow returns why writes are refused until the store is reopened.
func (c *committer) brokenNow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}
