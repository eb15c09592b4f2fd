package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/cli"
	"berth/internal/ipam/ipamtest"
)

// Restoring a state that no daemon reads gives a warning.
func TestUnreadState(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		# the settings, with a comma between them, and what is there besides; the state; what is said of it
		| | a
		BERTH_STATE=DIR/b | | a | berth reads the state in DIR/b (; not the restored state in DIR/a; --state DIR/a
		BERTH_STATE="DIR/a",# state | | a
		BERTH_STATE=DIR/link | | a
		| unit | a | the service berth reads the state in /var/lib/berth,
		BERTH_STATE=DIR/a,BERTH_STORE=mem | | a | keeps its state only in memory (
		BERTH_STATE=DIR/a,BERTH_STORE=etcd | | a | which this backup does not have
		BERTH_STATE=DIR/b,BERTH_STORE=mem | | a | keeps its state only in memory; so it does not read the restored state in DIR/a
		| plugin | usual | a managed plugin keeps its state in DIR/plugin, so it does not read the restored state in DIR/usual
		| plugin | a
		| plugin | plugin
		| unit plugin | a | the service berth reads the state in /var/lib/berth,
	`) {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				fine(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			for _, name := range []string{"a", "b", "plugin", "usual"} {
				fine(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			}
			fine(t, os.Symlink("a", filepath.Join(dir, "link")))
			if c[0] != "" {
				write("settings", strings.NewReplacer("DIR", dir, ",", "\n").Replace(c[0]))
			}
			for word := range strings.FieldsSeq(c[1]) {
				write(map[string]string{"unit": "unit", "plugin": "plugin/" + stateFile}[word], "")
			}
			r := stateReaders{filepath.Join(dir, "usual"), filepath.Join(dir, "settings"), []string{filepath.Join(dir, "unit")},
				filepath.Join(dir, "plugin*", stateFile)}
			got := strings.Join(r.unread(filepath.Join(dir, c[2])), "\n")
			if c[3] == "" && got != "" {
				t.Errorf("it says %q", got)
			}
			for text := range strings.SplitSeq(strings.ReplaceAll(c[3], "DIR", dir), "; ") {
				if !strings.Contains(got, text) {
					t.Errorf("it says %q, and not %q", got, text)
				}
			}
		})
	}
}

// The directory of a daemon is compared only if it is one of this host.
func TestSharesPaths(t *testing.T) {
	for _, c := range []struct {
		name, socket string
		want         bool
	}{
		{"the daemon of this host", cli.DefaultAdminSocket, true},
		{"a daemon with its own socket", "state/admin.sock", true},
		{"a managed plugin", "/run/docker/plugins/0123abcd/berth-admin.sock", false},
		{"another host", "https://berth.example:7890", false},
	} {
		if got := sharesPaths(c.socket); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
