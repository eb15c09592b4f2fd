package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteWith: a file that root writes does not follow a link. The mode of another user's file in its place does
// not decide who may read it.
func TestWriteWith(t *testing.T) {
	const stranger = 4711
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, mode fs.FileMode, uid int) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte("before"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(at(name), uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	put("own", 0o640, os.Geteuid())
	put("theirs", 0o644, stranger)
	put("far", 0o644, os.Geteuid())
	if err := os.Symlink(at("far"), at("link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"new": 0o600, "own": 0o640, "theirs": 0o600, "link": 0o600} {
		err := WriteWith(PrivateMode, nil, at(name), func(w io.Writer) error {
			_, err := io.WriteString(w, "after")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(at(name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
		if text, err := os.ReadFile(at(name)); err != nil || string(text) != "after" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if text, err := os.ReadFile(at("far")); err != nil || string(text) != "before" {
		t.Errorf("where the link led: %q, %v", text, err)
	}
}
