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
			return Usage(cmd, fmt.Errorf("%s is missing: %s %s", names[len(args)], cmd.CommandPath(),
				strings.Join(names, " ")))
		}
		if len(args) > len(names) {
			return Usage(cmd, fmt.Errorf("%q is one argument too many: %s %s", args[len(names)], cmd.CommandPath(),
				strings.Join(names, " ")))
		}
		for i, arg := range args {
			if strings.TrimSpace(arg) == "" { // a script's variable that is not set
				return Usage(cmd, fmt.Errorf("%s is empty: %s %s", names[i], cmd.CommandPath(),
					strings.Join(names, " ")))
			}
		}
		return nil
	}
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

// Since reads a time, or how long ago it was.
func Since(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d.Abs()), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("must be a duration such as 2h, or a time such as 2026-01-31T08:00:00Z (RFC 3339)")
}

// ParseDuration reads how long.
func ParseDuration(text string) (ipam.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 10m or 24h", text)
	}
	return ipam.Duration(d), nil
}
