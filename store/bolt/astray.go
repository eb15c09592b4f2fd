package bolt

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"berth/store"
)

// A file that was removed, or in whose place another one was put, is served on by the kernel to whoever has it open,
// and gone with him. So the path is looked at before each transaction and after each commit: what the next start would
// not find is not acknowledged.

// adviceAstray ends the sentence of a file that is not in its place.
const adviceAstray = "so that the next start would not find what is given now, and nothing is given: move the " +
	"file back, " +
	"or have the daemon write what it holds there (`berth state save`); `berth state backup` works meanwhile"

// astray says why the path does not lead to an open file any more; nil when it does. The error wraps store.ErrAstray.
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

// became is what was done with an open file that its path does not lead to.
func became(held *unix.Stat_t) string {
	if held.Nlink == 0 {
		return "removed"
	}
	return "moved elsewhere"
}

// astray looks at the place before and after each transaction, and logs when that changes.
func (c *committer) astray() error {
	err := c.s.astray(c.s.handle())
	switch {
	case err != nil && !c.missing:
		c.s.log.Error(err)
	case err == nil && c.missing:
		c.s.log.Warnf("%s is in its place again, and the store goes on", c.s.files.db)
	}
	c.missing = err != nil
	return err
}
