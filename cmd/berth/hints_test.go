package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hints matches command lines of berth in a text: in backquotes, in parentheses, in quotes, or as a line of an
// example.
var hints = regexp.MustCompile("`berth ([^`]*)`|\\(berth ([^)`\\n]*)\\)|\"berth ([^\"\\n]*)\"|(?m:^  berth (.*)$)")

// TestHintsAreTrue: every command that berth suggests in errors, advice and help exists, with the flags shown.
func TestHintsAreTrue(t *testing.T) {
	root := rootCommand(cli.New("dev"), emptyHost())
	root.InitDefaultHelpCmd()
	found := 0
	for _, dir := range []string{"../../internal", "../../driver", "."} {
		err := filepath.WalkDir(dir, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, text := range textsIn(parsed) {
				for _, hint := range hints.FindAllStringSubmatch(text, -1) {
					found++
					if why := untrue(root, strings.Join(hint[1:], "")); why != "" {
						t.Errorf("%s says %q: %s", file, strings.TrimSpace(hint[0]), why)
					}
				}
			}
			return nil
		})
		fine(t, err)
	}
	const least = 300
	if found < least {
		t.Errorf("%d hints were found", found)
	}
	for _, wrong := range []string{"network list-all", "lease ls --spcae x", "no", "lease ls -z",
		"network modify %s --static-band"} {
		if untrue(root, wrong) == "" {
			t.Errorf("berth %s passes", wrong)
		}
	}
}

// textsIn are the texts of a file. A text joined from several parts is one, with X for each part that is not a
// literal.
func textsIn(file *ast.File) (all []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field: // the tag of a field is no text
			return n == nil
		case *ast.BinaryExpr, *ast.BasicLit:
			if text, is := textOf(n.(ast.Expr)); is {
				all = append(all, text)
				return false
			}
		}
		return true
	})
	return all
}

// textOf tells whether an expression is at least partly a literal text.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, one := textOf(e.X)
		right, other := textOf(e.Y)
		return left + right, e.Op == token.ADD && (one || other)
	}
	return "X", false
}

// untrue says what is wrong with the command line after "berth", or is empty.
func untrue(root *cobra.Command, line string) string {
	line, _, _ = strings.Cut(line, " > ") // a shell redirection
	cmd, words := root, strings.Fields(strings.NewReplacer("[", " ", "]", " ", "|", " ", ";", " ", ",", " ").Replace(line))
	for len(words) > 0 {
		i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == words[0] || c.HasAlias(words[0]) })
		if i < 0 {
			break
		}
		cmd, words = cmd.Commands()[i], words[1:]
	}
	if cmd.HasSubCommands() && len(words) > 0 && strings.HasPrefix(words[0], "%") {
		return "" // the command is filled in later
	}
	if cmd == root && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return "there is no command " + words[0]
	}
	if cmd.HasSubCommands() && cmd != root && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return cmd.CommandPath() + " has no command " + words[0]
	}
	for _, word := range words {
		word, _, _ = strings.Cut(strings.TrimRight(word, ".:"), "=")
		switch {
		case word == "--":
			return ""
		case strings.HasPrefix(word, "--"):
			if flagOf(cmd, func(f *pflag.FlagSet) *pflag.Flag { return f.Lookup(word[2:]) }) == nil && word != "--help" {
				return cmd.CommandPath() + " has no " + word
			}
		case len(word) == 2 && word[0] == '-':
			if flagOf(cmd, func(f *pflag.FlagSet) *pflag.Flag { return f.ShorthandLookup(word[1:]) }) == nil && word != "-h" {
				return cmd.CommandPath() + " has no " + word
			}
		}
	}
	return ""
}

// flagOf looks up a flag of a command or of its parents.
func flagOf(cmd *cobra.Command, look func(*pflag.FlagSet) *pflag.Flag) *pflag.Flag {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags(), cmd.InheritedFlags()} {
		if f := look(flags); f != nil {
			return f
		}
	}
	return nil
}
