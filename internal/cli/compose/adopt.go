package compose

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/cli/document"
	"berth/internal/deploy"
	"berth/internal/docker"
	"berth/internal/ipam"
	"berth/internal/plan"
)

const adoptHelp = `Plans a network from a Docker network that uses another IPAM driver: its subnets, gateways
and range. Each address that a container has, or that you configured for it, becomes a reservation. Nothing
changes in Docker. Existing plans stay, as with berth plan import.

With -o it writes the plan to a document that you can edit and import. At the end it prints how to move the
Docker network to Berth. You do this by hand, because the containers lose their network for a moment.

--project adopts a whole Compose project. It plans each network of the project and reserves each address for
its owner (project/service/1, or the container_name). It writes an override file next to the Compose file (or
to -o). The file moves the networks to Berth and keeps each service's address. Then it prints the steps;
Compose does the move. It uses the Compose files of the containers; -f names others.`

// adoptFlags are the flags of adopt.
type adoptFlags struct {
	engine cli.EngineFlags
	name   string
	file   string
	source deploy.Source // of the Compose project; without a project name, the argument is a Docker network
	edit   cli.EditFlags
}

// AdoptCommand is `berth adopt`.
func AdoptCommand() cli.Row {
	var flags adoptFlags
	return cli.Verb{Use: "adopt DOCKER-NETWORK | --project PROJECT",
		Short: "Plan the addresses of a Docker network or Compose project", Long: adoptHelp,
		Args: flags.fit, Refs: []cli.Refs{},
		Example: `  berth adopt shop --dry-run
  berth adopt shop
  berth adopt shop --name front
  berth adopt shop -o shop.yaml
  berth adopt --project shop --dry-run
  berth adopt --project shop`,
		Flags: append(flags.engine.Flags(),
			cli.Flag(&flags.name, "name",
				"the `NAME` of the planned network (default: the name of the Docker network)").
				Of(cli.NetworkRefs),
			cli.Flag(&flags.file, "output",
				"write the plan to `FILE` (- is standard output) instead of importing it; with "+
					"--project, the override").Short("o"),
			cli.Flag(&flags.source.Project, "project",
				"adopt the networks and containers of the Compose `PROJECT`").
				Short("p").Of(cli.ProjectRefs),
			cli.Flag(&flags.source.Files, "file",
				"a Compose `FILE` of the project (repeatable; default: the files that its "+
					"containers were created from)").Short("f"),
			cli.Flag(&flags.source.Profiles, "profile",
				"also the services of the profile `NAME` of the project (repeatable)"),
			cli.Flag(&flags.edit.DryRun, "dry-run", "check, show what would be added, and change nothing"),
			cli.FormatFlag(&flags.edit.Format, "the result of the import")),
		Run: func(r *cli.Run) error {
			if flags.source.Project == "" && flags.file != "" && (flags.edit.DryRun || r.Given("format")) {
				return r.Usagef("-o writes a document and imports nothing; leave out --dry-run and " +
					"--format")
			}
			show, err := cli.NewObject[ipam.ImportReport](r, flags.edit.Format)
			if err != nil {
				return err
			}
			if flags.source.Project != "" {
				return adoptProject(r, &flags, show)
			}
			return adopt(r, &flags, r.Args[0], show)
		}}
}

// adopt plans a Docker network. Depending on the flags it writes or imports that plan.
func adopt(r *cli.Run, flags *adoptFlags, ref string, show *cli.Table[ipam.ImportReport]) error {
	engine, err := flags.engine.Open()
	if err != nil {
		return cli.Usage(r.Cmd, err)
	}
	defer engine.Close()
	a, err := readAdoption(r, engine, ref, flags.name)
	if err != nil {
		return err
	}
	a.driver = "berth" // the daemon's name, if it is asked, replaces this
	if len(flags.engine.Drivers) > 0 {
		a.driver = flags.engine.Drivers[0]
	}
	if flags.file != "" {
		return writeAdoption(r.Program, a, flags.file)
	}
	if err := r.Ask(); err != nil {
		return err
	}
	if err := flags.engine.CheckEngine(r, engine); err != nil {
		return err
	}
	names, err := flags.engine.Names(r, engine)
	if err != nil {
		return err
	}
	a.driver = names[0]
	if slices.ContainsFunc(names, func(name string) bool { return sameDriver(name, a.docker.Driver) }) {
		return fmt.Errorf("the Docker network %s already has its addresses from this Berth; see `berth network ls`",
			a.docker.Name)
	}
	report, err := document.Import(r, a.plan, flags.edit.DryRun, "Docker network "+a.docker.Name)
	if err != nil {
		return err
	}
	return showAdopted(show, &report, a.move)
}

// sameDriver reports whether two names mean the same driver. A managed plugin's name has the tag latest by default.
func sameDriver(a, b string) bool {
	return strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

// adoption is a Docker network and its plan.
type adoption struct {
	view   ipam.EngineView
	docker *ipam.EngineNetwork
	plan   ipam.Plan
	name   string // of the planned network
	driver string // the engine's name for Berth
}

func readAdoption(ctx context.Context, engine *docker.Engine, ref, name string) (*adoption, error) {
	view, err := engine.Network(ctx, ref)
	if err != nil {
		return nil, err
	}
	a := &adoption{view: view, docker: &view.Networks[0], name: name}
	if name == "" {
		if a.name, err = docker.PlannedName(a.docker.Name); err != nil {
			return nil, fmt.Errorf("%w; give the planned network another name with --name", err)
		}
	}
	a.plan, err = docker.AdoptPlan(view, a.name)
	return a, err
}

func writeAdoption(p *cli.Program, a *adoption, file string) error {
	err := cli.WriteWhole(p.Out, file, func(to io.Writer) error {
		w := plan.NewYAML(to)
		for i := range a.plan.Networks {
			if err := w.Write(&a.plan.Networks[i]); err != nil {
				return err
			}
		}
		return w.Close()
	})
	if err != nil {
		return err
	}
	if file == "-" {
		return nil
	}
	_, err = fmt.Fprintf(p.Out, "%s is written; read it, then import it with `berth plan import %s`\n%s", file, file,
		a.move())
	return err
}

// showAdopted prints the result of an import and the next steps.
func showAdopted(show *cli.Table[ipam.ImportReport], report *ipam.ImportReport, next func() string) error {
	return show.Object(report, func(w io.Writer) error {
		if err := document.Said(w, *report); err != nil {
			return err
		}
		_, err := io.WriteString(w, next())
		return err
	})
}
