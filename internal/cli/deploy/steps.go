package deploy

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"berth/internal/cli"
	"berth/internal/deploy/rollout"
	"berth/internal/docker"
)

const stepsHelp = `

Without -f, the command takes the Compose files from the labels of PROJECT's containers. Variables come from your
environment.
You can name one service, or one replica (web/2). The command locks the project, shows what it would do and
asks first; --yes skips the question.`

func startCommand() cli.Row {
	return taskCommand(rollout.Start, "Start all containers of the files",
		`Starts stopped containers of a project and creates missing ones, with their reserved addresses, in the
order of dependencies. It recreates stopped containers that differ from the files. It does not
change running containers; use berth deploy apply for them.`)
}

func stopCommand() cli.Row {
	return taskCommand(rollout.Stop, "Stop the containers, and keep their reservations",
		`Drains and stops the containers of a project, each service before its dependencies. Containers, volumes and
reservations stay. berth deploy start and berth deploy apply start them again. At the end it lists the
services that still run.`)
}

func recreateCommand() cli.Row {
	return taskCommand(rollout.Recreate, "Recreate containers even if nothing has changed",
		`Recreates the containers of a project even if nothing has changed. They keep their addresses and volumes.
The order and the canaries are as in berth deploy apply. Containers that use the network or volumes of a service
are recreated with it.`)
}

// taskCommand is a command that uses the steps of a deploy for another purpose.
func taskCommand(do rollout.Action, short, long string) cli.Row {
	var f flags
	how := carrying{task: rollout.Task{Do: do}}
	return cli.Verb{Use: string(do) + " PROJECT [SERVICE[/N]]", Short: short, Long: long + stepsHelp, Args: taskArgs,
		Example: fmt.Sprintf("  berth deploy %[1]s shop\n  berth deploy %[1]s shop web\n  berth deploy %[1]s shop "+
			"web/2 --yes", do),
		Check:  how.check,
		Any:    cli.ProjectRefs,
		Hidden: "project-name",
		Flags:  append(f.flags(), how.flags()...),
		Run: func(r *cli.Run) error {
			if r.Given("project-name") && f.Source.Project != r.Args[0] {
				return r.Usagef("the argument already names the project; leave out --project-name")
			}
			if len(r.Args) > 1 {
				var err error
				if how.task.Service, how.task.Number, err = replicaOf(r.Args[1]); err != nil {
					return cli.Usage(r.Cmd, err)
				}
			}
			f.Source.Project = r.Args[0]
			if err := f.find(r); err != nil {
				return err
			}
			return how.carryOut(r, &f, nil)
		}}
}

// taskArgs demands a project, and allows services or replicas after it.
func taskArgs(r *cli.Run) error {
	if len(r.Args) == 2 {
		return cli.Takes("PROJECT", "SERVICE[/N]")(r)
	}
	return cli.Takes("PROJECT")(r)
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

// find completes missing facts about a project from its containers.
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
		return fmt.Errorf("%w; if the project has no containers yet, name its files with -f", err)
	case len(there.Files) == 0:
		return fmt.Errorf("the containers of the project %s do not name its Compose files; name the files with -f",
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
