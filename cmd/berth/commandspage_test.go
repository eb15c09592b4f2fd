package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"berth/internal/cli"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/commands.md again (make docs)")

// TestCommandsPage: docs/commands.md has the help of each command, exactly as the program prints it.
func TestCommandsPage(t *testing.T) {
	const file = "../../docs/commands.md"
	want := commandsPage(t)
	if *update {
		fine(t, os.WriteFile(file, []byte(want), 0o600))
	}
	got, err := os.ReadFile(file)
	fine(t, err)
	if string(got) != want {
		t.Errorf("%s differs from the help of the program; make docs writes it again", file)
	}
}

// commandsPage is docs/commands.md: a list of the commands by purpose, then a section for each.
func commandsPage(t *testing.T) string {
	var list, sections strings.Builder
	root := rootCommand(cli.New("dev"), emptyHost())
	root.InitDefaultHelpCmd()
	for _, topic := range root.Groups() {
		fmt.Fprintf(&list, "\n%s\n\n", topic.Title)
		for _, cmd := range root.Commands() {
			if cmd.GroupID == topic.ID && !cmd.Hidden {
				commandSections(t, cmd, &list, &sections)
			}
		}
	}
	return "# Commands\n\n<!-- Generated from the program: make docs. -->\n\n" +
		"What `berth COMMAND --help` prints, for each command.\n" + list.String() +
		"\n## Flags that all commands have\n\n```text\n" + helpOf(t, "help", "options") + "```\n" + sections.String()
}

// commandSections adds a command and its subcommands to the list of a page, and a section for each.
func commandSections(t *testing.T, cmd *cobra.Command, list, sections *strings.Builder) {
	path := cmd.CommandPath()
	depth := strings.Count(path, " ") - 1
	anchor := strings.ReplaceAll(path, " ", "-")
	fmt.Fprintf(list, "%s- [%s](#%s): %s\n", strings.Repeat("  ", depth), path, anchor, cmd.Short)
	text := helpOf(t, append(strings.Fields(path)[1:], "--help")...)
	_, text, _ = strings.Cut(text, "\n\n") // the short description is above the block
	text, _, _ = strings.Cut(text, "\nGlobal flags")
	fmt.Fprintf(sections, "\n## %s\n\n%s.\n\n```text\n%s```\n", path, cmd.Short, text)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			commandSections(t, sub, list, sections)
		}
	}
}

// helpOf is what the program prints for a command line.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	out, said, code := runs(args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, said)
	}
	return out
}

// runs runs a command line on an empty host.
func runs(args ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	p := &cli.Program{Out: &stdout, Stderr: &stderr, Env: func(string) string { return "" }, Now: time.Now}
	code = p.Run(context.Background(), rootCommand(p, emptyHost()), append([]string{}, args...))
	return stdout.String(), stderr.String(), code
}

// eachCommand visits all commands, each before those below it.
func eachCommand(visit func(*cobra.Command)) {
	all := []*cobra.Command{rootCommand(cli.New("dev"), emptyHost())}
	for len(all) > 0 {
		visit(all[0])
		all = append(all[1:], all[0].Commands()...)
	}
}
