package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
)

// TestTokensFollowNoLink: a link that somebody puts into a state directory he can write to is not written through,
// and its target is not read as tokens.
func TestTokensFollowNoLink(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, TokenFile), filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	must(t, os.Symlink(victim, path+".part"))
	tokens, err := OpenTokens(path, time.Now)
	must(t, err)
	_, err = tokens.create(api.TokenRequest{Name: "ci", Role: api.RoleAdmin}, time.Time{}, "root")
	must(t, err)
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file that a link leads to holds %q, %v", text, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the tokens are in %v, %v", info.Mode(), err)
	}

	const stranger = 4711
	theirs := filepath.Join(dir, "theirs")
	for want, change := range map[string]func(path string) error{
		"is a symbolic link": func(path string) error {
			must(t,
				os.Rename(path, theirs))
			return os.Symlink(theirs, path)
		},
		"users other than the":    func(path string) error { return os.Chmod(path, 0o620) },
		"belongs to neither root": func(path string) error { return os.Chown(path, stranger, -1) },
	} {
		_ = os.Remove(path)
		// This rewrites the file.
		one := api.TokenRequest{Name: "t" + string(rune('a'+len(tokens.List()))), Role: api.RoleAdmin}
		_, err := tokens.create(one, time.Time{}, "root")
		must(t, err)
		must(t, change(path))
		if _, err := OpenTokens(path, time.Now); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
