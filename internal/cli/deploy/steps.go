package deploy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"berth/internal/cli"
	"berth/internal/deploy/rollout"
	"berth/internal/docker"

	"github.com/spf13/cobra"
)

const stepsHelp = `

PROJECT is known by its containers, which say of which files it was made (-f and the other flags name
others); the variables of the environment are those of here. One service of it may be named, or one
replica (web/2). It takes the lock of the project, shows what it would do and asks, as berth deploy apply
does; --yes is the answer.`

func startCommand(p *cli.Program) *cobra.Command {
	return taskCommand(p, rollout.Start, "Make run what the files say is there",
		`Starts the containers of a project that do not run, and makes those that the files say are there and that
are missing, each with the addresses that are reserved for it, service by service in the order of their
dependencies. One that does not run and is not as its files say is made anew. What runs is left as it is:
berth deploy apply brings it to what the files say.`)
}

func stopCommand(p *cli.Program) *cobra.Command {
	return taskCommand(p, rollout.Stop, "Stop the containers, and keep what is reserved for them",
		`Stops the containers of a project, each service before those that it needs, after their drain. They stay,
with their volumes and with what is reserved for them; berth deploy start, and the next berth deploy
apply, start them again. At the end it says which services still run.`)
}

func recreateCommand(p *cli.Program) *cobra.Command {
	return taskCommand(p, rollout.Recreate, "Make the containers anew though nothing has changed",
		`Makes the containers of a project anew though nothing has changed, with the addresses and the volumes
that they have, in the order and with the canaries of berth deploy apply. What uses the network or the
volumes of a service is made anew with it.`)
}

// taskCommand is a verb that takes the steps of a deploy for another end (BD-10).
func taskCommand(p *cli.Program, do rollout.Action, short, long string) *cobra.Command {
	var f flags
	how := carrying{task: rollout.Task{Do: do}}
	cmd := cli.Verb{Use: string(do) + " PROJECT [SERVICE[/N]]", Short: short, Long: long + stepsHelp, Args: taskArgs,
		Example: fmt.Sprintf("  berth deploy %[1]s shop\n  berth deploy %[1]s shop web\n  berth deploy %[1]s shop "+
			"web/2 --yes", do)}.Command(p)
	cmd.ValidArgsFunction = p.CompleteProjects
	f.add(cmd)
	if err := cmd.Flags().MarkHidden("project-name"); err != nil {
		panic(err) // the command has no such flag: a slip above
	}
	how.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("project-name") && f.Source.Project != args[0] {
			return cli.Usage(cmd, errors.New("the project is named by an argument; leave --project-name out"))
		}
		if len(args) > 1 {
			var err error
			if how.task.Service, how.task.Number, err = replicaOf(args[1]); err != nil {
				return cli.Usage(cmd, err)
			}
		}
		f.Source.Project = args[0]
		if err := how.check(cmd); err != nil {
			return err
		}
		if err := f.find(cmd.Context()); err != nil {
			return err
		}
		return how.carryOut(cmd, p, &f, nil)
	}
	return cmd
}

// taskArgs demands a project, and may take what is meant of it.
func taskArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 2 {
		return cli.Takes("PROJECT", "SERVICE[/N]")(cmd, args)
	}
	return cli.Takes("PROJECT")(cmd, args)
}

// replicaOf reads SERVICE or SERVICE/N.
func replicaOf(text string) (service string, number int, err error) {
	service, replica, numbered := strings.Cut(text, "/")
	if numbered {
		number, err = strconv.Atoi(replica)
	}
	if err != nil || service == "" || numbered && number < 1 {
		return "", 0, fmt.Errorf("%q is neither a service nor one of its replicas, such as web/2", text)
	}
	return service, number, nil
}

// find completes what was not said of a project with what its containers say of it.
func (f *flags) find(ctx context.Context) error {
	if len(f.Source.Files) > 0 {
		return nil
	}
	engine, err := docker.Open(f.engine)
	if err != nil {
		return err
	}
	defer engine.Close()
	there, err := engine.Project(ctx, f.Source.Project)
	switch {
	case err != nil:
		return fmt.Errorf("%w; of one that has none yet, name the files with -f", err)
	case len(there.Files) == 0:
		return fmt.Errorf("the containers of the project %s do not say of which files it was made; name them with -f",
			f.Source.Project)
	}
	f.Source.Files = there.Files
	if f.Source.Directory == "" {
		f.Source.Directory = there.Directory
	}
	if len(f.Source.EnvFiles) == 0 {
		f.Source.EnvFiles = there.EnvFiles
	}
	return nil
}
