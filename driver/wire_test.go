package driver

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden answers afresh")

// TestWire tests the answers to recorded calls of two lines of engines, byte for byte (LN-1 to LN-4, LN-10, LN-11,
// LN-14).
//
// testdata/wire/ENGINE/SITUATION.txtar holds the calls of one situation in order. Each has its method and the body that
// was sent. Between them, "restart" restarts the daemon, "edit OPERATION" changes the plan with its fields, and
// "witness WORD ADDRESS" sets what a witness reports of the address's lease. SITUATION.golden holds the answers. Ids of
// pools are random, so both files name them P1, P2 and so on, in the order in which they were given. The engines were
// asked for MACs, unless a situation begins with "socket no-mac". The calls of 20.10 are unchanged recordings
// (record_test.go). Those of 29.7.2 have the recorded fields and order, but are reduced to the smallest set that shows
// the situation, with other addresses, names and MACs. The few that were never recorded as a whole say so.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*/*.txtar")
	must(t, err)
	if len(files) < 60 {
		t.Fatalf("only %d situations are there", len(files))
	}
	for _, file := range files {
		engine, situation := filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(engine+"/"+situation, func(t *testing.T) {
			t.Parallel()
			calls, err := txtar.ParseFile(file)
			must(t, err)
			got := answers(t, calls)
			golden := strings.TrimSuffix(file, ".txtar") + ".golden"
			if *update {
				must(t, os.WriteFile(golden, got, 0o644))
				return
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the answers changed (-golden +now):\n%s", diff)
			}
		})
	}
}

// answers sends the calls to a Berth with an empty state and returns its answers.
func answers(t *testing.T, calls *txtar.Archive) []byte {
	b := macBench(t)
	names := &poolNames{}
	answers := new(txtar.Archive)
	for _, call := range calls.Files {
		number, method, ok := strings.Cut(call.Name, " ")
		if !ok {
			t.Fatalf("%q is not a number and a method", call.Name)
		}
		if method == "restart" {
			b.reopen()
			continue
		}
		if method == "socket no-mac" {
			b.askMAC = false
			b.reopen()
			continue
		}
		if word, ok := strings.CutPrefix(method, "witness "); ok {
			b.witness(word)
			continue
		}
		if op, ok := strings.CutPrefix(method, "edit "); ok {
			b.edit(op, string(call.Data))
			continue
		}
		w := serveRaw(b.handler, method, names.ids(string(call.Data)))
		reply := names.learn(method, w.Body.Bytes())
		answers.Files = append(answers.Files, txtar.File{
			Name: fmt.Sprintf("%s %s %d %s", number, method, w.Code, w.Header().Get("Content-Type")),
			Data: []byte(reply),
		})
	}
	b.check()
	return txtar.Format(answers)
}

// poolNames gives pools names that are the same in each run.
type poolNames struct {
	given []string // ids; the first is P1
}

// learn names the pool in an answer to RequestPool, and replaces ids by names.
func (n *poolNames) learn(method string, reply []byte) string {
	if method == "IpamDriver.RequestPool" {
		var pool struct{ PoolID string }
		if json.Unmarshal(bytes.TrimSpace(reply), &pool) == nil && pool.PoolID != "" {
			n.given = append(n.given, pool.PoolID)
		}
	}
	return n.names(string(reply))
}

// names replaces ids, long and short, by names.
func (n *poolNames) names(s string) string {
	for i, id := range n.given {
		s = strings.ReplaceAll(s, id, fmt.Sprintf("P%d", i+1))
		s = strings.ReplaceAll(s, id[:8], fmt.Sprintf("P%d", i+1))
	}
	return s
}

// ids replaces quoted names by ids.
func (n *poolNames) ids(s string) string {
	for i, id := range n.given {
		s = strings.ReplaceAll(s, fmt.Sprintf(`"P%d"`, i+1), fmt.Sprintf("%q", id))
	}
	return s
}
