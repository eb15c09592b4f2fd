package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(cmd, fmt.Errorf("%s takes no arguments, and %q is one", cmd.CommandPath(), args[0]))
	}
	return nil
}

// OneArg demands one, which is what.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usage(cmd, fmt.Errorf("%s takes exactly one argument, %s", cmd.CommandPath(), what))
		}
		return nil
	}
}

// Takes holds a verb to its arguments, each by its name in the help.
func Takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return Usage(cmd, fmt.Errorf("%s is missing: %s", names[len(args)], lineOf(cmd, names)))
		}
		if len(args) > len(names) {
			return Usage(cmd, fmt.Errorf("%q is one argument too many: %s", args[len(names)], lineOf(cmd, names)))
		}
		for i, arg := range args {
			if strings.TrimSpace(arg) == "" { // a script's variable that is not set
				return Usage(cmd, fmt.Errorf("%s is empty: %s", names[i], lineOf(cmd, names)))
			}
		}
		return nil
	}
}

// lineOf is a command line with the arguments of a verb, and the flags that it needs.
func lineOf(cmd *cobra.Command, names []string) string {
	line := cmd.CommandPath() + " " + strings.Join(names, " ")
	if i := strings.Index(cmd.Use, " --"); i >= 0 {
		line += cmd.Use[i:]
	}
	return line
}

// TakesNetwork demands one argument, before which a network may be named.
func TakesNetwork(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			return Takes("NETWORK", name)(cmd, args)
		}
		return Takes(name)(cmd, args)
	}
}

// MayTake allows one argument.
func MayTake(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usage(cmd, fmt.Errorf("%q is one argument too many: %s [%s]", args[1], cmd.CommandPath(), name))
		}
		return nil
	}
}

// First is the argument of a verb that may take one.
func First(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// SpaceFlag adds --space.
func (p *Program) SpaceFlag(cmd *cobra.Command, space *string) {
	cmd.Flags().StringVar(space, "space", "", "only those of the space `NAME`")
	Completes(cmd, "space", p.CompleteSpaces)
}

// NotEmpty refuses flags that are given without a value, where no value would mean something else.
func NotEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return Usage(cmd, fmt.Errorf("--%s is empty; give it a value, or leave it out", name))
		}
	}
	return nil
}

// Changed refuses a verb that modifies without a flag that says what.
func Changed(cmd *cobra.Command, flags ...string) error {
	if slices.ContainsFunc(flags, cmd.Flags().Changed) {
		return nil
	}
	return Usage(cmd, fmt.Errorf("nothing is to be changed; say what with --%s", strings.Join(flags, ", --")))
}

// OwnerFlag adds --owner to what needs one; whose is what the verb does with it.
func OwnerFlag(cmd *cobra.Command, owner *string, whose string) {
	cmd.Flags().StringVar(owner, "owner", "", "`OWNER` "+whose+": a name, project/service/1, or a MAC")
}

// NeedsOwner refuses a command line without --owner.
func NeedsOwner(cmd *cobra.Command, owner string) error {
	if owner == "" {
		return Usage(cmd, errors.New("--owner is missing: it says whose the addresses are"))
	}
	return nil
}

// ParseDuration reads how long.
func ParseDuration(text string) (ipam.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 10m or 24h", text)
	}
	return ipam.Duration(d), nil
}
