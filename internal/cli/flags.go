package cli

import (
	"fmt"
	"strconv"
	"time"

	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are the flags of a command, a row each.
type Flags []FlagRow

// FlagRow is one flag: the variable that it sets, its name and help, and the completion of its value.
type FlagRow struct {
	to                any
	name, short, help string
	preset, instead   string
	filled, split     bool
	complete          func(*Program) cobra.CompletionFunc
}

// Flag returns the flag that sets a variable. The value that the variable has is the default. A pointer to a pointer
// stays nil if the command line does not have the flag.
func Flag(to any, name, help string) FlagRow { return FlagRow{to: to, name: name, help: help} }

// Names returns the names of the flags.
func (f Flags) Names() (names []string) {
	for _, row := range f {
		names = append(names, row.name)
	}
	return names
}

// Short returns the flag with a letter.
func (f FlagRow) Short(letter string) FlagRow {
	f.short = letter
	return f
}

// Default returns a flag that sets a pointer with a value that the help shows.
func (f FlagRow) Default(text string) FlagRow {
	f.preset = text
	return f
}

// Instead returns a switch whose refusal of another value says what takes such a value.
func (f FlagRow) Instead(text string) FlagRow {
	f.instead = text
	return f
}

// Filled returns the flag as one that no empty value may be given to.
func (f FlagRow) Filled() FlagRow {
	f.filled = true
	return f
}

// Split returns the flag as one that may have several values, separated by commas.
func (f FlagRow) Split() FlagRow {
	f.split = true
	return f
}

// Files returns the flag completed with files of some types.
func (f FlagRow) Files(types ...string) FlagRow {
	f.complete = func(*Program) cobra.CompletionFunc {
		return cobra.FixedCompletions(types, cobra.ShellCompDirectiveFilterFileExt)
	}
	return f
}

// Dirs returns the flag completed with directories.
func (f FlagRow) Dirs() FlagRow {
	f.complete = func(*Program) cobra.CompletionFunc {
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	return f
}

// Words returns the flag completed with a few words.
func (f FlagRow) Words(all ...string) FlagRow {
	f.complete = func(*Program) cobra.CompletionFunc { return words(all...) }
	return f
}

// Of returns the flag completed with what the daemon lists.
func (f FlagRow) Of(refs Refs) FlagRow {
	f.complete = func(p *Program) cobra.CompletionFunc { return p.complete(refs) }
	return f
}

// add adds the flags to a command.
func (all Flags) add(p *Program, cmd *cobra.Command) {
	set := cmd.Flags()
	for _, f := range all {
		switch to := f.to.(type) {
		case *string:
			set.StringVarP(to, f.name, f.short, *to, f.help)
		case *bool:
			set.VarP(&switched{to, f.instead}, f.name, f.short, f.help)
			set.Lookup(f.name).NoOptDefVal = "true" // --flag alone
		case *int:
			set.IntVarP(to, f.name, f.short, *to, f.help)
		case *time.Duration:
			set.DurationVarP(to, f.name, f.short, *to, f.help)
		case *[]string:
			if f.split {
				set.StringSliceVarP(to, f.name, f.short, *to, f.help)
			} else {
				set.StringArrayVarP(to, f.name, f.short, *to, f.help)
			}
		case *map[string]string:
			set.StringToStringVarP(to, f.name, f.short, *to, f.help)
		case *map[string]int:
			set.StringToIntVarP(to, f.name, f.short, *to, f.help)
		case **string:
			setIfGiven(set, to, f)
		case **int:
			setIfGiven(set, to, f)
		case **bool:
			setIfGiven(set, to, f)
			set.Lookup(f.name).NoOptDefVal = "true" // --flag alone
		case pflag.Value:
			set.VarP(to, f.name, f.short, f.help)
		default:
			panic(fmt.Sprintf("--%s sets a %T", f.name, to))
		}
		if f.complete != nil {
			if err := cmd.RegisterFlagCompletionFunc(f.name, f.complete(p)); err != nil {
				panic(err) // two flags have this name
			}
		}
	}
}

// switched is the value of a switch.
type switched struct {
	on      *bool
	instead string
}

func (s *switched) String() string { return strconv.FormatBool(s.on != nil && *s.on) }

func (s *switched) Type() string { return "bool" }

func (s *switched) Set(text string) (err error) {
	*s.on, err = ipam.ParseBool(text)
	if err != nil && s.instead != "" {
		return fmt.Errorf("%w; %s", err, s.instead)
	}
	return err
}

// setIfGiven adds a flag whose variable is a pointer.
func setIfGiven[T string | int | bool](set *pflag.FlagSet, to **T, f FlagRow) {
	value := new(T)
	plain := &cobra.Command{}
	Flags{{to: value, name: f.name}}.add(nil, plain)
	flag := plain.Flags().Lookup(f.name)
	if f.preset != "" {
		_ = flag.Value.Set(f.preset) // a text
	}
	set.VarP(&given[T]{flag.Value, to, value}, f.name, f.short, f.help)
}

// given is the value of such a flag.
type given[T any] struct {
	pflag.Value
	to    **T
	value *T
}

func (g *given[T]) Set(text string) error {
	*g.to = g.value
	return g.Value.Set(text)
}

// check refuses empty values of flags that need one.
func (all Flags) check(r *Run) error {
	var names []string
	for _, f := range all {
		if f.filled {
			names = append(names, f.name)
		}
	}
	return r.NotEmpty(names...)
}
