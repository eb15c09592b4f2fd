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
const adviceAstray = "so that the next start would not find what is given now, and nothing is given: move the " +
	"file back, " +
	"or have the daemon write what it holds there (`berth state save`); `berth state backup` works meanwhile"

// astray returns why the path no longer leads to the open file, or nil. The error wraps store.ErrAstray.
func (s *Store) astray(h *handle) error {
	path := s.files.db
	var there, held unix.Stat_t
	if err := unix.Fstat(int(h.file.Fd()), &held); err != nil {
		return fmt.Errorf("%w: the open file of the state %s cannot be looked at: %w", store.ErrAstray, path, err)
	}
	err := unix.Lstat(path, &there)
	switch {
	case err == nil && there.Dev == held.Dev && there.Ino == held.Ino && held.Nlink > 0:
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is another file than the one that is open, which was %s, %s", store.ErrAstray, path,
			became(&held), adviceAstray)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%w: %s is not there any more, it was %s, %s", store.ErrAstray, path, became(&held),
			adviceAstray)
	}
	return fmt.Errorf("%w: whether %s is still the file that is open cannot be seen (%w), so that nothing is given",
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
