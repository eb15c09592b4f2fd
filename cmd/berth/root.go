package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// program is what the verbs share: where they write, the environment, and the flags that all of them have.
type program struct {
	in          io.Reader // where somebody can be asked
	out, err    io.Writer
	env         func(string) string
	now         func() time.Time
	started     time.Time // of the process
	understood  bool      // the command line names a verb, with flags and arguments that it has
	adminSocket string    // --admin-socket; empty: not given
	remote      remoteFlags
	places      places    // where a daemon is looked for without it
	warned      sync.Once // that the shared store is out of reach
}

const rootHelp = `Berth gives Docker networks and containers addresses that are theirs, and keeps them theirs.

"berth serve" is the daemon. The other commands ask it over its admin socket; they find it by
themselves, be it a daemon of this host or a managed plugin of this host's Docker Engine.

Exit codes: 0 done; 1 refused, with the reason on standard error; 2 wrong usage.`

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "Durable IP addresses for Docker networks and containers",
		Long:  rootHelp,
		Example: `  berth serve                               the daemon, as root
  docker network create --ipam-driver berth NAME
  berth network create NAME --subnet CIDR   plan a network before Docker uses it (--ipam-opt network=NAME)
  berth lease ls                            who has which address
  berth check                               whether what is given is what runs
  berth events --follow                     who takes and gives what, as it happens`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(p.out)
	root.SetErr(p.err)
	asGroup(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	root.PersistentFlags().StringVar(&p.adminSocket, "admin-socket", "",
		"`path` of the daemon's admin socket, or https://HOST:PORT (serve: "+defaultAdminSocket+"; elsewhere: the one that is found)")
	p.remote.flags(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		p.understood = true
		return fromEnvironment(cmd, p.env)
	}
	root.AddCommand(p.serveCommand(), p.leaseCommand(), p.subnetCommand(), p.spaceCommand(), p.eventsCommand(),
		p.networkCommand(), p.poolCommand(), p.exclusionCommand(), p.reservationCommand(), p.addressCommand(), p.envCommand(), p.ipCommand(), p.whoCommand(),
		p.statusCommand(), p.checkCommand(), p.witnessCommand(), p.adoptCommand(), p.composeCommand(), p.hostCommand(),
		p.exportCommand(), p.importCommand(), p.backupCommand(), p.restoreCommand(), p.storeCommand(), p.fsckCommand(), p.tokenCommand(), p.versionCommand())
	completionCommand(root)
	root.SetHelpCommand(helpCommand())
	return root
}

// group makes a command that only holds others.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	asGroup(cmd)
	cmd.AddCommand(verbs...)
	return cmd
}

// asGroup has a command without a verb show its help, and refuse a verb that is none.
func asGroup(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("%q is no command of %s", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
		}
		return usage(cmd, errors.New(text))
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// helpCommand is cobra's, but for a command that is not there: that is wrong usage here as everywhere.
func helpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "help [COMMAND]", Short: "Show the help of a command"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, rest, err := cmd.Root().Find(args)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("there is no command %q", strings.Join(args, " "))
		}
		if err != nil {
			return usage(cmd.Root(), err)
		}
		found.InitDefaultHelpFlag()
		return found.Help()
	}
	return cmd
}

// noArgs and oneArg are the counts of arguments that the verbs take.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, fmt.Errorf("%s takes no arguments, and %q is one", cmd.CommandPath(), args[0]))
	}
	return nil
}

func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(cmd, fmt.Errorf("%s takes exactly one argument, %s", cmd.CommandPath(), what))
		}
		return nil
	}
}

// usageError is wrong usage: exit code 2.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// usage marks err as wrong usage of cmd, and says where the right one is written.
func usage(cmd *cobra.Command, err error) error {
	return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

func isUsage(err error) bool {
	var u *usageError
	return errors.As(err, &u)
}

// oneLine keeps an error to a line, whatever a library or a file name put into it.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}
