package leave

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// callTime bounds one call: the engine may wait for its own locks, and for Berth.
const callTime = time.Minute

func pauses() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 0}
}

// Leave brings the network to the engine's own IPAM driver, from wherever a run before has left it, and says each
// step. It does not end with ctx in the midst of that. Containers that are gone by now are passed over.
func (h *Hand) Leave(ctx context.Context, note *Note, say func(format string, args ...any)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	at, err := h.at(ctx, note)
	if err != nil {
		return err
	}
	if at == before {
		if err := h.clear(ctx, note, say); err != nil {
			return err
		}
		at = between
	}
	if at == between {
		if err := h.create(ctx, note.Network, &note.New); err != nil {
			return h.goBack(ctx, note, err)
		}
		say("%s is recreated with the engine's own IPAM driver", note.Network)
	}
	if err := h.seat(ctx, note, say); err != nil {
		return err
	}
	return h.look(ctx, note)
}

// place is how far a network is.
type place int

const (
	before  place = iota // it is Berth's
	between              // there is none
	after                // it is the engine's own
)

// at tells how far the network is.
func (h *Hand) at(ctx context.Context, note *Note) (place, error) {
	n, err := h.inspect(ctx, note.Network)
	switch {
	case isGone(err) || err == nil && n.Name != note.Network:
		return between, nil
	case err != nil:
		return 0, err
	case n.ID == note.ID:
		return before, nil
	case n.IPAM.Driver == builtIn && sameSubnets(n.IPAM.Config, note.New.IPAM.Config):
		return after, nil
	case n.IPAM.Driver == note.Old.IPAM.Driver && sameSubnets(n.IPAM.Config, note.Old.IPAM.Config):
		note.ID = n.ID // it was made again, when the engine refused the other one
		return before, nil
	}
	return 0, ipam.Refuse(ipam.ErrChanged, "somebody has made another Docker network %s since %s; it is not changed",
		note.Network, note.Taken.Format(time.RFC3339))
}

func sameSubnets(a, b []network.IPAMConfig) bool {
	subnets := func(all []network.IPAMConfig) (texts []string) {
		for _, c := range all {
			texts = append(texts, c.Subnet.String())
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(subnets(a), subnets(b))
}

func (h *Hand) inspect(ctx context.Context, name string) (*network.Inspect, error) {
	api, err := h.api(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	shown, err := api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("the Docker network %s: %w", name, err)
	}
	return &shown.Network, nil
}

// clear takes the containers off the network, and removes it. One that came since the note was taken is in the way.
func (h *Hand) clear(ctx context.Context, note *Note, say func(string, ...any)) error {
	n, err := h.inspect(ctx, note.Network)
	if err != nil {
		return err
	}
	for id, c := range n.Containers {
		if !slices.ContainsFunc(note.Seats, func(s Seat) bool { return s.has(id, c.Name) }) {
			return ipam.Refuse(ipam.ErrChanged,
				"%s has come to the Docker network %s since %s; stop it, and run this again",
				c.Name, note.Network, note.Taken.Format(time.RFC3339))
		}
	}
	api, err := h.api(ctx)
	if err != nil {
		return err
	}
	for i := range note.Seats {
		seat := &note.Seats[i]
		err := again(ctx, func(ctx context.Context) error {
			err := h.pin.Mover().Off(ctx, api, note.ID, seat.ID, false)
			if isGone(err) || err != nil && strings.Contains(err.Error(), "is not connected to") {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("the engine does not take %s off the Docker network %s; run this again: %w", seat.Container,
				note.Network, err)
		}
		say("%s is off %s", seat.Container, note.Network)
	}
	err = again(ctx, func(ctx context.Context) error {
		_, err := api.NetworkRemove(ctx, note.ID, client.NetworkRemoveOptions{})
		if isGone(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return h.seatBack(ctx, note, fmt.Errorf("the engine does not remove the Docker network %s: %w", note.Network, err))
	}
	return nil
}

// has tells whether what the engine shows on the network is the seat's. While a container is taken off, as by a run
// that was killed meanwhile, the engine shows it by its endpoint, whose name is that of the container.
func (s *Seat) has(id, name string) bool {
	return s.ID == id || strings.HasPrefix(id, "ep-") && s.Container == name
}

// again makes a call until it succeeds, with pauses between.
func again(ctx context.Context, call func(context.Context) error) (err error) {
	for _, pause := range pauses() {
		limited, cancel := context.WithTimeout(ctx, callTime)
		err = call(limited)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return err
}

func (h *Hand) create(ctx context.Context, name string, opt *client.NetworkCreateOptions) error {
	api, err := h.api(ctx)
	if err != nil {
		return err
	}
	return again(ctx, func(ctx context.Context) error {
		_, err := api.NetworkCreate(ctx, name, *opt)
		if err == nil {
			return nil
		}
		if n, found := h.inspect(ctx, name); found == nil && n.Name == name {
			return nil // the answer got lost
		}
		return err
	})
}

// goBack makes the network as it was, since the engine refuses it as it is to be.
func (h *Hand) goBack(ctx context.Context, note *Note, why error) error {
	why = fmt.Errorf("the engine refuses the Docker network %s with its own IPAM driver: %w", note.Network, why)
	if err := h.create(ctx, note.Network, &note.Old); err != nil {
		return errors.Join(why, fmt.Errorf("and as it was, too, so that THERE IS NO DOCKER NETWORK %s; run this again "+
			"when that is fixed: %w", note.Network, err))
	}
	return h.seatBack(ctx, note, why)
}

// seatBack puts the containers back on the network as it was.
func (h *Hand) seatBack(ctx context.Context, note *Note, why error) error {
	if err := h.seat(ctx, note, func(string, ...any) {}); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w; it is Berth's as before, and its containers are back on it", why)
}

// seat puts the containers on the network, and starts those that ran. What fails with one keeps no other from it.
func (h *Hand) seat(ctx context.Context, note *Note, say func(string, ...any)) error {
	api, err := h.api(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range note.Seats {
		seat := &note.Seats[i]
		now, err := h.sits(ctx, note, seat)
		if isGone(err) {
			say("%s is gone by now", seat.Container)
			h.pin.Mover().Done(seat.ID)
			continue
		}
		if err == nil && now.on && (now.runs && now.has || !seat.Running) {
			h.pin.Mover().Done(seat.ID)
			continue
		}
		if !now.on || now.runs && !now.has {
			err = again(ctx, func(ctx context.Context) error { return h.connect(ctx, api, note, seat) })
		}
		if err == nil && seat.Running && !now.runs {
			err = again(ctx, func(ctx context.Context) error { // it has ended while it was without its network
				_, err := api.ContainerStart(ctx, seat.ID, client.ContainerStartOptions{})
				return err
			})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s IS NOT ON THE DOCKER NETWORK %s; run this again, or do it with `%s`: %w",
				seat.Container, note.Network, seat.Command, err))
			continue
		}
		h.pin.Mover().Done(seat.ID)
		say("%s is on %s%s", seat.Container, note.Network, at(seat.Addresses))
	}
	return errors.Join(failed...)
}

func at(addrs []netip.Addr) string {
	if len(addrs) == 0 {
		return ""
	}
	texts := make([]string, len(addrs))
	for i, a := range addrs {
		texts[i] = a.String()
	}
	return " with " + strings.Join(texts, " and ")
}

// connect puts a container on the network, also one that is only half on it.
func (h *Hand) connect(ctx context.Context, api *client.Client, note *Note, seat *Seat) error {
	mover := h.pin.Mover()
	now, err := h.sits(ctx, note, seat)
	if err == nil && now.on && (now.has || !now.runs) {
		return nil // an answer got lost
	}
	if err == nil && now.on {
		err = mover.Off(ctx, api, note.Network, seat.ID, true)
	}
	if err == nil {
		err = mover.On(ctx, api, note.Network, seat.ID, seat.Settings)
	}
	return err
}

// sitting is how a container is on the network.
type sitting struct{ on, runs, has bool } // has an address

func (h *Hand) sits(ctx context.Context, note *Note, seat *Seat) (s sitting, err error) {
	api, err := h.api(ctx)
	if err != nil {
		return s, err
	}
	shown, err := api.ContainerInspect(ctx, seat.ID, client.ContainerInspectOptions{})
	if err != nil {
		return s, err
	}
	c := &shown.Container
	s.runs = c.State != nil && c.State.Running
	if c.NetworkSettings == nil || c.NetworkSettings.Networks[note.Network] == nil {
		return s, nil
	}
	ep := c.NetworkSettings.Networks[note.Network]
	s.on, s.has = true, ep.IPAddress.IsValid() || ep.GlobalIPv6Address.IsValid()
	return s, nil
}

// look holds the containers that run against the note.
func (h *Hand) look(ctx context.Context, note *Note) error {
	var wrong []error
	for i := range note.Seats {
		seat := &note.Seats[i]
		ep, err := h.pin.Endpoint(ctx, seat.ID, note.Network)
		if errors.Is(err, ipam.ErrNotFound) {
			continue
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		for _, a := range seat.Addresses {
			if ep.Running && !slices.Contains(ep.Addresses, a) {
				wrong = append(wrong, fmt.Errorf("%s runs with %v on %s now, and not with %s", seat.Container, ep.Addresses,
					note.Network, a))
			}
		}
	}
	return errors.Join(wrong...)
}
