package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef(cmd, "%s takes no arguments, and %q is one", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneArg demands one argument. what is its name in messages.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef(cmd, "%s takes exactly one argument, %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// Takes demands an argument for each name in the help. It also refuses empty ones.
func Takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return Usagef(cmd, "%s is missing: %s", names[len(args)], lineOf(cmd, names))
		}
		if len(args) > len(names) {
			return Usagef(cmd, "%q is one argument too many: %s", args[len(names)], lineOf(cmd, names))
		}
		for i, arg := range args {
			if strings.TrimSpace(arg) == "" { // an unset variable of a script
				return Usagef(cmd, "%s is empty: %s", names[i], lineOf(cmd, names))
			}
		}
		return nil
	}
}

// lineOf is a command line with a verb's arguments and its required flags.
func lineOf(cmd *cobra.Command, names []string) string {
	line := cmd.CommandPath() + " " + strings.Join(names, " ")
	if i := strings.Index(cmd.Use, " --"); i >= 0 {
		line += cmd.Use[i:]
	}
	return line
}

// TakesNetwork demands one argument, optionally after a network.
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
			return Usagef(cmd, "%q is one argument too many: %s [%s]", args[1], cmd.CommandPath(), name)
		}
		return nil
	}
}

// First is the argument of a verb with an optional one, or empty.
func First(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// SpaceFlag is the flag --space of lists.
func SpaceFlag(space *string) FlagRow {
	return Flag(space, "space", "only those of the space `NAME`").Of(SpaceRefs)
}

// NotEmpty refuses empty values of flags for which no value means something else.
func NotEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return Usagef(cmd, "--%s is empty; give it a value, or leave it out", name)
		}
	}
	return nil
}

// OwnerFlag is the flag --owner. whose describes it in the help.
func OwnerFlag(owner *string, whose string) FlagRow {
	return Flag(owner, "owner", "`OWNER` "+whose+": a name, project/service/1, or a MAC")
}

// NeedsOwner refuses a command line without --owner.
func NeedsOwner(owner string) error {
	if owner == "" {
		return errors.New("--owner is missing: it says whose the addresses are")
	}
	return nil
}

// ParseSubnet parses --subnet of a list. An empty value is the zero prefix.
func ParseSubnet(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		return subnet, fmt.Errorf("--subnet is %q and must be a prefix such as 10.1.0.0/24", text)
	}
	return subnet, nil
}

// ParseDuration parses a duration. The error names the forms.
func ParseDuration(text string) (ipam.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 10m or 24h", text)
	}
	return ipam.Duration(d), nil
}
