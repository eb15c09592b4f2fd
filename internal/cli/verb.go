package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Verb describes a command: its usage, arguments and help.
type Verb struct {
	Use     string // with arguments as in the help: "rm NETWORK RANGE", "ls [NETWORK]"
	Short   string
	Long    string
	Example string
	Aliases []string             // in addition to those of its word
	Args    cobra.PositionalArgs // nil: from Use
	Refs    []Refs               // completions of its arguments
	Instead map[string]string    // replacements for flags that people try but the command lacks
}

// aliases are the alternative words for a verb, the same for all nouns.
func aliases(word string) []string {
	switch word {
	case "ls":
		return []string{"list"}
	case "rm":
		return []string{"remove", "delete"}
	case "create":
		return []string{"add"}
	case "add":
		return []string{"create"}
	case "modify":
		return []string{"edit", "update"}
	case "show":
		return []string{"inspect"}
	}
	return nil
}

// Command returns the command, without a function to run.
func (v Verb) Command(p *Program) *cobra.Command {
	word, _, _ := strings.Cut(v.Use, " ")
	cmd := &cobra.Command{
		Use: v.Use, Aliases: append(aliases(word), v.Aliases...), Short: v.Short, Long: v.Long, Example: v.Example,
		Args: v.Args, Annotations: instead(v.Instead),
	}
	if cmd.Args == nil {
		cmd.Args = argsOf(v.Use)
	}
	if len(v.Refs) > 0 {
		cmd.ValidArgsFunction = p.CompleteRefs(v.Refs...)
	}
	return cmd
}

// argsOf derives the arguments of a command from its usage line: those before the flags. A single one may be optional.
func argsOf(use string) cobra.PositionalArgs {
	names := strings.Fields(use)[1:]
	for i, name := range names {
		if strings.HasPrefix(strings.TrimLeft(name, "[("), "--") {
			names = names[:i]
			break
		}
	}
	if len(names) == 0 {
		return NoArgs
	}
	optional, found := strings.CutPrefix(names[0], "[")
	switch {
	case found && len(names) == 1:
		return MayTake(strings.TrimSuffix(optional, "]"))
	case found:
		return TakesNetwork(names[1])
	}
	return Takes(names...)
}
