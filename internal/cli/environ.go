package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variable is the name under which the environment carries a flag: --admin-socket is BERTH_ADMIN_SOCKET.
func variable(flag string) string {
	return "BERTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that the command line did not from the environment. An empty variable counts as unset,
// because the settable variables of a managed plugin are empty until somebody sets them.
func fromEnvironment(cmd *cobra.Command, getenv func(string) string) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || !reads(cmd.Name(), f.Name) {
			return
		}
		value := strings.TrimSpace(getenv(variable(f.Name)))
		if value == "" || failed != nil {
			return
		}
		if err := f.Value.Set(value); err != nil {
			failed = Usage(cmd, fmt.Errorf("the environment has %s=%q: %w", variable(f.Name), value, err))
		}
	})
	return failed
}

// FlagCheckSettings is the flag of serve that has it check its settings and end.
const FlagCheckSettings = "check-settings"

// reads tells whether a verb takes a flag from the environment: only what belongs to an installation. A variable for
// --format or --force would change what a script does behind its back.
func reads(verb, flag string) bool {
	switch verb {
	case "serve", "witness":
		return flag != FlagCheckSettings
	case "edge":
		if flag == "provider" || flag == "exec" {
			return true
		}
	case "copy", "restore": // which stand in for the daemon
		return flag == "admin-socket" || flag == "state" || flag == "host" || strings.HasPrefix(flag, "etcd-")
	}
	return flag == "admin-socket" || flag == flagDockerHost || isRemoteFlag(flag)
}
