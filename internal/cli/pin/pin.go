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
func Command(p *cli.Program) *cobra.Command {
	var flags pinFlags
	cmd := cli.Verb{Args: cobra.ArbitraryArgs, Use: "pin CONTAINER... | --network NETWORK | --project PROJECT",
		Short: "Give containers their addresses for good", Long: pinHelp,
		Example: `  berth pin web db
  berth pin --network front --dry-run
  berth pin --project shop --yes
  berth pin --check
  berth pin --check --network front -q`}.Command(p)
	flags.flags(p, cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.check, "check", false, "list the containers that are not pinned, and change nothing")
	flags.list.TableFlags(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.fit(cmd, args); err != nil {
			return err
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
	}
	return cmd
}

// flags adds those that pin and unpin have both.
func (f *pinFlags) flags(p *cli.Program, cmd *cobra.Command) {
	cmd.ValidArgsFunction = p.CompleteContainers
	set := cmd.Flags()
	set.StringVar(&f.network, "network", "", "the containers on a `NETWORK`, by Berth's name or id of it or by "+
		"Docker's")
	set.StringVar(&f.project, "project", "", "the containers of the Compose `PROJECT`")
	set.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	set.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	f.engine.Flags(cmd)
	cli.Completes(cmd, "network", p.CompleteNetworks)
	cli.Completes(cmd, "project", p.CompleteProjects)
}

// fit refuses a command line that means no containers, or means them twice.
func (f *pinFlags) fit(cmd *cobra.Command, args []string) error {
	if err := cli.NotEmpty(cmd, "network", "project"); err != nil {
		return err
	}
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return cli.Usage(cmd, errors.New("the name of a container is empty"))
		}
	}
	switch {
	case len(args) > 0 && f.project != "":
		return cli.Usage(cmd, errors.New("containers are named, or meant by --project; give one of them"))
	case len(args) == 0 && f.network == "" && f.project == "" && !f.check:
		return cli.Usage(cmd, errors.New("which containers is missing: name them, or all of a network or project with "+
			"--network or --project"))
	case f.check && (f.dryRun || f.yes):
		return cli.Usage(cmd, errors.New("--check changes nothing; leave --dry-run and --yes out"))
	}
	for _, flag := range []string{"format", "quiet", "sort", "no-headers", "watch"} {
		if !f.check && cmd.Flags().Changed(flag) {
			return cli.Usage(cmd, fmt.Errorf("--%s is for --check", flag))
		}
	}
	return nil
}

// So many characters are shown of a container's addresses, which may be of both families, and of what is missing.
const (
	addressesShown = 18
	missingShown   = 16
)

func pinColumns() []cli.Column[pin.Pin] {
	return []cli.Column[pin.Pin]{
		cli.Col("CONTAINER", func(place *pin.Pin) string { return place.Container }),
		cli.Col("NETWORK", func(place *pin.Pin) string { return place.Network }),
		cli.Col("ADDRESSES", func(place *pin.Pin) string { return joinAddrs(place.Addresses) }).AtMost(addressesShown),
		cli.Col("STATE", func(place *pin.Pin) string { return place.State }),
		cli.Col("MISSING", func(place *pin.Pin) string { return place.Missing }).AtMost(missingShown).
			Stands(func(*pin.Pin) cli.Alarm { return cli.Warned }),
		cli.WideCol("OWNER", func(place *pin.Pin) string { return place.Owner }),
	}
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
