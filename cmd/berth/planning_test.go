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

// TestPlanningPage runs the examples of docs/planning.md, from the first to the last, on one daemon: each line that begins with
// "$ berth", and holds what it says to the lines below it. GA-27
func TestPlanningPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/planning.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := pageExamples(string(page))
	if len(examples) < 50 {
		t.Fatalf("the page has %d examples", len(examples))
	}
	var script strings.Builder
	script.WriteString("exec berth serve &daemon&\nready\n")
	for _, e := range examples {
		script.WriteString(e.script())
	}
	script.WriteString("terminate\nwait daemon\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "planning.txtar"), []byte(script.String()), 0o600); err != nil {
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
}

// pageExamples reads the blocks that are marked as console.
func pageExamples(page string) (all []example) {
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
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

// script runs the command and compares. A refusal is on standard error, in one line.
func (e example) script() string {
	run := "exec "
	if len(e.output) == 1 && strings.HasPrefix(e.output[0], "berth: ") {
		run = "exec exits 1 "
	}
	var want strings.Builder
	for _, line := range e.output {
		fmt.Fprintf(&want, " '%s'", strings.ReplaceAll(line, "'", "''"))
	}
	return run + e.command + "\nsays" + want.String() + "\n"
}

// says LINE... holds what the last command said to the lines. An ellipsis stands for whatever there is, alone for any number
// of lines.
func says(ts *testscript.TestScript, _ bool, want []string) {
	got := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	form := "^"
	for _, line := range want {
		if line == "…" {
			form += `(.*\n)+?`
			continue
		}
		form += strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`
	}
	if !regexp.MustCompile(form + "$").MatchString(got) {
		ts.Fatalf("it says\n%s\nand not\n%s", got, strings.Join(want, "\n"))
	}
}
