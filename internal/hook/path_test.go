package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// TestWayToTheHooks: hooks do not run from a directory that others could replace, through the directories above it
// or through links.
func TestWayToTheHooks(t *testing.T) {
	const stranger = 4711
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	mkdir := func(name string, mode os.FileMode) {
		t.Helper()
		must(t, os.MkdirAll(at(name), 0o755))
		must(t, os.Chmod(at(name), mode))
	}
	mkdir("safe/hooks", 0o755)
	mkdir("open/hooks", 0o755)
	mkdir("open", 0o777)
	mkdir("group/deep/hooks", 0o755)
	mkdir("group", 0o775)
	mkdir("sticky/hooks", 0o755)
	mkdir("sticky", 0o777|os.ModeSticky)
	mkdir("drop", 0o777|os.ModeSticky)
	mkdir("theirs/hooks", 0o755)
	must(t, os.Chown(at("theirs"), stranger, -1))
	must(t, os.Symlink(at("safe/hooks"), at("link")))
	must(t, os.Symlink("safe", at("way")))
	must(t, os.Symlink(at("open"), at("wrong")))
	must(t, os.Symlink(at("safe"), at("drop/link")))
	must(t, os.Lchown(at("drop/link"), stranger, -1))
	must(t, os.Symlink("loop", at("loop")))
	for row := range ipamtest.Rows(2, `
		safe/hooks
		sticky/hooks
		way/hooks
		link | is a symbolic link
		open/hooks | $/open is writable for users other
		group/deep/hooks | $/group is writable for users other
		theirs/hooks | $/theirs belongs to neither root
		wrong/hooks | $/open is writable for users other
		drop/link/hooks | $/drop/link is another user's link
		drop | is writable for users other
		loop/hooks | has too many links
		nothing/hooks | no such file
	`) {
		row[1] = strings.Replace(row[1], "$", at(""), 1)
		err := checkDir(at(row[0]))
		if (err == nil) != (row[1] == "") || err != nil &&
			(!strings.Contains(err.Error(), row[1]) || !strings.Contains(err.Error(), at(row[0]))) {
			t.Errorf("%s: %v; want %q", row[0], err, row[1])
		}
	}
}
