// Package berth_test holds the rooms of the repository to the order in which a request passes through them (docs/design.md).
package berth_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists, for each room, the rooms that its code (not its tests) may import. Nothing imports cmd/berth.
var mayImport = map[string][]string{
	"store":                 {},
	"store/bolt":            {"store", "store/internal/record", "store/internal/watch"},
	"store/etcd":            {"store", "store/internal/record", "store/internal/scan", "store/internal/watch"},
	"store/etcd/etcdtest":   {},
	"store/internal/record": {"store"},
	"store/internal/scan":   {"store"},
	"store/internal/watch":  {"store"},
	"store/mem":             {"store", "store/internal/record", "store/internal/scan", "store/internal/watch"},
	"store/storetest":       {"store"},
	"internal/alloc":        {},
	"internal/ipam":         {"internal/alloc", "store"},
	"internal/plan":         {"internal/alloc", "internal/ipam"},
	"driver":                {"internal/alloc", "internal/ipam"},
	"internal/admin":        {"internal/ipam", "store"},
	"internal/hook":         {"internal/ipam"},
	"internal/docker":       {"internal/ipam"},
	"internal/deploy":       {"internal/ipam"},
	"cmd/berth":             {"driver", "internal/admin", "internal/alloc", "internal/deploy", "internal/docker", "internal/hook", "internal/ipam", "internal/plan", "store", "store/bolt", "store/etcd", "store/mem"},
	"bench":                 {"driver", "internal/admin", "internal/alloc", "internal/docker", "internal/ipam", "store", "store/bolt", "store/etcd", "store/etcd/etcdtest", "store/mem"},
	"test/engine":           {},
	"test/cluster":          {},
	"test/crash":            {},
}

// onlyStandard are the rooms that import nothing but the standard library, other rooms, and range arithmetic.
var onlyStandard = []string{"store", "internal/alloc", "internal/ipam"}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		room := path.Dir(filepath.ToSlash(file))
		seen[room] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, file, room, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range mayImport {
		if !seen[room] && !strings.HasPrefix(room, "test/") {
			t.Errorf("the room %s has no code", room)
		}
	}
}

func checkImport(t *testing.T, file, room, imported string) {
	t.Helper()
	allowed, known := mayImport[room]
	if !known {
		t.Errorf("%s: the room %s is not in the list of rooms", file, room)
		return
	}
	if other, ours := strings.CutPrefix(imported, "berth/"); ours {
		if !slices.Contains(allowed, other) {
			t.Errorf("%s: %s must not import %s", file, room, other)
		}
		return
	}
	outside := strings.Contains(strings.Split(imported, "/")[0], ".")
	if outside && imported != "go4.org/netipx" && slices.Contains(onlyStandard, room) {
		t.Errorf("%s: %s must not import %s", file, room, imported)
	}
}
