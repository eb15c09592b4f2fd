package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Row is a command in the table of its group: a Verb, Listing, Showing or Change, or a group.
type Row interface {
	Command(p *Program) *cobra.Command
}

// Verb describes a command: its usage, arguments and help.
type Verb struct {
	Use        string // with arguments as in the help: "rm NETWORK RANGE", "ls [NETWORK]"
	Short      string
	Long       string
	Example    string
	Aliases    []string          // in addition to those of its word
	SuggestFor []string          // words that people try instead
	Args       func(*Run) error  // nil: from Use
	Refs       []Refs            // completions of its arguments; nil: of a network, if that is the first
	Any        Refs              // instead: of any number of arguments
	Instead    map[string]string // replacements for flags that people try but the command lacks
	Flags      Flags
	SomeOf     []string         // flags of which one must be given: they say what is to be changed
	Hidden     string           // a flag that the help does not show
	Apart      [][]string       // flags of which only one may be given
	Check      func(*Run) error // checks flags and arguments; its error is wrong usage. It may be nil
	Run        func(*Run) error
	Ask        func(*Run) error // replaces Run: the daemon is found before
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

// Command returns the command.
func (v Verb) Command(p *Program) *cobra.Command {
	word, _, _ := strings.Cut(v.Use, " ")
	if v.Args == nil {
		v.Args = argsOf(v.Use)
	}
	run := func(do func(*Run) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			r := &Run{Context: cmd.Context(), Program: p, Cmd: cmd, Args: args}
			defer func() {
				if r.Client != nil {
					r.Close()
				}
			}()
			return do(r)
		}
	}
	cmd := &cobra.Command{
		Use: v.Use, Aliases: append(aliases(word), v.Aliases...), Short: v.Short, Long: v.Long, Example: v.Example,
		SuggestFor: v.SuggestFor, Annotations: instead(v.Instead), Args: run(v.Args), PreRunE: run(v.check),
		RunE: run(v.run),
	}
	v.Flags.add(p, cmd)
	for _, flags := range v.Apart {
		cmd.MarkFlagsMutuallyExclusive(flags...)
	}
	if f := cmd.Flags().Lookup(v.Hidden); f != nil {
		f.Hidden = true
	}
	switch {
	case v.Any != nil:
		cmd.ValidArgsFunction = p.complete(v.Any)
	case v.Refs == nil && takesNetwork(v.Use):
		cmd.ValidArgsFunction = p.completeArgs(NetworkRefs)
	case v.Refs != nil:
		cmd.ValidArgsFunction = p.completeArgs(v.Refs...)
	}
	return cmd
}

// check refuses wrong usage.
func (v Verb) check(r *Run) error {
	err := v.Flags.check(r)
	if len(v.SomeOf) > 0 && !slices.ContainsFunc(v.SomeOf, r.Given) {
		return r.Usagef("the command has nothing to change; give at least one of --%s", strings.Join(v.SomeOf, ", --"))
	}
	if err == nil && v.Check != nil {
		err = v.Check(r)
	}
	if err != nil {
		err = Usage(r.Cmd, err)
	}
	return err
}

func (v Verb) run(r *Run) error {
	if v.Ask == nil {
		return v.Run(r)
	}
	if err := r.Ask(); err != nil {
		return err
	}
	return v.Ask(r)
}

// takesNetwork reports whether the first argument of a command is a network that there is.
func takesNetwork(use string) bool {
	words := strings.Fields(use)
	return len(words) > 1 && words[0] != "create" && strings.Trim(words[1], "[]") == "NETWORK"
}

// argsOf derives the arguments of a command from its usage line: those before the flags. A single one may be optional,
// or repeated, also after a network.
func argsOf(use string) func(*Run) error {
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
	last, several := strings.CutSuffix(names[len(names)-1], "...")
	switch {
	case several && found:
		return somePlaces(last)
	case several:
		return Some(last)
	case found && len(names) == 1:
		return mayTake(strings.TrimSuffix(optional, "]"))
	case found:
		return TakesNetwork(names[1])
	}
	return Takes(names...)
}
