package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// first are the commands on the first screen of the help.
var first = []string{"status", "check", "find", "network", "subnet", "reservation", "lease", "events", "pin", "adopt",
	"leave", "deploy"}

// help prints a command's help in 80 columns: purpose, usage, examples, and then the rest.
func help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	if !cmd.HasParent() {
		b.WriteString(wrapped(cmd.Long) + "\n\n")
		for _, name := range first {
			listed(&b, cmd, func(sub *cobra.Command) bool { return sub.Name() == name })
		}
		b.WriteString("\nAll commands: berth help --all. Help for one: berth COMMAND --help.\n" +
			"Flags of all commands: berth help options.\n")
		_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
		return
	}
	use := cmd.UseLine()
	if cmd.HasSubCommands() {
		use = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "%s\n\n%s\n", wrapped(cmd.Short), hanging("Usage: "+use, len("Usage: "), ""))
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n")
		for line := range strings.Lines(cmd.Example) {
			b.WriteString(hanging(strings.TrimRight(line, "\n"), 6, ` \`) + "\n")
		}
	}
	if cmd.Long != "" && cmd.Long != cmd.Short {
		b.WriteString("\n" + wrapped(cmd.Long) + "\n")
	}
	if cmd.HasSubCommands() {
		b.WriteString("\nCommands:\n")
		listed(&b, cmd, (*cobra.Command).IsAvailableCommand)
	}
	if own := cmd.LocalFlags(); own.HasAvailableFlags() {
		b.WriteString("\nFlags:\n" + own.FlagUsagesWrapped(width))
	}
	b.WriteString("\nGlobal flags, such as --admin-socket: berth help options\n")
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
}

// listed writes a line for each subcommand that show selects.
func listed(b *strings.Builder, cmd *cobra.Command, show func(*cobra.Command) bool) {
	const name = 11
	for _, sub := range cmd.Commands() {
		if show(sub) {
			b.WriteString(hanging(fmt.Sprintf("  %-*s %s", name, sub.Name(), sub.Short), name+3, "") + "\n")
		}
	}
}

// all prints all commands by topic.
func all(root *cobra.Command) {
	var b strings.Builder
	for i, group := range root.Groups() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(group.Title + "\n")
		listed(&b, root, func(sub *cobra.Command) bool {
			return sub.GroupID == group.ID && (sub.IsAvailableCommand() || sub.Name() == "help")
		})
	}
	_, _ = io.WriteString(root.OutOrStdout(), b.String())
}

// helpCommand shows the help of a command, all commands, or the global flags.
func helpCommand() *cobra.Command {
	var every bool
	cmd := &cobra.Command{Use: "help [COMMAND | options]", Short: "Show the help of a command",
		Example: "  berth help lease ls\n  berth help --all\n  berth help options"}
	Flags{Flag(&every, "all", "list all commands")}.add(nil, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		switch {
		case every:
			all(root)
			return nil
		case slices.Equal(args, []string{"options"}):
			var names []string
			root.PersistentFlags().VisitAll(func(f *pflag.Flag) { names = append(names, variable(f.Name)) })
			_, err := fmt.Fprintf(root.OutOrStdout(), "Flags of all commands:\n%s\n%s\n\n%s\n",
				root.PersistentFlags().FlagUsagesWrapped(width), wrapped("Environment variables for the same settings: "+
					strings.Join(names, ", ")+". "+variable(flagDockerHost)+" is the default of --"+flagDockerHost+
					" in the commands that read the engine; without it, these use the engine of the docker command "+
					"(DOCKER_HOST, or the current context). berth serve --help lists the variables of the daemon."),
				wrapped(exitCodes))
			return err
		}
		found, rest, err := root.Find(args)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("there is no command %q", strings.Join(args, " "))
		}
		if err != nil {
			return Usage(root, err)
		}
		found.InitDefaultHelpFlag()
		return found.Help()
	}
	return cmd
}

// wrapped breaks help text into lines of 80 columns. A line that begins with blanks is in columns, and its continuation
// is indented.
func wrapped(text string) string {
	var lines []string
	paragraph := ""
	end := func() {
		if paragraph != "" {
			lines = append(lines, hanging(paragraph, 0, ""))
		}
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			end()
			lines = append(lines, "")
		case strings.HasPrefix(line, " "):
			end()
			begin := len(line) - len(strings.TrimLeft(line, " "))
			hang := begin + 2
			if i := strings.LastIndex(line[begin:], "  "); i >= 0 {
				hang = begin + i + 2
			}
			lines = append(lines, hanging(line, hang, ""))
		default:
			paragraph = strings.TrimLeft(paragraph+" "+line, " ")
		}
	}
	end()
	return strings.Join(lines, "\n")
}

// hanging breaks a line at width. Continuation lines are indented by in, and each line but the last ends with more. It
// does not break between quotes.
func hanging(line string, in int, more string) string {
	var b strings.Builder
	for utf8.RuneCountInString(line) > width {
		at, quoted, n := -1, false, 0
		for i, r := range line {
			if n++; n > width-len(more)+1 {
				break
			}
			switch {
			case r == '\'' && more != "":
				quoted = !quoted
			case r == ' ' && !quoted && strings.TrimSpace(line[:i]) != "" && i > in:
				at = i
			}
		}
		if at < 0 {
			break
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + more + "\n")
		line = strings.Repeat(" ", in) + strings.TrimLeft(line[at:], " ")
	}
	return b.String() + line
}

// nearFlag suggests the flags that a wrong name may mean, or returns an empty text.
func nearFlag(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := flags.SuggestionsFor(name); len(name) > 1 && len(near) > 0 {
		return "did you mean --" + strings.Join(near, " or --") + "?"
	}
	return ""
}

// flagError is the error for flags that cannot be parsed. It names a wrong command before the flags, what to write
// instead, or a similar flag.
func flagError(cmd *cobra.Command, err error) error {
	missing := (*pflag.NotExistError)(nil)
	if !errors.As(err, &missing) {
		return Usage(cmd, err)
	}
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return cmd.Args(cmd, words)
	}
	what := cmd.Annotations[insteadOf+missing.GetSpecifiedName()]
	if what == "" {
		what = nearFlag(cmd, missing.GetSpecifiedName())
	}
	if what != "" {
		err = fmt.Errorf("%w; %s", err, what)
	}
	return Usage(cmd, err)
}
