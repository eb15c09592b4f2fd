package leave

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// builtIn is the engine's own IPAM driver.
const builtIn = "default"

// labelNetwork is what Compose's files call a network.
const labelNetwork = docker.ComposeLabels + "network"

// Read notes down a Docker network, by its name, with the containers on it, running or not. Pins are what Berth knows
// of these: a container that does not run is to have what it would be given. A gateway is what the engine does not say
// of one, by subnet. Beside the error of a container the note says which network it is.
func (h *Hand) Read(ctx context.Context, name string, pins []pin.Pin, gateways map[netip.Prefix]netip.Addr,
	now time.Time) (*Note, error) {
	api, err := h.api(ctx)
	if err != nil {
		return nil, err
	}
	shown, err := api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("the Docker network %s: %w", name, err)
	}
	n := &shown.Network.Network
	switch {
	case n.Scope == "swarm":
		return nil, ipam.Refuse(ipam.ErrInvalid, "the Docker network %s is a swarm's: its services are removed before it "+
			"can be recreated. Do that, remove it, and create it without --ipam-driver", n.Name)
	case n.ConfigOnly || n.ConfigFrom.Network != "":
		return nil, ipam.Refuse(ipam.ErrInvalid, "the Docker network %s is made of a configuration (--config-from), which "+
			"says its driver; remove it, and create both again", n.Name)
	}
	note := &Note{Network: n.Name, ID: n.ID, Taken: now.UTC(), Key: n.Labels[labelNetwork],
		Project: n.Labels[docker.LabelProject]}
	note.Old = client.NetworkCreateOptions{Driver: n.Driver, EnableIPv6: &n.EnableIPv6, Internal: n.Internal,
		Attachable: n.Attachable, Options: n.Options, Labels: n.Labels,
		IPAM: &network.IPAM{Driver: n.IPAM.Driver, Options: n.IPAM.Options, Config: n.IPAM.Config}}
	is4 := func(c network.IPAMConfig) bool { return c.Subnet.Addr().Is4() }
	if n.EnableIPv6 && !slices.ContainsFunc(n.IPAM.Config, is4) {
		note.Old.EnableIPv4 = new(bool) // engines before 28 know no such network, and no such word
	}
	note.New = note.Old
	note.New.Labels = maps.Clone(n.Labels)
	// By it Compose holds the network against its files, which say another driver now; without it Compose takes it as
	// it is.
	delete(note.New.Labels, docker.LabelHash)
	note.New.IPAM = &network.IPAM{Driver: builtIn}
	for _, c := range n.IPAM.Config {
		if gateway, known := gateways[c.Subnet.Masked()]; known && !c.Gateway.IsValid() {
			c.Gateway = gateway
		}
		if c.Gateway.Is4In6() {
			c.Gateway = c.Gateway.Unmap()
		}
		note.New.IPAM.Config = append(note.New.IPAM.Config, c)
	}
	return note, h.readSeats(ctx, note, pins)
}

// readSeats notes down the containers on the network.
func (h *Hand) readSeats(ctx context.Context, note *Note, pins []pin.Pin) error {
	given := map[netip.Addr]string{}
	places := map[string]*pin.Endpoint{}
	for i := range pins {
		p := &pins[i]
		if p.NetworkID != note.ID {
			continue
		}
		if why := p.Unsettled(); why != "" {
			return ipam.Refuse(ipam.ErrInUse, "%s", why)
		}
		ep, err := h.pin.Endpoint(ctx, p.ID, note.Network)
		if err != nil {
			return err
		}
		seat := Seat{Container: ep.Container, ID: ep.ID, Running: ep.Running, Addresses: ep.Addresses}
		if !ep.Running {
			seat.Addresses = ep.Asked
			if len(seat.Addresses) == 0 {
				seat.Addresses = p.Addresses
			}
		}
		places[seat.ID] = ep
		note.Seats = append(note.Seats, seat)
	}
	// Those that run come first: what one of them has, none that does not run is to ask for.
	slices.SortStableFunc(note.Seats, func(a, b Seat) int {
		switch {
		case a.Running == b.Running:
			return strings.Compare(a.Container, b.Container)
		case a.Running:
			return -1
		}
		return 1
	})
	for i := range note.Seats {
		seat := &note.Seats[i]
		ep := places[seat.ID]
		lent := func(a netip.Addr) bool { return given[a] != "" }
		if len(ep.Asked) == 0 && !ep.Running && slices.ContainsFunc(seat.Addresses, lent) {
			seat.Addresses = nil // it had it last, and somebody else has it by now
		}
		seat.Settings, seat.Command = ep.Asking(seat.Addresses), ep.Command(seat.Addresses)
		for _, a := range seat.Addresses {
			if other := given[a]; other != "" {
				return ipam.Refuse(ipam.ErrInUse, "%s and %s are both to have %s; remove one of them, or disconnect it",
					other,
					seat.Container, a)
			}
			given[a] = seat.Container
		}
	}
	return nil
}

// isGone tells whether what was asked for is not there.
func isGone(err error) bool { return errdefs.IsNotFound(err) }
