package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelpFits: no line of any help is longer than 80 characters, and examples come before the text.
func TestHelpFits(t *testing.T) {
	said := func(args ...string) string {
		text := helpOf(t, args...)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%v: %d characters: %s", args, n, line)
			}
		}
		return text
	}
	eachCommand(func(cmd *cobra.Command) {
		args := strings.Fields(strings.TrimPrefix(cmd.CommandPath(), "berth"))
		text := said(append(args, "--help")...)
		long, _, _ := strings.Cut(cmd.Long, " ")
		if i := strings.Index(text, "\nExamples:\n"); cmd.Example != "" && cmd.Name() != "completion" &&
			(i < 0 || strings.Contains(text[:i], "\n"+long+" ")) {
			t.Errorf("%v: the examples do not come first", args)
		}
	})
	if first := said(); strings.Count(first, "\n  ") != 12 || strings.Count(first, "\n") > 24 {
		t.Errorf("the first screen:\n%s", first)
	}
	said("help", "--all")
	said("help", "options")
}
