// Package compose has the commands that move Compose projects and Docker networks to Berth. They change nothing in
// Docker: they reserve, plan, and write files and steps for a person to carry out.
//
// source.go finds the project and reserves for its services; compose.go writes its override file. adopt.go plans an
// existing Docker network, and project.go all networks of a project. move.go lists the steps that move Docker
// afterwards. internal/deploy reads Compose files and builds overrides; internal/docker reads the engine.
package compose

import (
	"errors"
	"fmt"
	"os"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/docker"
)

const composeHelp = `Reserves addresses for the services of a Compose project on planned networks. Then it
writes an override file with ipv4_address, ipv6_address and mac_address of each service. The MAC identifies a
container if the driver asks for MACs, as berth-mac does. Use the override with the Compose file:

  docker compose -f compose.yaml -f berth.override.yaml up -d

The owner is project/service/1, or the container_name where a service has one. Reservations stay, so a second
run writes the same file. Replicas have their own reservations, but the file cannot give each its own address.

A service that the files put on another network keeps its address on the old one until it runs with the new
one. Reservations of services that the files no longer name stay; the command lists them. It finds those with
a container_name only in the old override file, so pass -o with the same name.

A network is Berth's if its IPAM driver is berth, berth-mac (also with path and tag), the daemon's name in the
engine or --ipam-driver. Its option network names the planned network. For external networks the command asks
the engine. Otherwise use --network. --release ends all reservations of the project, and writes nothing. The
command finds other settings as Compose does.

For an elastic address, give a service x-berth: {elastic: auto} or {elastic: ADDRESS}, and egress_only: true
if you want. The command allocates it to the account of the containers and associates it; auto is one per
replica. If you delete the key, the association ends, but the account keeps the address. x-berth: {addresses:
[IP, ...]} gives each replica its own. Other keys are for berth deploy; unknown keys are refused.`

// composeFlags are the flags of compose.
type composeFlags struct {
	Project
	output  string
	dryRun  bool
	release bool
	wait    time.Duration // how long to wait for somebody else's deploy
	engine  cli.EngineFlags
}

// Command is `berth compose`.
func Command() cli.Row {
	var flags composeFlags
	return cli.Verb{Use: "compose", Short: "Reserve addresses for a Compose project, and write its override file",
		Long: composeHelp,
		Example: `  berth compose -f compose.yaml -o berth.override.yaml
  berth compose -f compose.yaml --network lan=front --dry-run
  berth compose -f compose.yaml -f more.yaml -p shop --scale web=3 -o berth.override.yaml
  berth compose -f compose.yaml --release`,
		Flags: append(flags.Project.Flags(),
			cli.Flag(&flags.output, "output",
				"write to `FILE` instead of standard output").Short("o").Files("yaml", "yml"),
			cli.Flag(&flags.Source.Scale, "scale",
				"`SERVICE=N`: a service has N replicas, instead of the file's number "+
					"(repeatable)"),
			cli.Flag(&flags.dryRun, "dry-run",
				"show each address that would be reserved or released, one per line, but "+
					"change nothing and write no file"),
			cli.Flag(&flags.release, "release", "end all reservations of the project's owners"),
			cli.Flag(&flags.wait, "lock-wait", "how long to wait for a deploy of the project"),
			cli.Flag(&flags.engine.Host, "docker-host",
				"`URL` of the engine, which knows external networks (default: DOCKER_HOST, the "+
					"current docker context, or "+docker.DefaultHost+"; none: ask no engine)")),
		Run: func(r *cli.Run) error {
			if flags.release && r.Given("output") {
				return r.Usagef("--release writes no file; leave out -o")
			}
			return compose(r, flags)
		}}
}

// compose writes the project's override, or releases its addresses.
func compose(r *cli.Run, flags composeFlags) error {
	if err := overwrites(flags.output); err != nil {
		return err
	}
	project, err := flags.Load(r)
	if err != nil {
		return err
	}
	if err = r.Ask(); err == nil {
		err = flags.Look(r, flags.engine, project)
	}
	if err == nil {
		err = Await(r, flags.wait, func() error {
			if flags.release {
				return composeRelease(r, flags.dryRun, project)
			}
			return composeOverride(r, flags, project)
		})
	}
	return r.All(err)
}

// composeRelease releases the addresses of the project's owners and prints them.
func composeRelease(r *cli.Run, dryRun bool, project *deploy.Project) error {
	out, err := r.EditInSteps(client.EditOptions{DryRun: dryRun}, project.Release(),
		func(int) string { return "" })
	switch {
	case err != nil:
		return err
	case dryRun:
		return r.Say(cli.ChangeLines(out.Changes)...)
	}
	return r.Say(cli.SayAddresses(out)...)
}

// composeOverride reserves the addresses that the services want, and writes the override.
func composeOverride(r *cli.Run, flags composeFlags, project *deploy.Project) error {
	plan, out, err := flags.Reserve(r, client.EditOptions{DryRun: flags.dryRun}, project)
	if err != nil {
		return err
	}
	reserved, err := r.Reservations(r, "", "")
	if err != nil {
		return err
	}
	earlier, err := project.Earlier(flags.output)
	if err != nil {
		return err
	}
	r.Warn(append(plan.Missing(), plan.Unclaimed(reserved, earlier)...)...)
	if flags.dryRun {
		return r.Say(cli.ChangeLines(out.Changes)...)
	}
	r.Warn(plan.Kept(reserved)...)
	text, err := plan.Override()
	if err != nil {
		return err
	}
	return cli.WriteText(cli.OpenMode, r.Out, flags.output, text)
}

// overwrites returns an error if the file exists and berth compose did not write it. It may be the Compose file itself.
func overwrites(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ours, err := deploy.IsOverride(file)
	if err == nil && !ours {
		err = fmt.Errorf("%s exists, but `berth compose` did not write it; give another name with -o, or remove it",
			file)
	}
	return err
}
