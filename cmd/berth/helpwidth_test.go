package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"berth/internal/cli"

	"github.com/spf13/cobra"
)

// TestHelpFits: no line of any help is longer than 80 characters, and examples come before the text.
func TestHelpFits(t *testing.T) {
	said := func(args ...string) string {
		var out bytes.Buffer
		p := &cli.Program{Out: &out, Err: io.Discard, Env: func(string) string { return "" }}
		if code := p.Run(context.Background(), rootCommand(p, emptyHost()), append([]string{}, args...)); code != 0 {
			t.Fatalf("%v: exit code %d", args, code)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%v: %d characters: %s", args, n, line)
			}
		}
		return out.String()
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		args := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "berth"))
		text := said(append(args, "--help")...)
		long, _, _ := strings.Cut(cmd.Long, " ")
		if i := strings.Index(text, "\nExamples:\n"); cmd.Example != "" && cmd.Name() != "completion" &&
			(i < 0 || strings.Contains(text[:i], "\n"+long+" ")) {
			t.Errorf("%v: the examples do not come first", args)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(cli.New("dev"), emptyHost()))
	if first := said(); strings.Count(first, "\n  ") != 12 || strings.Count(first, "\n") > 24 {
		t.Errorf("the first screen:\n%s", first)
	}
	said("help", "--all")
	said("help", "options")
}
