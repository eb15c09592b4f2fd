package bolt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksInTheDirectory: if a person puts links into a state directory that they can write to, Berth writes to
// none of their targets.
func TestLinksInTheDirectory(t *testing.T) {
	const precious = "precious, and longer than what a lock file holds; " + "0123456789012345678901234567890123456789"
	for _, c := range []struct {
		name    string
		hard    bool
		refused string // what Open says; empty: it creates a state
	}{
		{"berth.lock", false, "is a symbolic link"},
		{"berth.lock", true, "has a second name elsewhere"},
		{"berth.id.new", false, ""},
		{"berth.id.new", true, ""},
		{"berth.db.new", false, ""},
		{"berth.db.new", true, ""},
		{"berth.db", false, "is a symbolic link"},
	} {
		dir := t.TempDir()
		victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "state", "berth.db")
		must(t, os.WriteFile(victim, []byte(precious), 0o600))
		must(t, os.Mkdir(filepath.Dir(path), 0o777))
		link := os.Symlink
		if c.hard {
			link = os.Link
		}
		must(t, link(victim, filepath.Join(filepath.Dir(path), c.name)))
		s, err := Open(t.Context(), Config{Path: path})
		switch {
		case err == nil && c.refused == "":
			put(t, s, "a", "1")
			must(t, s.Close())
		case err == nil:
			t.Errorf("%s: it is opened", c.name)
			must(t, s.Close())
		case c.refused == "" || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), c.name):
			t.Errorf("%s: %v; want %q", c.name, err, c.refused)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != precious {
			t.Errorf("%s: what it leads to holds %d bytes now, %v", c.name, len(text), err)
		}
	}
}
