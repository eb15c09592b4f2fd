package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A directory is only as safe as its path: whoever can write to a parent directory can replace it. So each directory
// from the root is checked, including symbolic links.

// maxLinks is the maximum number of symbolic links in a path, from path_resolution(7).
const maxLinks = 40

// checkDir refuses a symbolic link and anything that is not a directory. It also refuses a directory that others than
// root and the daemon's user can change or replace. dir is absolute.
func checkDir(dir string) error {
	if err := trustedWay(dir, os.Geteuid()); err != nil {
		return fmt.Errorf("the directory of the hooks, %s, %w", dir, err)
	}
	return nil
}

// trustedWay checks each directory of a path. Its error is the end of a sentence about dir.
func trustedWay(dir string, uid int) error {
	at, rest, links := "/", segments(dir), 0
	for ; ; rest = rest[1:] {
		if err := trustedDir(at, uid, len(rest) == 0); err != nil {
			if len(rest) == 0 {
				return err
			}
			return fmt.Errorf("cannot be trusted, because its parent %s %w", at, err)
		}
		if len(rest) == 0 {
			return nil
		}
		next := filepath.Join(at, rest[0])
		info, err := os.Lstat(next)
		if err != nil {
			return fmt.Errorf("cannot be examined: %w", err)
		}
		if info.Mode().Type() != os.ModeSymlink {
			at = next
			continue
		}
		if len(rest) == 1 {
			return errors.New("is a symbolic link: give the directory that it leads to")
		}
		if links++; links > maxLinks || !ownedBy(info, uid) {
			return fmt.Errorf("cannot be trusted, because its parent %s is another user's link, or the path has "+
				"too many links", next)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("cannot be examined: %w", err)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		// Start again at the root, which is already checked: the loop drops the first of rest.
		at, rest = "/", slices.Concat([]string{""}, segments(target), rest[1:])
	}
}

// segments splits a path into names.
func segments(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// trustedDir returns why others could replace what lies in a directory. In a sticky directory (/tmp) they can add
// files, but not replace those of others. That is safe for a parent directory, but not for the last one.
func trustedDir(dir string, uid int, end bool) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be examined: %w", err)
	case !info.IsDir():
		return errors.New("is not a directory")
	case !ownedBy(info, uid):
		return errors.New("belongs to neither root nor the daemon's user: chown it")
	case info.Mode().Perm()&0o022 != 0 && (end || info.Mode()&os.ModeSticky == 0):
		return errors.New("is writable for users other than its owner: chmod go-w it")
	}
	return nil
}
