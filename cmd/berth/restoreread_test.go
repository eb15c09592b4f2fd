package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// Restoring a state that no daemon reads gives a warning.
func TestUnreadState(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		# the settings, with a comma between them, and what is there besides; the state; what is said of it
		| | a
		BERTH_STATE=DIR/b | | a | berth reads the state in DIR/b (; and not what is in DIR/a now; --state DIR/a
		BERTH_STATE="DIR/a",# state | | a
		BERTH_STATE=DIR/link | | a
		| unit | a | the service berth reads the state in /var/lib/berth,
		BERTH_STATE=DIR/a,BERTH_STORE=mem | | a | its store is mem (
		BERTH_STATE=DIR/a,BERTH_STORE=etcd | | a | what is in etcd is no part of this backup
		| plugin | a | a managed plugin keeps its state in DIR/plugin
		| plugin | plugin
	`) {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				fine(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			for _, name := range []string{"a", "b", "plugin"} {
				fine(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			}
			fine(t, os.Symlink("a", filepath.Join(dir, "link")))
			if c[0] != "" {
				write("settings", strings.NewReplacer("DIR", dir, ",", "\n").Replace(c[0]))
			}
			switch c[1] {
			case "unit":
				write("unit", "")
			case "plugin":
				write("plugin/"+stateFile, "")
			}
			r := stateReaders{filepath.Join(dir, "settings"), []string{filepath.Join(dir, "unit")},
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
