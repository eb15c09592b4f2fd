package pin

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// pinRun is one run of pin or unpin: the places of containers that are meant, and the two who are asked about them.
type pinRun struct {
	p      *cli.Program
	cmd    *cobra.Command
	flags  *pinFlags
	client *client.Client
	hand   *pin.Hand
	pins   []pin.Pin
}

// withPins reads what runs and what is written, and has fn work on the places that are meant. A signal ends its
// context, and nothing that is under way.
func withPins(p *cli.Program, cmd *cobra.Command, flags *pinFlags, args []string,
	fn func(context.Context, *pinRun) error) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	engine, err := flags.engine.Open()
	if err != nil {
		return cli.Usage(cmd, err)
	}
	defer engine.Close()
	hand, err := pin.OpenHand(flags.engine.Host)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	defer hand.Close()
	c, err := flags.engine.OfDaemon(ctx, p, cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	view, err := flags.engine.View(ctx, c)
	if err != nil {
		return err
	}
	rec, err := cli.PinRecords(ctx, c)
	if err != nil {
		return err
	}
	if rec.TakesAny, err = hand.TakesAnyAddress(ctx); err != nil {
		return err
	}
	r := &pinRun{p: p, cmd: cmd, flags: flags, client: c, hand: hand}
	if r.pins, err = flags.choose(pin.Find(view, rec), view, args); err != nil {
		return err
	}
	return fn(ctx, r)
}

// choose are the places that the command line means. What it names and is not there is an error.
func (f *pinFlags) choose(all []pin.Pin, view *ipam.EngineView, args []string) ([]pin.Pin, error) {
	if f.network != "" {
		all = slices.DeleteFunc(all, func(place pin.Pin) bool { return !f.onNetwork(&place) })
		if len(all) == 0 {
			return nil, fmt.Errorf("no container is on a network %s of Berth's; `berth network ls` and "+
				"`docker network ls` list those that are there", f.network)
		}
	}
	if f.project != "" {
		all = slices.DeleteFunc(all, func(place pin.Pin) bool { return place.Project != f.project })
		if len(all) == 0 {
			return nil, fmt.Errorf("no container of the Compose project %s is on a network of Berth's; `docker ps -a` "+
				"lists those that are there", f.project)
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

// findContainer is the container of a name, or of the beginning of an id that no other one has.
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
		return nil, fmt.Errorf("the engine has no container %s; `docker ps -a` lists those that are there", ref)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%s containers have ids that begin with %s; write more of the one that is meant",
		fmt.Sprint(len(found)), ref)
}

// notHere says why a container that is there has no place that could be pinned.
func notHere(c *ipam.EngineContainer, view *ipam.EngineView, network string) error {
	for _, ep := range c.Endpoints {
		for _, n := range view.Networks {
			if n.ID == ep.Network && n.Swarm {
				return fmt.Errorf("%s is on the network %s of a swarm, whose manager gives its addresses; it cannot "+
					"be pinned",
					c.Name, n.Name)
			}
		}
	}
	if network != "" {
		return fmt.Errorf("%s is not on the network %s", c.Name, network)
	}
	return fmt.Errorf("%s is on no network that has its addresses from this Berth", c.Name)
}

// endpoints reads the places that are to be changed, and collects all refusals, so that nothing is changed where
// there is one.
func (r *pinRun) endpoints(ctx context.Context, change func(*pin.Pin) bool,
	refusal func(*pin.Pin) string) ([]*pin.Endpoint, error) {
	all := make([]*pin.Endpoint, len(r.pins))
	refused := map[string]bool{}
	for i := range r.pins {
		place := &r.pins[i]
		why := refusal(place)
		if why == "" && change(place) {
			ep, err := r.hand.Endpoint(ctx, place.ID, place.Network)
			if err != nil {
				why = err.Error()
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

// tell says on standard error why a container is not to be had.
func (r *pinRun) tell(place *pin.Pin, why string) {
	r.p.Note(r.cmd, "%s: %s", cli.Printable(place.Container), cli.Printable(why))
}

func (r *pinRun) refused(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed, because %s refused", isOrAre(n, "container"))
}
