// Package pin has the commands that change the Docker Engine. `pin` makes containers ask for their addresses, and
// `unpin` reverts that. If one of the named containers cannot be changed, none is. An interrupted run can be repeated.
//
// run.go reads the engine and the records and finds the containers' endpoints. do.go pins: it tries all reservations,
// asks, makes them, and moves the containers one by one. unpin.go reverts, and text.go holds the messages.
// internal/docker decides what each endpoint needs.
package pin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/docker/pin"
)

const pinHelp = `Makes containers keep their addresses on any engine, also after a power cut. It reserves each
address for the container's owner and configures it in the Docker Engine. The container then requests it at
each start, as with docker run --ip. --network and --project stand for all containers of a network (Berth's
name or Docker's) or of a Compose project.

A running container is disconnected for about 0.2 s and reconnected with its aliases, links, driver options
and configured MAC. Engines 25.0 to 29.2 cannot give it that MAC again: there the command refuses containers
with a configured MAC, unless you accept the loss with --lose-mac. Its connections on that network end, and its
interface has another name (eth1) until its next start. Published ports stay. A stopped container gets its
reserved or last address in its configuration. If Berth's network has a MAC prefix, a container without a
configured MAC gets its owner's, from Docker Engine 29.3 on. Without --yes the command asks first.

If one container cannot be pinned, nothing changes. A recreated container is no longer pinned; for Compose
projects use berth compose instead.

Engines before 29.0.4 refuse to configure an address on a network that was created without --subnet. Berth
leaves out the networks of a swarm, because the swarm's manager assigns their addresses.

--check changes nothing and lists the containers that are not pinned. Exit code 0: all are pinned. 2: some
are not.`

// pinFlags are the flags of pin and unpin.
type pinFlags struct {
	engine  cli.EngineFlags
	network string
	project string
	dryRun  bool
	yes     bool
	loseMAC bool

	check bool       // pin only
	list  cli.Output // of check
	keep  bool       // unpin only
}

// Command is `berth pin`.
func Command(p *cli.Program) cli.Row {
	var flags pinFlags
	return cli.Verb{Args: anyArgs, Use: "pin CONTAINER... | --network NETWORK | --project PROJECT",
		Short: "Give containers their addresses for good", Long: pinHelp,
		Example: `  berth pin web db
  berth pin --network front --dry-run
  berth pin --project shop --yes
  berth pin --check
  berth pin --check --network front -q`,
		Any: cli.ContainerRefs,
		Flags: slices.Concat(flags.flags(), flags.list.Flags(p), cli.Flags{
			cli.Flag(&flags.check, "check", "list the containers that are not pinned, and change nothing")}),
		Check: flags.fit,
		Run: func(r *cli.Run) error {
			if _, err := cli.NewTable(r, flags.list, pinColumns()); err != nil {
				return err
			}
			if !flags.check {
				return withPins(r, &flags, (*pinRun).pin)
			}
			return flags.list.Show(r, func(r *cli.Run, w io.Writer) error {
				return withPins(r, &flags, func(r *pinRun) error { return r.check(w) })
			})
		}}
}

// anyArgs takes any arguments; fit checks them.
func anyArgs(*cli.Run) error { return nil }

// flags returns the common flags of pin and unpin.
func (f *pinFlags) flags() cli.Flags {
	return append(f.engine.Flags(),
		cli.Flag(&f.network, "network",
			"the containers on a `NETWORK`, by its name or id in Berth or in Docker").
			Of(cli.NetworkRefs).Filled(),
		cli.Flag(&f.project, "project",
			"the containers of the Compose `PROJECT`").Of(cli.ProjectRefs).Filled(),
		cli.DryRunFlag(&f.dryRun), cli.YesFlag(&f.yes), cli.LoseMACFlag(&f.loseMAC))
}

// fit refuses a command line that selects no containers, or selects them in two ways.
func (f *pinFlags) fit(r *cli.Run) error {
	for _, arg := range r.Args {
		if strings.TrimSpace(arg) == "" {
			return errors.New("the name of a container is empty")
		}
	}
	switch {
	case len(r.Args) > 0 && f.project != "":
		return errors.New("give either containers or --project, not both")
	case len(r.Args) == 0 && f.network == "" && f.project == "" && !f.check:
		return errors.New("no containers are named: name them, or use --network or --project to name all containers " +
			"of one")
	case f.check && (f.dryRun || f.yes || f.loseMAC):
		return errors.New("--check changes nothing; leave out --dry-run, --yes and --lose-mac")
	}
	for _, flag := range []string{"format", "quiet", "sort", "no-headers", "watch"} {
		if !f.check && r.Given(flag) {
			return fmt.Errorf("--%s works only with --check", flag)
		}
	}
	return nil
}

func pinColumns() []cli.Column[pin.Pin] {
	return cli.Columns[pin.Pin]("Container", "Network",
		// addresses of both families, cut to 18 characters
		cli.Col("ADDRESSES", func(place *pin.Pin) string { return joinAddrs(place.Addresses) }).AtMost(18),
		"State,wide",
		cli.Field[pin.Pin]("Missing,most=25").Stands(func(*pin.Pin) cli.Alarm { return cli.Warned }),
		"Owner,wide")
}

// check lists the endpoints that are not pinned.
func (r *pinRun) check(w io.Writer) error {
	show, err := cli.NewTable(r.Run, r.flags.list, pinColumns())
	if err != nil {
		return err
	}
	show.W = w
	left := []pin.Pin{}
	for _, place := range r.pins {
		if !place.Pinned {
			left = append(left, place)
		}
	}
	if err := show.Rows(left); err != nil {
		return err
	} else if len(left) == 0 {
		return nil
	}
	return cli.Difference(isOrAre(len(left), "endpoint") + " not pinned, and may get another address; run berth pin")
}
