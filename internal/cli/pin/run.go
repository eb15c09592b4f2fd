package pin

import (
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"berth/internal/cli"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

// pinRun is one run of pin or unpin, with the selected endpoints.
type pinRun struct {
	*cli.Run
	flags     *pinFlags
	connector *pin.Connector
	pins      []pin.Pin
}

// withPins reads the engine and the records, and calls fn with the selected endpoints. A signal ends the context, but
// interrupts no step.
func withPins(r *cli.Run, flags *pinFlags, fn func(*pinRun) error) error {
	ctx, stop := signal.NotifyContext(r, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r = r.With(ctx)
	if _, err := flags.engine.Open(); err != nil {
		return cli.Usage(r.Cmd, err)
	}
	connector, err := pin.OpenConnector(flags.engine.Host)
	if err != nil {
		return cli.Usage(r.Cmd, err)
	}
	defer connector.Close()
	if err := flags.engine.Ask(r); err != nil {
		return err
	}
	defer r.Close()
	view, err := flags.engine.View(r)
	if err != nil {
		return err
	}
	rec, err := r.PinRecords()
	if err != nil {
		return err
	}
	if rec.TakesAny, err = connector.TakesAnyAddress(ctx); err != nil {
		return err
	}
	run := &pinRun{Run: r, flags: flags, connector: connector}
	if run.pins, err = flags.choose(pin.Find(view, rec), view, r.Args); err != nil {
		return err
	}
	return fn(run)
}

// choose returns the endpoints that the command line selects. It returns an error for a name that it does not find.
func (f *pinFlags) choose(all []pin.Pin, view *ipam.EngineView, args []string) ([]pin.Pin, error) {
	if f.network != "" {
		all = slices.DeleteFunc(all, func(place pin.Pin) bool { return !f.onNetwork(&place) })
		if len(all) == 0 {
			return nil, fmt.Errorf("no container is on a network %s of Berth's; `berth network ls` and "+
				"`docker network ls` list the networks", f.network)
		}
	}
	if f.project != "" {
		all = slices.DeleteFunc(all, func(place pin.Pin) bool { return place.Project != f.project })
		if len(all) == 0 {
			return nil, fmt.Errorf("no container of the Compose project %s is on a network of Berth's; `docker ps -a` "+
				"lists all containers", f.project)
		}
	}
	if len(args) == 0 {
		return all, nil
	}
	var chosen []pin.Pin
	for _, arg := range args {
		c, err := findContainer(view, arg)
		if err != nil {
			return nil, err
		}
		before := len(chosen)
		for _, place := range all {
			if place.ID == c.ID {
				chosen = append(chosen, place)
			}
		}
		if len(chosen) == before {
			return nil, notHere(c, view, f.network)
		}
	}
	slices.SortStableFunc(chosen, func(a, b pin.Pin) int {
		return strings.Compare(a.Container+"\x00"+a.Network, b.Container+"\x00"+b.Network)
	})
	same := func(a, b pin.Pin) bool { return a.ID == b.ID && a.NetworkID == b.NetworkID }
	return slices.CompactFunc(chosen, same), nil
}

func (f *pinFlags) onNetwork(place *pin.Pin) bool {
	return place.Network == f.network || place.NetworkID == f.network || place.Planned == f.network ||
		place.PlannedID == f.network
}

// findContainer returns the container with a name, or with an id that begins with ref. It returns an error if several
// ids do.
func findContainer(view *ipam.EngineView, ref string) (*ipam.EngineContainer, error) {
	var found []*ipam.EngineContainer
	for i := range view.Containers {
		c := &view.Containers[i]
		switch {
		case c.ID == "":
		case c.Name == ref:
			return c, nil
		case strings.HasPrefix(c.ID, ref):
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("the engine has no container %s; `docker ps -a` lists all containers", ref)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s containers have ids that begin with %s; write more of the id",
		fmt.Sprint(len(found)), ref)
}

// notHere explains why an existing container has no endpoint that can be pinned.
func notHere(c *ipam.EngineContainer, view *ipam.EngineView, network string) error {
	for _, ep := range c.Endpoints {
		for _, n := range view.Networks {
			if n.ID == ep.Network && n.Swarm {
				return fmt.Errorf("%s is on the swarm network %s, where the swarm's manager assigns addresses; it "+
					"cannot be pinned",
					c.Name, n.Name)
			}
		}
	}
	if network != "" {
		return fmt.Errorf("%s is not on the network %s", c.Name, network)
	}
	return fmt.Errorf("%s is on no network that has its addresses from this Berth", c.Name)
}

// endpoints reads the endpoints that change. It collects all refusals, so that one refusal prevents all changes.
func (r *pinRun) endpoints(change func(*pin.Pin) bool,
	refusal func(*pin.Pin) string) ([]*pin.Endpoint, error) {
	all := make([]*pin.Endpoint, len(r.pins))
	refused := map[string]bool{}
	for i := range r.pins {
		place := &r.pins[i]
		why := refusal(place)
		if why == "" && change(place) {
			ep, err := r.connector.Endpoint(r, place.ID, place.Network)
			switch {
			case err != nil:
				why = err.Error()
			case ep.LosesMAC && !r.flags.loseMAC:
				why = ep.LossOfMAC() + "; to accept that, give --lose-mac"
			}
			all[i] = ep
		}
		if why != "" {
			refused[place.Container] = true
			r.tell(place, why)
		}
	}
	return all, r.refused(len(refused))
}

// tell prints why a container is refused, on standard error.
func (r *pinRun) tell(place *pin.Pin, why string) {
	r.Note("%s: %s", cli.Printable(place.Container), cli.Printable(why))
}

func (r *pinRun) refused(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed, because %s refused", isOrAre(n, "container"))
}
