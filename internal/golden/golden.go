// Package golden compares what this version writes and shows with the files that 1.0 wrote (1.0/). It keeps the promise
// of docs/formats.md. Only tests import it.
//
// A test passes what it has now to JSON or Names, or reads a file and opens it. Nothing of a file may be lost or
// changed. What is new must be recorded: -update-golden adds it to the file. The flag never replaces what a file has.
// CONTRIBUTING.md describes how to change a file.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// update is set in a run that adds to the golden files.
var update = flag.Bool("update-golden", false, "add what is new to the files of internal/golden/1.0")

// Path is that of a golden file. Tests run in the directory of their package, which is below that of go.mod.
func Path(t testing.TB, name string) string {
	t.Helper()
	root, err := filepath.Abs(".")
	for err == nil && root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, "internal/golden/1.0", name)
		}
		root = filepath.Dir(root)
	}
	t.Fatalf("no directory above this test has a go.mod: %v", err)
	return ""
}

// Read returns a golden file; nil if there is none and the run may write it.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(Path(t, name))
	if errors.Is(err, fs.ErrNotExist) && *update {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Write writes a golden file that is new, or has more than before.
func Write(t testing.TB, name string, text []byte) {
	t.Helper()
	file := Path(t, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Bytes returns a golden file. The first run with -update-golden writes it from what this version encodes.
func Bytes(t testing.TB, name string, now []byte) []byte {
	t.Helper()
	text := Read(t, name)
	if text == nil {
		Write(t, name, now)
		text = now
	}
	return text
}

// Names holds a list of names, one a line, to a golden file. Their order does not count.
func Names(t testing.TB, name string, now []string) {
	t.Helper()
	was := strings.Split(strings.TrimSuffix(string(Read(t, name)), "\n"), "\n")
	if was[0] == "" {
		was = nil
	}
	for _, line := range was {
		if !slices.Contains(now, line) {
			t.Errorf("%s: %q is gone; a name stays in 1.x (docs/formats.md)", name, line)
		}
	}
	added := slices.DeleteFunc(slices.Clone(now), func(line string) bool { return slices.Contains(was, line) })
	if len(added) == 0 {
		return
	}
	if !*update {
		t.Errorf("%s: %q is new; record it with -update-golden", name, added)
		return
	}
	all := append(was, added...)
	slices.Sort(all)
	Write(t, name, []byte(strings.Join(slices.Compact(all), "\n")+"\n"))
}

// JSON holds a value to a golden file, as JSON. Fields may come; all else is as it was.
func JSON(t testing.TB, name string, now any) {
	t.Helper()
	raw, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	now = Plain(t, raw)
	text := Read(t, name)
	all := now
	var c comparison
	if text != nil {
		all = c.merged("", Plain(t, text), now)
	}
	for _, lost := range c.lost {
		t.Errorf("%s: %s", name, lost)
	}
	switch {
	case text != nil && len(c.added) == 0:
	case *update:
		text, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		Write(t, name, append(text, '\n'))
	default:
		t.Errorf("%s: these fields are new; record them with -update-golden: %s", name, strings.Join(c.added, ", "))
	}
}

// Plain reads JSON into maps, lists and texts. Numbers keep all their digits.
func Plain(t testing.TB, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

// comparison is what differs between a value of 1.0 and one of now.
type comparison struct {
	lost  []string // what is gone, or changed
	added []string // fields that are new, by their paths
}

// merged returns all that the value of 1.0 has, with the new fields of the one of now.
func (c *comparison) merged(at string, was, now any) any {
	switch was := was.(type) {
	case map[string]any:
		if now, ok := now.(map[string]any); ok {
			return c.mergedFields(at, was, now)
		}
	case []any:
		if now, ok := now.([]any); ok && len(was) == len(now) {
			all := make([]any, len(was))
			for i := range was {
				all[i] = c.merged(fmt.Sprintf("%s[%d]", at, i), was[i], now[i])
			}
			return all
		}
	}
	if !reflect.DeepEqual(was, now) {
		c.lost = append(c.lost, fmt.Sprintf("%s was %v and is %v", at, was, now))
	}
	return was
}

func (c *comparison) mergedFields(at string, was, now map[string]any) map[string]any {
	all := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(was)) {
		if _, there := now[field]; !there {
			c.lost = append(c.lost, fmt.Sprintf("%s.%s is gone, and was %v", at, field, was[field]))
			continue
		}
		all[field] = c.merged(at+"."+field, was[field], now[field])
	}
	for _, field := range slices.Sorted(maps.Keys(now)) {
		if _, there := was[field]; !there {
			c.added = append(c.added, at+"."+field)
			all[field] = now[field]
		}
	}
	return all
}
