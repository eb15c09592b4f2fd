// Package deploy has the commands that deploy a Compose project container by container, each with its own addresses.
// `plan` changes neither the engine nor the address plan. `apply` does what the plan shows, or reports what has changed
// since.
//
// deploy.go holds the shared flags; prepare.go draws up a plan from the files, the engine and the daemon. show.go
// prints a plan. apply.go runs it with progress bars (bars.go), under a lock of the project (lock.go) that status.go
// shows and ends. regain.go releases addresses that the engine forgot to release, and history.go lists past deploys.
// steps.go has the commands that use the same steps for other purposes.
package deploy

import (
	"berth/internal/cli"
	"berth/internal/cli/compose"
)

// Command is `berth deploy`.
func Command(p *cli.Program) cli.Row {
	return cli.Group("deploy", "Deploy a Compose project",
		planCommand(), applyCommand(), startCommand(), stopCommand(), recreateCommand(), statusCommand(p),
		historyCommand(p), unlockCommand(), orphansCommand())
}

// flags name the project, its engine and its compose command.
type flags struct {
	compose.Project
	engine  string // its URL
	compose string // the compose command
}

func (f *flags) flags() cli.Flags {
	return append(f.Project.Flags(),
		cli.Flag(&f.compose, "compose-command",
			"the `COMMAND` that creates containers (default: docker compose if it "+
				"works, otherwise docker-compose)"),
		cli.DockerHostFlag(&f.engine))
}
