// Package cli is the frame of the command line: the code that all commands of `berth` share. The packages below it hold
// the commands. All commands have the same exit codes (exit.go), flags, formats and completion. An error is one line on
// standard error. A command that only asks the daemon never touches the daemon's files.
//
// A command is a Listing or Showing (list.go), a Change (edit.go) or a plain Verb (verb.go), with rows for its flags
// (flags.go), columns and keys (fields.go). Program.Run reads the command line and the flags from the environment
// (environ.go), and checks the number of arguments (args.go, usage.go). The command gets a Run (run.go): with it, it
// finds the daemon (find.go, remote.go) and asks it. Lists go through output.go and table.go. refs.go and complete.go
// complete names. engine.go reads the Docker Engine; files.go, confirm.go and progress.go handle files, questions and
// waits.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// Program holds what all commands share: output, environment, and global flags.
type Program struct {
	in          io.Reader // for questions to the user
	Out, Stderr io.Writer
	Env         func(string) string
	Environ     func() []string // the whole environment; nil: unknown
	Now         func() time.Time
	Started     time.Time // when the process started
	understood  bool      // the command line names a command, with valid flags and arguments
	AdminSocket string    // --admin-socket; empty: not given
	Remote      RemoteFlags
	places      places    // where to look for a daemon without --admin-socket
	warned      sync.Once // of an unreachable shared store
	Build       string    // the version of this command
}

// New returns the program of this process.
func New(version string) *Program {
	return &Program{in: os.Stdin, Out: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Environ: os.Environ, Now: time.Now,
		Started: time.Now(), places: defaultPlaces(), Build: version}
}

// Run runs one command line and returns the exit code.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := noVerb(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil && err.Error() != "" {
		p.Warn(OneLine(err))
	}
	return exitCode(err, p.understood)
}

// Topic is a heading in the program's help with its commands.
type Topic struct {
	Title    string
	Commands []Row
}

// Hang adds the topics' commands and the global flags to root. The last topic also gets the commands of every program:
// help, completion and manual pages.
func (p *Program) Hang(root *cobra.Command, topics ...Topic) {
	root.SetOut(p.Out)
	root.SetErr(p.Stderr)
	asGroup(root)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(help)
	root.PersistentFlags().StringVar(&p.AdminSocket, "admin-socket", "",
		"`path` of the daemon's admin socket, or https://HOST:PORT (default of serve: "+DefaultAdminSocket+
			"; other commands search for the socket)")
	p.Remote.flags(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		p.understood = true
		return fromEnvironment(cmd, p.Env)
	}
	for i, topic := range topics {
		if i == len(topics)-1 {
			topic.Commands = append(topic.Commands, manual{})
			root.SetHelpCommand(helpCommand())
			root.SetHelpCommandGroupID(topic.Title)
			root.SetCompletionCommandGroupID(topic.Title)
		}
		root.AddGroup(&cobra.Group{ID: topic.Title, Title: topic.Title + ":"})
		for _, row := range topic.Commands {
			cmd := row.Command(p)
			cmd.GroupID = topic.Title
			root.AddCommand(cmd)
		}
	}
	completionCommand(root)
}

// Warn writes lines for a person to standard error, apart from what a script reads.
func (p *Program) Warn(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(p.Stderr, "berth: "+Printable(line))
	}
}

// Warnf writes one such line.
func (p *Program) Warnf(format string, args ...any) { p.Warn(fmt.Sprintf(format, args...)) }

// Note writes a line about what a command has done to standard error.
func (r *Run) Note(format string, args ...any) {
	fmt.Fprintf(r.Stderr, "%s: %s\n", r.Cmd.CommandPath(), Printable(fmt.Sprintf(format, args...)))
}

// Sayf writes a line to standard output, as Say does.
func (p *Program) Sayf(format string, args ...any) error { return p.Say(fmt.Sprintf(format, args...)) }

// Say writes lines to standard output, without the control characters that names of others may have.
func (p *Program) Say(lines ...string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.Out, Printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// All prints several joined errors, each on its own line, and returns an error with their number. A single error is
// returned unchanged.
func (p *Program) All(err error) error {
	all := apart(err)
	if len(all) < 2 {
		return err
	}
	for _, one := range all {
		p.Warn(OneLine(one))
	}
	return fmt.Errorf("there are %d problems", len(all))
}

// apart returns the errors that were joined, each once.
func apart(err error) (all []error) {
	several, joined := err.(interface{ Unwrap() []error })
	if !joined {
		return []error{err}
	}
	for _, one := range several.Unwrap() {
		all = append(all, apart(one)...)
	}
	return all
}
