package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestPlanningPage runs the examples of docs/planning.md. GA-27
func TestPlanningPage(t *testing.T) { runPage(t, "planning.md", 50, nil) }

// TestImportPage runs the examples of docs/import.md, on the document and the table that it shows.
func TestImportPage(t *testing.T) {
	runPage(t, "import.md", 6, map[string]string{"yaml": "plan.yaml", "csv": "prefixes.csv"})
}

// TestOwnersPage runs the examples of docs/owners.md, beside an engine of its own.
func TestOwnersPage(t *testing.T) {
	runPageOn(t, "owners.md", 40, nil,
		"env BERTH_DOCKER_HOST=unix://$WORK/engine.sock\nenv BERTH_PLUGIN_SOCKET=$WORK/berth.sock\n"+
			"engine start\nexec berth serve --check-every 0 --check-grace 1ms &daemon&\nready\n")
}

// TestOperatingPage runs the examples of docs/operating.md on two hosts that share a store, of which b is the one that
// Docker asks.
func TestOperatingPage(t *testing.T) {
	runPageOn(t, "operating.md", 6, nil, "etcd start\nenv BERTH_STORE=etcd\nenv BERTH_ETCD_ENDPOINTS=$ETCD\n"+
		"exec berth serve --host a &daemon&\nready\nenv BERTH_PLUGIN_SOCKET=$WORK/b.sock\n"+
		"exec berth serve --host b --state b --admin-socket b-admin.sock &b&\nready\n"+
		"exec berth network create lan --space global --subnet 10.77.0.0/24,gateway=10.77.0.1,pool --headroom 16\n")
}

// TestClusterPage runs the examples of docs/cluster.md on three hosts; a is the one whose command is run, and what
// Docker would ask of each is in the page's comments.
func TestClusterPage(t *testing.T) {
	start := "etcd start\nenv BERTH_STORE=etcd\nenv BERTH_ETCD_ENDPOINTS=$ETCD\nexec berth serve --host a " +
		"&daemon&\nready\n"
	for _, host := range []string{"b", "c"} {
		start += fmt.Sprintf("exec berth serve --host %[1]s --state %[1]s --plugin-socket %[1]s.sock --admin-socket "+
			"%[1]s-admin.sock &%[1]s&\nready\n", host)
	}
	runPageOn(t, "cluster.md", 7, nil, start)
}

// runPage runs the examples of a page of docs, from the first to the last, on one daemon: each line that begins with "$
// berth", and holds what it says to the lines below it. The first block in each language of files is what is in that
// file. What happens between two of them, and is for nobody to read, stands in a comment: <!-- run: LINE OF A SCRIPT
// -->.
func runPage(t *testing.T, name string, least int, files map[string]string) {
	runPageOn(t, name, least, files, "exec berth serve &daemon&\nready\n")
}

// runPageOn is runPage on the daemon that a script starts.
func runPageOn(t *testing.T, name string, least int, files map[string]string, start string) {
	page, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	examples := pageExamples(string(page))
	if len(examples) < least {
		t.Fatalf("the page has %d examples", len(examples))
	}
	var script strings.Builder
	script.WriteString(start)
	for _, e := range examples {
		script.WriteString(e.script())
	}
	script.WriteString("terminate\nwait daemon\n")
	for language, file := range files {
		_, text, found := strings.Cut(string(page), "\n```"+language+"\n")
		text, _, ended := strings.Cut(text, "\n```\n")
		if !found || !ended {
			t.Fatalf("the page has no block of %s", language)
		}
		fmt.Fprintf(&script, "-- %s --\n%s\n", file, text)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.txtar"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	params := scriptParams(dir)
	params.Cmds["says"] = says
	testscript.Run(t, params)
}

// example is a command of the page, and what it says.
type example struct {
	command string
	output  []string
	hidden  string // a line of a script instead
}

// pageExamples reads the blocks that are marked as console.
func pageExamples(page string) (all []example) {
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		hidden, isHidden := strings.CutPrefix(line, "<!-- run: ")
		switch {
		case isHidden:
			all = append(all, example{hidden: strings.TrimSuffix(hidden, " -->")})
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && isCommand:
			all = append(all, example{command: command})
		case inside:
			last := &all[len(all)-1]
			last.output = append(last.output, line)
		}
	}
	return all
}

// script runs the command and compares. A refusal is the last line, on standard error.
func (e example) script() string {
	if e.hidden != "" {
		return e.hidden + "\n"
	}
	run := "exec "
	if n := len(e.output); n > 0 && strings.HasPrefix(e.output[n-1], "berth: ") {
		run = "exec exits 1 "
	}
	var want strings.Builder
	for _, line := range e.output {
		fmt.Fprintf(&want, " '%s'", strings.ReplaceAll(line, "'", "''"))
	}
	return run + e.command + "\nsays" + want.String() + "\n"
}

// says LINE... holds what the last command said to the lines. An ellipsis stands for whatever there is, alone for any
// number of lines.
func says(ts *testscript.TestScript, _ bool, want []string) {
	noted, got := ts.ReadFile("stderr"), ts.ReadFile("stdout")
	form := "^"
	for _, line := range want {
		if line == "…" {
			form += `(.*\n)+?`
			continue
		}
		form += strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`
	}
	whole := regexp.MustCompile(form + "$")
	// what is noted on the way comes first, an error last
	if !whole.MatchString(noted+got) && !whole.MatchString(got+noted) {
		ts.Fatalf("it says\n%s\nand not\n%s", noted+got, strings.Join(want, "\n"))
	}
}
