package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

const manualHelp = `Writes a manual page for each command into DIR: berth.1, berth-lease-ls.1 and so on. It creates
DIR if that does not exist. The package of Berth has the pages in /usr/share/man/man1. If you installed Berth in another
way, write the pages to a directory in which man looks:

  berth man /usr/local/share/man/man1

If SOURCE_DATE_EPOCH is in the environment, it is the date of the pages, in seconds since 1970.`

// manual is the command that writes the manual pages of all commands.
type manual struct{}

// Command implements Row.
func (manual) Command(p *Program) *cobra.Command {
	cmd := Verb{Use: "man DIR", Short: "Write the manual pages", Long: manualHelp, Run: func(r *Run) error {
		date := r.Now()
		if epoch := r.Env("SOURCE_DATE_EPOCH"); epoch != "" {
			seconds, err := strconv.ParseInt(epoch, 10, 64)
			if err != nil {
				return fmt.Errorf("SOURCE_DATE_EPOCH is %q, which is not a number of seconds", epoch)
			}
			date = time.Unix(seconds, 0)
		}
		date = date.UTC()
		if err := os.MkdirAll(r.Args[0], 0o755); err != nil {
			return err
		}
		root := r.Cmd.Root()
		root.DisableAutoGenTag = true // the tag would add today's date
		asManual(root)
		return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Berth " + r.Build, Manual: "Berth",
			Date: &date}, r.Args[0])
	}}.Command(p)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

// asManual converts the texts of a command and its subcommands to Markdown for their pages. Help in columns, indented
// by two, becomes a block that stays unchanged.
func asManual(cmd *cobra.Command) {
	cmd.Long = markdown(cmd.Long)
	for _, verb := range cmd.Commands() {
		asManual(verb)
	}
}

// markdown converts help text to Markdown.
func markdown(help string) string {
	var page strings.Builder
	block := false
	for line := range strings.Lines(help) {
		inColumns := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if inColumns != block && strings.TrimSpace(line) != "" {
			page.WriteString("\n")
			block = inColumns
		}
		if inColumns {
			page.WriteString("  " + line) // an indent of four makes a block
		} else {
			page.WriteString(asItIs.Replace(line))
		}
	}
	return page.String()
}

// asItIs escapes the characters that Markdown would interpret.
var asItIs = strings.NewReplacer("*", `\*`, "<", `\<`, "_", `\_`)
