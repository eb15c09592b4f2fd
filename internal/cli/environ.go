package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variable is the environment variable of a flag: --admin-socket is BERTH_ADMIN_SOCKET.
func variable(flag string) string {
	return "BERTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets flags that the command line does not set. An empty variable counts as unset, because a managed
// plugin's settable variables are empty by default.
func fromEnvironment(cmd *cobra.Command, getenv func(string) string) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || !reads(cmd.Name(), f.Name) {
			return
		}
		value := strings.TrimSpace(getenv(variable(f.Name)))
		if value == "" && f.Name == flagDockerHost && !serves(cmd.Name()) && failed == nil {
			value, _, failed = dockerHost(getenv)
		}
		if value == "" || failed != nil {
			return
		}
		if err := f.Value.Set(value); err != nil {
			failed = Usage(cmd, fmt.Errorf("the environment has %s=%q: %w", variable(f.Name), value, err))
		}
	})
	return failed
}

// serves reports whether a verb runs for long and beside one engine. A variable of a person's shell must not choose
// that engine.
func serves(verb string) bool { return verb == "serve" || verb == "witness" }

// FlagCheckSettings is the flag of serve that only checks the settings.
const FlagCheckSettings = "check-settings"

// reads reports whether a verb reads a flag from the environment. Only flags of an installation qualify: a variable for
// --format or --force could break scripts without a trace.
func reads(verb, flag string) bool {
	switch {
	case serves(verb):
		return flag != FlagCheckSettings
	case verb == "edge":
		if flag == "provider" || flag == "exec" {
			return true
		}
	case verb == "copy" || verb == "restore": // these act in place of the daemon
		return flag == "admin-socket" || flag == "state" || flag == "host" || strings.HasPrefix(flag, "etcd-")
	}
	return flag == "admin-socket" || flag == flagDockerHost || isRemoteFlag(flag)
}
