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

// runPage runs the examples of a page of docs, from the first to the last, on one daemon: each line that begins with
// "$ berth", and holds what it says to the lines below it. The first block in each language of files is what is in that file.
func runPage(t *testing.T, name string, least int, files map[string]string) {
	page, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	examples := pageExamples(string(page))
	if len(examples) < least {
		t.Fatalf("the page has %d examples", len(examples))
	}
	var script strings.Builder
	script.WriteString("exec berth serve &daemon&\nready\n")
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

// script runs the command and compares. A refusal is the last line, on standard error.
func (e example) script() string {
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

// says LINE... holds what the last command said to the lines. An ellipsis stands for whatever there is, alone for any number
// of lines.
func says(ts *testscript.TestScript, _ bool, want []string) {
	got := ts.ReadFile("stderr") + ts.ReadFile("stdout") // what is noted on the way comes first
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
