package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Verb says how a command is called, what it takes, and what its help tells.
type Verb struct {
	Use     string // with its arguments as the help has them: "rm NETWORK RANGE", "ls [NETWORK]"
	Short   string
	Long    string
	Example string
	Aliases []string             // besides those of its word
	Args    cobra.PositionalArgs // nil: what Use says
	Refs    []Refs               // what completes its arguments
	Instead map[string]string    // by flags that people try, and that it does not have: what to write
}

// aliases are other words for some words, whatever the noun.
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

// Command is the command, which does nothing yet.
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

// argsOf reads out of a line of usage how many arguments a verb takes: those before its flags, of which a single one
// may be in brackets.
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
