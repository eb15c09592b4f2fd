package pin

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
)

// pin does what is missing: all reservations first, and then one container after the other.
func (r *pinRun) pin() error {
	change := func(place *pin.Pin) bool { return !place.Pinned }
	endpoints, err := r.endpoints(change, func(place *pin.Pin) string { return place.Refusal })
	if err != nil {
		return err
	}
	edits, whose := r.reservations()
	if err := r.tryEdits(edits, whose); err != nil {
		return err
	}
	if r.flags.dryRun {
		return r.sayEach(wouldPin)
	}
	cut := func(place *pin.Pin) bool { return place.Connect && place.Runs() }
	if err := r.ask(cut, "Pin them?"); err != nil {
		return err
	}
	if _, err := r.EditInSteps(client.EditOptions{}, edits, func(int) string { return "" }); err != nil {
		return fmt.Errorf("no container was changed: %w", err)
	}
	for i := range r.pins {
		place := &r.pins[i]
		said := pinnedText(place)
		if place.Connect {
			if mac, err := net.ParseMAC(place.MAC); err == nil && endpoints[i].TakesMAC {
				endpoints[i].Settings.MacAddress = network.HardwareAddr(mac)
			}
			moved, err := r.move(i, endpoints[i], true)
			if err != nil {
				return err
			}
			said = "is pinned" + cutText(place, moved)
		}
		if err := r.say(place, said); err != nil {
			return err
		}
	}
	return nil
}

// reservations returns the edits of all pins. whose has the index of each edit's pin.
func (r *pinRun) reservations() (edits []ipam.Edit, whose []int) {
	for i := range r.pins {
		for _, edit := range r.pins[i].Reserve {
			edits, whose = append(edits, edit), append(whose, i)
		}
	}
	return edits, whose
}

// tryEdits tries the edits in dry runs and collects the refusals. A refused edit is left out of the next dry run.
func (r *pinRun) tryEdits(edits []ipam.Edit, whose []int) error {
	refused := map[string]bool{}
	left, of := slices.Clone(edits), slices.Clone(whose)
	for len(left) > 0 {
		step := left[:min(len(left), ipam.MaxEdits)]
		_, err := r.Edit(r, client.EditOptions{DryRun: true}, step...)
		if err == nil {
			left, of = left[len(step):], of[len(step):]
			continue
		}
		var problem *api.Problem
		if !errors.As(err, &problem) || problem.Index == nil && len(step) > 1 {
			return err
		}
		at := 0
		if problem.Index != nil {
			at = *problem.Index
		}
		place := &r.pins[of[at]]
		refused[place.Container] = true
		r.tell(place, cli.OneLine(problem))
		left, of = slices.Delete(left, at, at+1), slices.Delete(of, at, at+1)
	}
	return r.refused(len(refused))
}

// ask asks for consent if running containers will be disconnected for a moment.
func (r *pinRun) ask(cut func(*pin.Pin) bool, question string) error {
	var names []string
	for i := range r.pins {
		if place := &r.pins[i]; cut(place) {
			names = append(names, fmt.Sprintf("%s (%s)", place.Container, place.Network))
		}
	}
	if r.flags.yes || len(names) == 0 {
		return nil
	}
	return r.Confirm(fmt.Sprintf("%s cut off from the network for a moment (about 0.2 s), and connections "+
		"there end: %s. %s",
		isOrAre(len(names), "running container"), strings.Join(names, ", "), question))
}

// move makes one endpoint ask for its addresses, or for none. A signal ends the command before a move, but never during
// one.
func (r *pinRun) move(at int, ep *pin.Endpoint, pinned bool) (pin.Moved, error) {
	place := &r.pins[at]
	rest := fmt.Sprintf("%d of %d are done; run the same command again for the rest", at, len(r.pins))
	if r.Err() != nil {
		return pin.Moved{}, fmt.Errorf("stopped by a signal before %s; %s", place.Container, rest)
	}
	addrs := place.Addresses
	if !pinned {
		// A daemon would put a container on another address than its reserved one back.
		if err := r.endReservations(place); err != nil {
			return pin.Moved{}, fmt.Errorf("%w (%s)", err, rest)
		}
		addrs = nil
	}
	moved, err := r.connector.Move(r, ep, addrs)
	if err != nil {
		return moved, fmt.Errorf("%w (%s)", err, rest)
	}
	return moved, nil
}

func (r *pinRun) say(place *pin.Pin, what string) error {
	return r.Sayf("%s: %s on %s %s", place.Container, addressWords(place), place.Network, what)
}

func (r *pinRun) sayEach(what func(*pin.Pin) string) error {
	for i := range r.pins {
		if err := r.say(&r.pins[i], what(&r.pins[i])); err != nil {
			return err
		}
	}
	return nil
}
