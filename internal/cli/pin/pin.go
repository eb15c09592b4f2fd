// Package pin has the commands that change the Docker Engine. `pin` makes containers ask for their addresses, and
// `unpin` reverts that. If one of the named containers cannot be changed, none is. An interrupted run can be repeated.
//
// run.go reads the engine and the records and finds the containers' places. do.go pins: it tries all reservations,
// asks, makes them, and moves the containers one by one. unpin.go reverts, and text.go holds the messages.
// internal/docker decides what each place needs.
package pin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/docker/pin"

	"github.com/spf13/cobra"
)

const pinHelp = `Makes containers keep their addresses on any engine, also after a power cut. It reserves each
address for the container's owner and configures it in the Docker Engine. The container then requests it at
each start, as with docker run --ip. --network and --project stand for all containers of a network (Berth's
name or Docker's) or of a Compose project.

A running container is disconnected for about 0.2 s and reconnected with its aliases, links and driver
options. Its connections on that network end, and its interface has another name (eth1) until its next start.
Published ports stay. A stopped container gets its reserved or last address in its configuration. Without
--yes the command asks first.

If one container cannot be pinned, nothing changes. A recreated container is no longer pinned; for Compose
projects use berth compose instead.

Engines before v29 refuse an address of a container's own on a network that was created without --subnet.
Networks of a swarm are left out, because its manager gives their addresses.

--check changes nothing and lists the containers that are not pinned. Exit code 0: all are pinned. 2: some
are not.`

// pinFlags are the flags of pin and unpin.
type pinFlags struct {
	engine  cli.EngineFlags
	network string
	project string
	dryRun  bool
	yes     bool

	check bool       // pin only
	list  cli.Output // of check
	keep  bool       // unpin only
}

// Command is `berth pin`.
func Command(p *cli.Program) cli.Row {
	var flags pinFlags
	return cli.Verb{Args: cobra.ArbitraryArgs, Use: "pin CONTAINER... | --network NETWORK | --project PROJECT",
		Short: "Give containers their addresses for good", Long: pinHelp,
		Example: `  berth pin web db
  berth pin --network front --dry-run
  berth pin --project shop --yes
  berth pin --check
  berth pin --check --network front -q`,
		Any: cli.ContainerRefs,
		Flags: slices.Concat(flags.flags(), flags.list.Flags(p), cli.Flags{
			cli.Flag(&flags.check, "check", "list the containers that are not pinned, and change nothing")}),
		Run: func(cmd *cobra.Command, args []string) error {
			if err := flags.fit(cmd, args); err != nil {
				return cli.Usage(cmd, err)
			}
			if _, err := cli.NewTable(p.Out, cmd, flags.list, pinColumns()); err != nil {
				return err
			}
			if !flags.check {
				return withPins(p, cmd, &flags, args, func(ctx context.Context, r *pinRun) error { return r.pin(ctx) })
			}
			return flags.list.Show(cmd.Context(), p, func(_ context.Context, w io.Writer) error {
				return withPins(p, cmd, &flags, args, func(_ context.Context, r *pinRun) error { return r.check(w) })
			})
		}}
}

// flags are those that pin and unpin have both.
func (f *pinFlags) flags() cli.Flags {
	return append(f.engine.Flags(),
		cli.Flag(&f.network, "network",
			"the containers on a `NETWORK`, by Berth's name or id of it or by Docker's").
			Of(cli.NetworkRefs).Filled(),
		cli.Flag(&f.project, "project",
			"the containers of the Compose `PROJECT`").Of(cli.ProjectRefs).Filled(),
		cli.DryRunFlag(&f.dryRun), cli.YesFlag(&f.yes))
}

// fit refuses a command line that means no containers, or means them twice.
func (f *pinFlags) fit(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return errors.New("the name of a container is empty")
		}
	}
	switch {
	case len(args) > 0 && f.project != "":
		return errors.New("containers are named, or meant by --project; give one of them")
	case len(args) == 0 && f.network == "" && f.project == "" && !f.check:
		return errors.New("which containers is missing: name them, or all of a network or project with " +
			"--network or --project")
	case f.check && (f.dryRun || f.yes):
		return errors.New("--check changes nothing; leave --dry-run and --yes out")
	}
	for _, flag := range []string{"format", "quiet", "sort", "no-headers", "watch"} {
		if !f.check && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for --check", flag)
		}
	}
	return nil
}

func pinColumns() []cli.Column[pin.Pin] {
	return cli.Columns[pin.Pin]("Container", "Network",
		// of both families, cut at 18 characters
		cli.Col("ADDRESSES", func(place *pin.Pin) string { return joinAddrs(place.Addresses) }).AtMost(18),
		"State",
		cli.Field[pin.Pin]("Missing,most=16").Stands(func(*pin.Pin) cli.Alarm { return cli.Warned }),
		"Owner,wide")
}

// check lists who is not pinned.
func (r *pinRun) check(w io.Writer) error {
	show, err := cli.NewTable(w, r.cmd, r.flags.list, pinColumns())
	if err != nil {
		return err
	}
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
	return cli.Difference(isOrAre(len(left), "endpoint") + " not pinned")
}
