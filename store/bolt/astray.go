package bolt

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"berth/store"
)

// If a file was removed or replaced, the kernel still serves it to the process that has it open, and deletes it with
// that process. So the path is checked before each transaction and after each commit. What the next start would not
// find is not acknowledged.

// adviceAstray is the end of an error about a file that is not at its path.
const adviceAstray = "so the next start would not find new leases, and Berth gives no addresses: move the file back, " +
	"or let the daemon write its state there (`berth state save`); `berth state backup` still works"

// astray returns why the path no longer leads to the open file, or nil. The error wraps store.ErrAstray.
func (s *Store) astray(h *handle) error {
	path := s.files.db
	var there, held unix.Stat_t
	if err := unix.Fstat(int(h.file.Fd()), &held); err != nil {
		return fmt.Errorf("%w: the open file of the state %s cannot be examined: %w", store.ErrAstray, path, err)
	}
	err := unix.Lstat(path, &there)
	switch {
	case err == nil && there.Dev == held.Dev && there.Ino == held.Ino && held.Nlink > 0:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is not the file that Berth has open, which was %s, %s", store.ErrAstray,
			path, became(&held), adviceAstray)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %s no longer exists (it was %s), %s", store.ErrAstray, path, became(&held),
			adviceAstray)
	}
	return fmt.Errorf("%w: Berth cannot see whether %s is still the open file (%w), so it gives no addresses",
		store.ErrAstray, path, err)
}

// became says what happened to an open file that is no longer at its path.
func became(held *unix.Stat_t) string {
	if held.Nlink == 0 {
		return "removed"
	}
	return "moved elsewhere"
}

// astray checks the path before and after each transaction, and logs a change.
func (c *committer) astray() error {
	err := c.s.astray(c.s.handle())
	switch {
	case err != nil && !c.missing:
		c.s.log.Error(err)
	case err == nil && c.missing:
		c.s.log.Warnf("%s is in its place again, and the store works again", c.s.files.db)
	}
	c.missing = err != nil
	return err
}
