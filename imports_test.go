// Package berth_test checks which packages may import which. Imports follow the path of a request (docs/dev/design.md).
package berth_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists, for each package, the packages that its code (not its tests) may import. Nothing imports
// cmd/berth. Packages of the command line import neither the store nor the driver: they only call the daemon. Only
// cmd/berth imports them.
var mayImport = map[string][]string{
	"store":                 {},
	"store/bolt":            {"store", "store/internal/record", "store/internal/watch"},
	"store/etcd":            {"store", "store/internal/record", "store/internal/scan", "store/internal/watch"},
	"store/etcd/etcdtest":   {"test/lab"},
	"store/internal/record": {"store"},
	"store/internal/scan":   {"store"},
	"store/internal/watch":  {"store"},
	"store/mem":             {"store", "store/internal/record", "store/internal/scan", "store/internal/watch"},
	"store/storetest":       {"store", "store/internal/record"},
	"internal/alloc":        {},
	"internal/background":   {},
	"internal/golden":       {"store"},
	"internal/humantime":    {},
	"internal/ipam":         {"internal/alloc", "store"},
	"internal/ipam/ledger":  {"internal/alloc", "internal/ipam", "store"},
	"internal/ipam/elastic": {"internal/alloc", "internal/ipam", "internal/ipam/ledger", "store"},
	"internal/allocator": {"internal/alloc", "internal/ipam", "internal/ipam/elastic", "internal/ipam/ledger",
		"store"},
	"internal/ipam/edit": {"internal/alloc", "internal/allocator", "internal/ipam", "internal/ipam/elastic",
		"internal/ipam/ledger", "store"},
	"internal/ipam/lan": {"internal/allocator", "internal/ipam", "internal/ipam/ledger", "store"},
	"internal/ipam/view": {
		"internal/alloc", "internal/background", "internal/ipam", "internal/allocator",
		"internal/ipam/edit", "internal/ipam/ledger", "store",
	},
	"internal/ipam/names": {"internal/ipam", "internal/ipam/ledger", "store"},
	"internal/ipam/stores": {
		"internal/alloc", "internal/allocator", "internal/ipam",
		"internal/ipam/edit", "internal/ipam/elastic", "internal/ipam/ledger", "store",
	},
	"internal/ipam/service": {
		"internal/ipam", "internal/allocator", "internal/ipam/edit", "internal/ipam/elastic",
		"internal/ipam/lan", "internal/ipam/ledger", "internal/ipam/names", "internal/ipam/stores", "internal/ipam/view",
		"internal/plan/compare", "store", "store/mem",
	},
	"internal/ipam/cluster": {
		"internal/ipam", "internal/allocator", "internal/ipam/edit",
		"internal/ipam/elastic", "internal/ipam/ledger", "internal/ipam/service", "internal/ipam/view", "store",
	},
	"internal/ipam/ipamtest": {
		"internal/advice", "internal/allocator", "internal/golden", "internal/ipam", "internal/ipam/cluster",
		"internal/ipam/ledger", "internal/ipam/service", "internal/plan", "store",
		"store/bolt", "store/etcd", "store/mem", "store/storetest",
	},
	"internal/plan":         {"internal/alloc", "internal/ipam"},
	"internal/plan/compare": {"internal/ipam"},
	"driver": {"internal/advice", "internal/alloc", "internal/ipam", "internal/connlimit", "internal/drain",
		"internal/routes", "internal/shorten"},
	"internal/connlimit":    {},
	"internal/drain":        {},
	"internal/shorten":      {},
	"internal/atomicfile":   {},
	"internal/routes":       {"internal/ipam"},
	"internal/neighbours":   {"internal/ipam"},
	"internal/arp":          {},
	"internal/arrivals":     {"internal/arp", "internal/ipam"},
	"internal/advice":       {"internal/ipam", "internal/shorten"},
	"internal/admin/api":    {"internal/ipam"},
	"internal/admin/client": {"internal/admin/api", "internal/ipam"},
	"internal/admin": {"internal/admin/api", "internal/admin/apidoc", "internal/admin/page", "internal/admin/relay",
		"internal/admin/trend",
		"internal/ipam", "internal/connlimit", "internal/drain", "internal/shorten", "internal/atomicfile", "store"},
	"internal/admin/relay":  {"internal/ipam"},
	"internal/admin/live":   {"internal/admin/api", "internal/ipam"},
	"internal/admin/trend":  {"internal/ipam", "internal/atomicfile"},
	"internal/admin/apidoc": {"internal/admin/api", "internal/ipam"},
	"internal/admin/page": {"internal/admin/api", "internal/admin/live", "internal/admin/trend", "internal/advice",
		"internal/alloc", "internal/background", "internal/ipam", "internal/humantime", "internal/shorten"},
	"internal/dns":               {"internal/ipam"},
	"internal/hook":              {"internal/ipam"},
	"internal/metrics":           {"internal/background", "internal/ipam", "store"},
	"internal/webhook":           {"internal/ipam", "internal/shorten", "internal/atomicfile"},
	"internal/docker":            {"internal/ipam", "internal/shorten", "internal/atomicfile"},
	"internal/docker/dockertest": {"internal/ipam"},
	"internal/docker/pin":        {"internal/docker", "internal/ipam"},
	"internal/docker/leave":      {"internal/docker", "internal/docker/pin", "internal/ipam"},
	"internal/docker/putback":    {"internal/docker", "internal/docker/pin", "internal/ipam", "internal/atomicfile"},
	"internal/deploy":            {"internal/alloc", "internal/ipam"},
	"internal/deploy/single":     {"internal/docker"},
	"internal/deploy/scene":      {"internal/docker", "internal/docker/pin", "internal/ipam"},
	"internal/deploy/rollout": {
		"internal/deploy", "internal/deploy/scene", "internal/deploy/single", "internal/ipam",
	},
	"internal/edge":          {},
	"internal/edge/announce": {"internal/arp", "internal/edge"},
	"internal/edge/nft":      {"internal/edge", "internal/edge/announce"},
	"internal/edge/probe":    {"internal/arp", "internal/edge/announce"},
	"internal/edge/command":  {"internal/edge"},
	"internal/edge/follow":   {"internal/edge", "internal/ipam"},
	"internal/edge/lan":      {"internal/ipam"},
	"internal/dhcp":          {"internal/ipam", "internal/shorten"},
	"internal/cli": {
		"internal/admin/api", "internal/admin/client", "internal/advice", "internal/docker", "internal/docker/pin",
		"internal/ipam", "internal/humantime", "internal/plan", "internal/shorten",
	},
	"internal/cli/network": {
		"internal/admin/api", "internal/admin/client", "internal/alloc", "internal/cli", "internal/ipam",
	},
	"internal/cli/owner": {"internal/admin/client", "internal/alloc", "internal/cli", "internal/ipam"},
	"internal/cli/lease": {
		"internal/admin/api", "internal/admin/client", "internal/alloc", "internal/cli", "internal/ipam",
	},
	"internal/cli/look": {"internal/admin/api", "internal/admin/client", "internal/alloc", "internal/cli",
		"internal/ipam"},
	"internal/cli/host":    {"internal/admin/api", "internal/admin/client", "internal/cli", "internal/ipam"},
	"internal/cli/daemon":  {"internal/admin/api", "internal/admin/client", "internal/cli", "internal/ipam"},
	"internal/cli/elastic": {"internal/admin/client", "internal/alloc", "internal/cli", "internal/ipam"},
	"internal/cli/document": {
		"internal/admin/api", "internal/admin/client", "internal/advice", "internal/cli", "internal/ipam",
		"internal/plan", "internal/plan/compare",
	},
	"internal/cli/compose": {
		"internal/admin/api", "internal/admin/client", "internal/cli", "internal/cli/document", "internal/deploy",
		"internal/deploy/single", "internal/docker", "internal/docker/leave", "internal/docker/pin",
		"internal/ipam", "internal/plan",
	},
	"internal/cli/deploy": {
		"internal/admin/client", "internal/cli", "internal/cli/compose", "internal/deploy",
		"internal/deploy/rollout",
		"internal/deploy/scene", "internal/deploy/single", "internal/docker", "internal/ipam",
	},
	"internal/cli/pin": {
		"internal/admin/api", "internal/admin/client", "internal/cli", "internal/docker/pin", "internal/ipam",
	},
	"internal/cli/names": {"internal/admin/client", "internal/cli", "internal/dns", "internal/ipam"},
	"internal/cli/seen":  {"internal/admin/api", "internal/admin/client", "internal/cli"},
	"internal/cli/witness": {
		"internal/admin/api", "internal/admin/client", "internal/arrivals", "internal/cli", "internal/docker",
		"internal/docker/pin", "internal/docker/putback", "internal/ipam",
	},
	"cmd/berth": {
		"driver", "internal/admin", "internal/admin/api", "internal/admin/client", "internal/admin/relay",
		"internal/admin/trend", "internal/advice", "internal/arrivals",
		"internal/cli", "internal/cli/compose", "internal/cli/daemon", "internal/cli/deploy", "internal/cli/document",
		"internal/cli/elastic",
		"internal/cli/host", "internal/cli/lease", "internal/cli/look", "internal/cli/names",
		"internal/cli/network", "internal/cli/owner", "internal/cli/pin",
		"internal/cli/seen", "internal/cli/witness", "internal/dhcp", "internal/dns",
		"internal/docker", "internal/docker/pin", "internal/docker/putback", "internal/edge", "internal/edge/command",
		"internal/edge/follow", "internal/edge/lan", "internal/edge/nft", "internal/edge/probe",
		"internal/hook", "internal/ipam", "internal/ipam/cluster",
		"internal/ipam/ledger",
		"internal/ipam/service", "internal/ipam/stores", "internal/metrics", "internal/neighbours",
		"internal/connlimit",
		"internal/routes", "internal/webhook", "store", "store/bolt", "store/etcd", "store/mem",
	},
	"test/mutants": {},
	"bench":        {},
	"test/lab":     {},
	"test/still":   {},
	"test/engine":  {"test/lab"},
	"test/cluster": {},
	"test/crash":   {},
	"test/doors":   {},
	"test/edge":    {},
	"test/page":    {},
	"test/machine": {"test/lab"},
}

// onlyForTests are packages that only tests and one another import.
var onlyForTests = []string{
	"internal/docker/dockertest", "internal/golden", "internal/ipam/ipamtest", "store/storetest",
}

// onlyStandard are packages that import only the standard library, other packages, and range arithmetic.
var onlyStandard = []string{
	"store", "internal/allocator", "internal/humantime", "internal/ipam", "internal/ipam/ledger",
	"internal/ipam/edit", "internal/ipam/elastic",
	"internal/ipam/view", "internal/ipam/names", "internal/ipam/stores", "internal/ipam/service",
	"internal/ipam/cluster",
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if file == "build" { // build output, with a whole Debian of root's
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		folder := path.Dir(filepath.ToSlash(file))
		seen[folder] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, file, folder, imported)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range mayImport {
		if !seen[folder] && !strings.HasPrefix(folder, "test/") {
			t.Errorf("the package %s has no code", folder)
		}
	}
}

func checkImport(t *testing.T, file, folder, imported string) {
	t.Helper()
	allowed, known := mayImport[folder]
	if !known {
		t.Errorf("%s: the package %s is not in the list of packages", file, folder)
		return
	}
	if other, ours := strings.CutPrefix(imported, "berth/"); ours {
		if !slices.Contains(allowed, other) {
			t.Errorf("%s: %s must not import %s", file, folder, other)
		}
		if slices.Contains(onlyForTests, other) && !slices.Contains(onlyForTests, folder) {
			t.Errorf("%s: %s must not import %s, which is for tests alone", file, folder, other)
		}
		return
	}
	outside := strings.Contains(strings.Split(imported, "/")[0], ".")
	if outside && imported != "go4.org/netipx" && slices.Contains(onlyStandard, folder) {
		t.Errorf("%s: %s must not import %s", file, folder, imported)
	}
}

// TestPackageComments: the comment of each package explains its purpose.
func TestPackageComments(t *testing.T) {
	for folder := range mayImport {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(text, []byte("// Package "+path.Base(folder)+" ")) ||
				bytes.Contains(text, []byte("// Command "))
		}
		if len(files) > 0 && !found {
			t.Errorf("the package %s does not say what it is for: it wants a comment that begins with // Package %s",
				folder, path.Base(folder))
		}
	}
}
