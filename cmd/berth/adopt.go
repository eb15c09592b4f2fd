package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin"
	"berth/internal/docker"
	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const adoptHelp = `Takes the addresses of a Docker network that has them from elsewhere into a planned network: its subnets and gateways, a pool of
its range, and each address that a container has, or was given by its user, as a reservation of that container. Nothing is
changed in Docker. What is planned there already stays, as with berth import.

With -o the plan is written as a document instead, to be changed and imported. In the end it says how the Docker network is
moved to Berth: that is done by hand, because its containers lose their network for a moment.`

// adoptFlags are the flags of adopt.
type adoptFlags struct {
	engine engineFlags
	name   string
	file   string
	edit   editing
}

func (p *program) adoptCommand() *cobra.Command {
	var flags adoptFlags
	cmd := &cobra.Command{Use: "adopt DOCKER-NETWORK", Short: "Take the addresses of a Docker network into a plan", Long: adoptHelp,
		Args: takes("DOCKER-NETWORK"), ValidArgsFunction: cobra.NoFileCompletions,
		Example: `  berth adopt shop --dry-run
  berth adopt shop
  berth adopt shop --name front
  berth adopt shop -o shop.yaml`}
	f := cmd.Flags()
	f.StringVar(&flags.name, "name", "", "the `NAME` of the planned network (default: that of the Docker network)")
	f.StringVarP(&flags.file, "output", "o", "", "write the plan to `FILE` (- is standard output) instead of importing it")
	f.BoolVar(&flags.edit.dryRun, "dry-run", false, "check, show what would be added, and change nothing")
	f.StringVar(&flags.edit.format, "format", "text", "`form` of the output: text, json (what the import came to), or a Go template")
	flags.engine.flags(cmd)
	completes(cmd, "format", words("text", "json"))
	completes(cmd, "name", p.completeNetworks)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flags.file != "" && (flags.edit.dryRun || cmd.Flags().Changed("format")) {
			return usage(cmd, errors.New("-o writes a document and imports nothing; leave --dry-run and --format out"))
		}
		show, err := newObject[ipam.ImportReport](p.out, cmd, flags.edit.format)
		if err != nil {
			return err
		}
		return p.adopt(cmd, &flags, args[0], show)
	}
	return cmd
}

// adopt reads the Docker network and does with it what the flags say.
func (p *program) adopt(cmd *cobra.Command, flags *adoptFlags, ref string, show *table[ipam.ImportReport]) error {
	ctx := cmd.Context()
	engine, err := flags.engine.open()
	if err != nil {
		return usage(cmd, err)
	}
	defer engine.Close()
	a, err := readAdoption(ctx, engine, ref, flags.name)
	if err != nil {
		return err
	}
	a.driver = "berth" // which a daemon that is asked may call otherwise
	if len(flags.engine.drivers) > 0 {
		a.driver = flags.engine.drivers[0]
	}
	if flags.file != "" {
		return p.writeAdoption(a, flags.file)
	}
	client, err := p.find(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	names, err := flags.engine.names(ctx, engine, client)
	if err != nil {
		return err
	}
	a.driver = names[0]
	if strings.TrimSuffix(a.docker.Driver, ":latest") == strings.TrimSuffix(a.driver, ":latest") {
		return fmt.Errorf("the Docker network %s has its addresses from this Berth already; `berth network ls` lists its network", a.docker.Name)
	}
	return p.importAdoption(ctx, client, a, flags.edit.dryRun, show)
}

// adoption is a Docker network, and the plan that it makes.
type adoption struct {
	view   ipam.EngineView
	docker *ipam.EngineNetwork
	plan   ipam.Plan
	name   string // of the planned network
	driver string // Berth, as the engine calls it
}

func readAdoption(ctx context.Context, engine *docker.Engine, ref, name string) (*adoption, error) {
	view, err := engine.Network(ctx, ref)
	if err != nil {
		return nil, err
	}
	a := &adoption{view: view, docker: &view.Networks[0], name: name}
	if name == "" {
		a.name = a.docker.Name
	}
	if err := ipam.CheckName("network", a.name); err != nil {
		return nil, fmt.Errorf("%w; give the planned one another name with --name", err)
	}
	a.plan, err = docker.AdoptPlan(view, a.name)
	return a, err
}

func (p *program) writeAdoption(a *adoption, file string) error {
	err := writeWhole(p.out, file, func(to io.Writer) error {
		w := plan.NewYAML(to)
		for i := range a.plan.Networks {
			if err := w.Write(&a.plan.Networks[i]); err != nil {
				return err
			}
		}
		return w.Close()
	})
	if err != nil || file == "-" {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s is written; look at it, and import it with `berth import %s`\n%s", file, file, a.move())
	return err
}

func (p *program) importAdoption(ctx context.Context, client *admin.Client, a *adoption, dryRun bool, show *table[ipam.ImportReport]) error {
	report, err := p.importPlan(ctx, client, a.plan, dryRun, "Docker network "+a.docker.Name)
	if err != nil {
		return err
	}
	return showObject(show, &report, func(w io.Writer) error {
		if err := importSaid(w, report); err != nil {
			return err
		}
		_, err := io.WriteString(w, a.move())
		return err
	})
}

// move says how the Docker network comes to Berth. Its containers are named with the address that each has, because not every
// engine tells Berth whose address it asks for.
func (a *adoption) move() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintln(&b, printable(fmt.Sprintf(format, args...))) }
	n := a.docker
	if n.Name == "bridge" {
		line("Nothing was changed in Docker. Its network bridge stays what it is: the engine does not let it be removed.")
		return b.String()
	}
	if slices.ContainsFunc(a.view.Containers, func(c ipam.EngineContainer) bool { return c.Project != "" }) {
		line("Nothing was changed in Docker. Compose made containers of its network %s: write the driver %s and the option network=%s into the Compose file, and run `docker compose down` and `up`.", n.Name, a.driver, a.name)
		line("What follows is for containers that Compose knows nothing of: its own would lose their aliases.")
	} else {
		line("Nothing was changed in Docker. To move its network %s to Berth:", n.Name)
	}
	on := a.containers()
	for _, c := range on {
		line("  docker network disconnect --force %s %s", n.Name, c.name)
	}
	line("  docker network rm %s", n.Name)
	create := fmt.Sprintf("docker network create --ipam-driver %s --ipam-opt network=%s", a.driver, a.name)
	for _, sub := range n.Subnets {
		if sub.CIDR.Addr().Is6() {
			create += " --ipv6"
		}
		create += " --subnet " + sub.CIDR.String()
	}
	line("  %s %s", create, n.Name)
	for _, c := range on {
		line("  docker network connect%s %s %s", c.flags, n.Name, c.name)
	}
	if n.Swarm {
		line("Services on it are removed before that and created again after it: they cannot be disconnected.")
	}
	line("Say again what the network and its containers had besides, as `docker network inspect` and `docker inspect` show it: -d, -o, --internal, --attachable and --label of the network, --alias and --link of a container.")
	return b.String()
}

// connected is a container of the network, and what gives it its addresses there again.
type connected struct{ name, flags string }

func (a *adoption) containers() (all []connected) {
	for i := range a.view.Containers {
		c := &a.view.Containers[i]
		for j := range c.Endpoints {
			ep := &c.Endpoints[j]
			if ep.Network != a.docker.ID || c.ID == "" || a.docker.Swarm {
				continue
			}
			addrs := ep.Addresses
			if len(addrs) == 0 {
				addrs = ep.Wanted
			}
			all = append(all, connected{c.Name, addressFlags(addrs)})
		}
	}
	return all
}

func addressFlags(addrs []netip.Addr) (flags string) {
	addrs = slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare)
	for _, a := range addrs {
		if a.Is6() {
			flags += " --ip6 " + a.String()
		} else {
			flags += " --ip " + a.String()
		}
	}
	return flags
}
