// Package deploy has the verbs that bring a Compose project to what its files say, container by container, each with
// the addresses that are its own. It promises that `plan` changes nothing, neither on the engine nor in the plan of
// addresses, and that `apply` does what was shown, or says what has moved since.
//
// deploy.go has what the verbs share: the flags, and how a plan is drawn of files, engine and daemon (prepare.go).
// show.go writes a plan; apply.go carries one out and tells of it (bars.go), under a lock of the project (lock.go),
// which status.go shows and ends; regain.go frees addresses that an engine has forgotten to release; history.go has
// what came of a deploy. steps.go has the verbs that take the same steps for another end.
package deploy

import (
	"berth/internal/cli"
	"berth/internal/cli/compose"

	"github.com/spf13/cobra"
)

// Command is `berth deploy`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("deploy", "Bring a Compose project to what its files say",
		planCommand(p), applyCommand(p), startCommand(p), stopCommand(p), recreateCommand(p), statusCommand(p),
		historyCommand(p), unlockCommand(p), orphansCommand(p))
}

// flags say which project is meant, and by what it is made.
type flags struct {
	compose.Project
	engine  string // its URL
	compose string // the compose command
}

func (f *flags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	f.Project.Flags(cmd)
	set.StringVar(&f.compose, "compose-command", "", "the `COMMAND` by which containers are made (default: docker "+
		"compose where it answers, else docker-compose)")
	set.StringVar(&f.engine, "docker-host", "", "`URL` of the engine (default: unix:///var/run/docker.sock)")
}
