package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A state that no daemon reads is not restored in silence.
func TestUnreadState(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		unit, plugin   bool
		state          string // below the test's directory
		want           []string
	}{
		{name: "no service here", state: "a"},
		{name: "another directory", settings: "BERTH_STATE=DIR/b\n", state: "a",
			want: []string{"the service berth reads the state in DIR/b (", "and not what is in DIR/a now", "--state DIR/a"}},
		{name: "its directory", settings: "# state\nBERTH_STATE=\"DIR/a\"\n", state: "a"},
		{name: "by a link", settings: "BERTH_STATE=DIR/link\n", state: "a"},
		{name: "the default", unit: true, state: "a", want: []string{"the service berth reads the state in /var/lib/berth,"}},
		{name: "no state at all", settings: "BERTH_STATE=DIR/a\nBERTH_STORE=mem\n", state: "a",
			want: []string{"its store is mem ("}},
		{name: "a shared store", settings: "BERTH_STATE=DIR/a\nBERTH_STORE=etcd\n", state: "a",
			want: []string{"what is in etcd is no part of this backup"}},
		{name: "a plugin", plugin: true, state: "a", want: []string{"a managed plugin keeps its state in DIR/plugin"}},
		{name: "the plugin's", plugin: true, state: "plugin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				fine(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			for _, name := range []string{"a", "b", "plugin"} {
				fine(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			}
			fine(t, os.Symlink("a", filepath.Join(dir, "link")))
			if c.settings != "" {
				write("settings", strings.ReplaceAll(c.settings, "DIR", dir))
			}
			if c.unit {
				write("unit", "")
			}
			if c.plugin {
				write("plugin/"+stateFile, "")
			}
			r := stateReaders{filepath.Join(dir, "settings"), []string{filepath.Join(dir, "unit")},
				filepath.Join(dir, "plugin*", stateFile)}
			got := strings.Join(r.unread(filepath.Join(dir, c.state)), "\n")
			if len(c.want) == 0 && got != "" {
				t.Errorf("it says %q", got)
			}
			for _, text := range c.want {
				if text = strings.ReplaceAll(text, "DIR", dir); !strings.Contains(got, text) {
					t.Errorf("it says %q, and not %q", got, text)
				}
			}
		})
	}
}
