//go:build upgrade

package upgrade

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"berth/test/lab"
)

var from = flag.String("from", "", "the commits or tags whose states are opened, separated by blanks")

// containers is the number of containers that get an address. Every second one releases it before the old Berth is
// killed.
const containers = 400

// lists are the paths whose answers must not change.
var lists = []string{"/v1/leases?remembered=true", "/v1/reservations", "/v1/addresses", "/v1/networks", "/v1/subnets",
	"/v1/accounts", "/v1/elastic", "/v1/elastic/ranges", "/v1/events?last=10000"}

// elastic allocates two elastic addresses and maps one to an owner of the plan.
const elastic = `{"edits": [
	{"op": "account.create", "account": "shop", "domain": "example.org", "quota": 4, "owners": ["shop/*"]},
	{"op": "elastic.range.add", "range": "203.0.113.0/28"},
	{"op": "elastic.allocate", "account": "shop", "address": "203.0.113.3"},
	{"op": "elastic.allocate", "account": "shop", "address": "203.0.113.4", "release_on": "stop"},
	{"op": "elastic.associate", "address": "203.0.113.4", "instance": "shop/db/1", "network": "front",
		"guest": "10.20.0.40"}]}`

func TestUpgrade(t *testing.T) {
	if *from == "" {
		t.Fatal(`set -from to commits or tags: make upgrades FROM="v1.0.0"`)
	}
	now := build(t, "../..")
	for _, ref := range strings.Fields(*from) {
		t.Run(ref, func(t *testing.T) { opens(t, build(t, checkout(t, ref)), now) })
	}
}

// opens fills a state with one Berth, kills it, and opens the state with another one.
func opens(t *testing.T, old, now string) {
	plan, err := os.ReadFile("../../internal/golden/1.0/export.json")
	lab.Must(t, err)
	dir := t.TempDir()
	b := start(t, old, dir)
	b.do(t, b.admin, "POST", "/v1/import", string(plan))
	b.do(t, b.admin, "POST", "/v1/edits", elastic)
	planned, free := b.pool(t, "10.20.0.0/24", "front"), b.pool(t, "10.77.0.0/16", "")
	b.take(t, planned, "web-1")
	had := map[string]string{}
	for i := range containers {
		name := fmt.Sprintf("c%d", i)
		had[name] = b.take(t, free, name)
		if i%2 == 1 {
			b.release(t, free, had[name])
		}
	}
	before := map[string][]map[string]any{}
	for _, path := range lists {
		before[path] = b.list(t, path)
	}
	b.Kill()

	check := exec.Command(now, "state", "check", "--state", filepath.Join(dir, "state"))
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("state check: %v\n%s", err, out)
	}
	b = start(t, now, dir)
	for _, path := range lists {
		same(t, path, before[path], b.list(t, path))
	}
	for name, address := range had {
		if name[len(name)-1]%2 == 0 { // still holds its address, and starts again
			b.release(t, free, address)
		}
		if got := b.take(t, free, name); got != address {
			t.Errorf("%s had %s, and gets %s", name, address, got)
		}
	}
	b.Kill()
}

// same reports what an answer has lost. New fields are allowed.
func same(t *testing.T, path string, before, after []map[string]any) {
	t.Helper()
	if len(before) == 0 || len(after) < len(before) {
		t.Errorf("%s: %d before, %d after", path, len(before), len(after))
		return
	}
	t.Logf("%s: %d", path, len(before))
	for i, old := range before {
		for _, field := range slices.Sorted(maps.Keys(old)) {
			if !reflect.DeepEqual(old[field], after[i][field]) {
				t.Errorf("%s: %s was %v, and is %v, of %v", path, field, old[field], after[i][field], old)
				return
			}
		}
	}
}
