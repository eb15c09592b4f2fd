package bolt

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"berth/store"
)

// isNoSpace recognises a full disk, a spent quota and a file that may not grow. bbolt passes some of these on as text
// only (growing the file), so the text is looked at too.
func isNoSpace(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || err != nil && strings.HasSuffix(err.Error(), ": "+e.Error()) {
			return true
		}
	}
	return false
}

// spaceError wraps ErrNoSpace around an error that says so.
func spaceError(err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return err
}
