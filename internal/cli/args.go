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
func NoArgs(r *Run) error {
	if len(r.Args) > 0 {
		return r.Usagef("%s takes no arguments; leave out %q", r.Cmd.CommandPath(), r.Args[0])
	}
	return nil
}

// OneArg demands one argument. what is its name in messages.
func OneArg(what string) func(*Run) error {
	return func(r *Run) error {
		if len(r.Args) != 1 {
			return r.Usagef("%s takes exactly one argument, %s", r.Cmd.CommandPath(), what)
		}
		return nil
	}
}

// Takes demands an argument for each name in the help. It also refuses empty ones.
func Takes(names ...string) func(*Run) error {
	return func(r *Run) error {
		if len(r.Args) < len(names) {
			return r.Usagef("%s is missing: %s", names[len(r.Args)], lineOf(r.Cmd, names))
		}
		if len(r.Args) > len(names) {
			return r.Usagef("%q is one argument too many: %s", r.Args[len(names)], lineOf(r.Cmd, names))
		}
		for i, arg := range r.Args {
			if strings.TrimSpace(arg) == "" { // an unset variable of a script
				return r.Usagef("%s is empty: %s", names[i], lineOf(r.Cmd, names))
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
func TakesNetwork(name string) func(*Run) error {
	return func(r *Run) error {
		if len(r.Args) == 2 {
			return Takes("NETWORK", name)(r)
		}
		return Takes(name)(r)
	}
}

// mayTake allows one argument.
func mayTake(name string) func(*Run) error {
	return func(r *Run) error {
		if len(r.Args) > 1 {
			return r.Usagef("%q is one argument too many: %s [%s]", r.Args[1], r.Cmd.CommandPath(), name)
		}
		return nil
	}
}

// SpaceFlag is the flag --space of lists.
func SpaceFlag(space *string) FlagRow {
	return Flag(space, "space", "use only the space `NAME`").Of(SpaceRefs)
}

// NotEmpty refuses empty values of flags for which no value means something else.
func (r *Run) NotEmpty(names ...string) error {
	for _, name := range names {
		if f := r.Cmd.Flags().Lookup(name); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return r.Usagef("--%s is empty; give it a value, or leave it out", name)
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
		return errors.New("--owner is missing: it names the owner of the addresses")
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
