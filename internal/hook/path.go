package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A directory is only as safe as the way to it: who can write to one above it can put another in its place. So the
// whole way from the root is looked at, through the links on it.

// maxLinks is how many links a way may have, as path_resolution(7) has it.
const maxLinks = 40

// checkDir refuses a directory that is none or is a link, and one in which, or in whose place, others than root and the
// daemon's user could put programs. dir is absolute.
func checkDir(dir string) error {
	if err := trustedWay(dir, os.Geteuid()); err != nil {
		return fmt.Errorf("the directory of the hooks, %s, %w", dir, err)
	}
	return nil
}

// trustedWay walks to a directory; its error is the rest of a sentence about it.
func trustedWay(dir string, uid int) error {
	at, rest, links := "/", segments(dir), 0
	for ; ; rest = rest[1:] {
		if err := trustedDir(at, uid, len(rest) == 0); err != nil {
			if len(rest) == 0 {
				return err
			}
			return fmt.Errorf("cannot be trusted, because %s, which is on the way there, %w", at, err)
		}
		if len(rest) == 0 {
			return nil
		}
		next := filepath.Join(at, rest[0])
		info, err := os.Lstat(next)
		if err != nil {
			return fmt.Errorf("cannot be looked at: %w", err)
		}
		if info.Mode().Type() != os.ModeSymlink {
			at = next
			continue
		}
		if len(rest) == 1 {
			return errors.New("is a symbolic link: give the directory that it leads to")
		}
		if links++; links > maxLinks || !ownedBy(info, uid) {
			return fmt.Errorf("cannot be trusted, because %s, which is on the way there, is a link of somebody else, "+
				"or one of very many", next)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("cannot be looked at: %w", err)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		// The walk begins anew, at the root, which was looked at: the first of rest is dropped as the loop goes on.
		at, rest = "/", slices.Concat([]string{""}, segments(target), rest[1:])
	}
}

// segments are the names on the way from the root.
func segments(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// trustedDir says why others could exchange what lies in a directory. Where it is sticky (/tmp) they can add to it, and
// not exchange what belongs to others; that is enough on the way, and not at its end.
func trustedDir(dir string, uid int, end bool) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be looked at: %w", err)
	case !info.IsDir():
		return errors.New("is no directory")
	case !ownedBy(info, uid):
		return errors.New("belongs to neither root nor the daemon's user: chown it")
	case info.Mode().Perm()&0o022 != 0 && (end || info.Mode()&os.ModeSticky == 0):
		return errors.New("can be written by others than its owner: chmod go-w it")
	}
	return nil
}
