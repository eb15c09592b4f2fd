// Package cli is the frame of the command line: the code that all commands of `berth` share. The packages below it hold
// the commands. All commands have the same exit codes (exit.go), flags, formats and completion. An error is one line on
// standard error. A command that only asks the daemon never touches the daemon's files.
//
// Run (program.go) reads the command line and the flags from the environment (environ.go), and checks the number of
// arguments (args.go, usage.go). The command finds the daemon (find.go, remote.go) and asks it. Lists go through
// list.go and output.go; changes go through edit.go, which prints the result (changes.go). refs.go and complete.go
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

// Program is what the verbs share: where they write, the environment, and the flags that all of them have.
type Program struct {
	in          io.Reader // where somebody can be asked
	Out, Err    io.Writer
	Env         func(string) string
	Environ     func() []string // all of the environment; nil: nothing is known of it
	Now         func() time.Time
	Started     time.Time // of the process
	understood  bool      // the command line names a verb, with flags and arguments that it has
	AdminSocket string    // --admin-socket; empty: not given
	Remote      RemoteFlags
	places      places    // where a daemon is looked for without it
	warned      sync.Once // that the shared store is out of reach
	Version     string    // of this command
}

// New is the program of this process.
func New(version string) *Program {
	return &Program{in: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Environ: os.Environ, Now: time.Now, Started: time.Now(),
		places: defaultPlaces(), Version: version}
}

// Run carries out one command line and returns the exit code.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := noVerb(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil && err.Error() != "" {
		p.Warn([]string{OneLine(err)})
	}
	return exitCode(err, p.understood)
}

// Topic is what commands have in common, under whose title the help of the program lists them.
type Topic struct {
	Title    string
	Commands []*cobra.Command
}

// Hang makes root the command that those of the topics hang from, with the flags that all of them have. What every
// program has (help, completion, manual pages) is of the last topic.
func (p *Program) Hang(root *cobra.Command, topics ...Topic) {
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	asGroup(root)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(help)
	root.PersistentFlags().StringVar(&p.AdminSocket, "admin-socket", "",
		"`path` of the daemon's admin socket, or https://HOST:PORT (serve: "+DefaultAdminSocket+
			"; elsewhere: the one that is found)")
	p.Remote.flags(root.PersistentFlags())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		p.understood = true
		return fromEnvironment(cmd, p.Env)
	}
	for i, topic := range topics {
		if i == len(topics)-1 {
			topic.Commands = append(topic.Commands, p.manualCommand(root))
			root.SetHelpCommand(helpCommand())
			root.SetHelpCommandGroupID(topic.Title)
			root.SetCompletionCommandGroupID(topic.Title)
		}
		root.AddGroup(&cobra.Group{ID: topic.Title, Title: topic.Title + ":"})
		for _, cmd := range topic.Commands {
			cmd.GroupID = topic.Title
			root.AddCommand(cmd)
		}
	}
	completionCommand(root)
}

// Warn writes lines that ask for a person's eye to standard error, beside what a script reads.
func (p *Program) Warn(about ...[]string) {
	for _, lines := range about {
		for _, line := range lines {
			fmt.Fprintln(p.Err, "berth: "+Printable(line))
		}
	}
}

// Say writes lines to standard output, without the control characters that names of others may have.
func (p *Program) Say(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.Out, Printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// All says each of several errors that were joined in a line of its own. What it returns is the last word of them; one
// error is returned as it is.
func (p *Program) All(err error) error {
	all := apart(err)
	if len(all) < 2 {
		return err
	}
	for _, one := range all {
		p.Warn([]string{OneLine(one)})
	}
	return fmt.Errorf("these are %d problems", len(all))
}

// apart are the errors that one joins, each once.
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
