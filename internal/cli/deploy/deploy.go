// Package deploy has the verbs that bring a Compose project to what its files say, container by container, each with
// the addresses that are its own. It promises that `plan` changes nothing, neither on the engine nor in the plan of
// addresses, and that `apply` does what was shown, or says what has moved since.
//
// deploy.go has what the verbs share: the flags, and how a plan is drawn of files, engine and daemon (prepare.go).
// show.go writes a plan; apply.go carries one out, under a lock of the project (lock.go), which status.go shows
// and ends.
package deploy

import (
	"os"

	"berth/internal/cli"
	"berth/internal/deploy"

	"github.com/spf13/cobra"
)

// Exit codes besides those of all commands: plan says by one that there is something to do, and so wrong usage has
// another than elsewhere.
const (
	exitChanges = 2
	exitUsage   = 64
)

// Command is `berth deploy`.
func Command(p *cli.Program) *cobra.Command {
	cmd := cli.Group("deploy", "Bring a Compose project to what its files say, container by container",
		planCommand(p), applyCommand(p), statusCommand(p), unlockCommand(p))
	cli.UsageCode(cmd, exitUsage)
	return cmd
}

// flags say which project is meant, and by what it is made.
type flags struct {
	source  deploy.Source
	mapping deploy.Mapping
	engine  string // its URL
	compose string // the compose command
}

func (f *flags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringArrayVarP(&f.source.Files, "file", "f", nil, "a Compose `FILE` (repeatable; none: as Compose finds it)")
	set.StringVarP(&f.source.Project, "project-name", "p", "", "the `NAME` of the project")
	set.StringVar(&f.source.Directory, "project-directory", "",
		"the `directory` of the project (that of the first file)")
	set.StringArrayVar(&f.source.EnvFiles, "env-file", nil,
		"a `FILE` of variables for the Compose file (repeatable; .env)")
	set.StringArrayVar(&f.source.Profiles, "profile", nil, "also the services of the profile `NAME` (repeatable)")
	set.StringVar(&f.compose, "compose-command", "", "the `COMMAND` by which containers are made (default: docker "+
		"compose where it answers, else docker-compose)")
	set.StringVar(&f.engine, "docker-host", "", "`URL` of the engine (default: unix:///var/run/docker.sock)")
	set.StringVar(&f.mapping.Driver, "ipam-driver", "",
		"the `NAME` of the IPAM driver that is Berth, if it is called neither berth nor berth-mac")
	set.StringToStringVar(&f.mapping.Networks, "network", nil,
		"`NETWORK=PLANNED`: a network of the Compose file is on that planned one (repeatable)")
	if err := cmd.MarkFlagFilename("file", "yaml", "yml"); err != nil {
		panic(err) // the command has no such flag: a slip above
	}
}

// load reads the project's files.
func (f *flags) load(cmd *cobra.Command, p *cli.Program) (*deploy.Project, error) {
	p.SayOfCompose()
	f.source.Environment = os.Environ()
	return deploy.Load(cmd.Context(), f.source)
}
