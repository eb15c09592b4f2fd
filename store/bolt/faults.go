package bolt

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"berth/store"
)

// isNoSpace reports whether an error is a full disk, an exceeded quota or a file size limit. bbolt passes some of these
// on only as text, so it also checks the text.
func isNoSpace(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || err != nil && strings.HasSuffix(err.Error(), ": "+e.Error()) {
			return true
		}
	}
	return false
}

// spaceError wraps ErrNoSpace around such an error.
func spaceError(err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return err
}
