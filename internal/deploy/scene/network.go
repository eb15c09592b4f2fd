package scene

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/docker"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Network is a Docker network as the engine has it.
type Network struct {
	ID       string
	Name     string
	Project  string // whose Compose made it; empty: none did
	Hashed   bool   // that Compose compares all that it was made of, labels among it
	Driver   string
	Options  map[string]string
	Internal bool
	IPv6     bool
	Labels   map[string]string // but those of Compose

	IPAM        string
	IPAMOptions map[string]string
	Pools       []Pool
	On          []Guest // all containers that are on it, whether they run or not
}

// Pool is a subnet of a Docker network.
type Pool struct {
	Subnet  netip.Prefix
	Range   netip.Prefix // invalid: there is none
	Gateway netip.Addr
	Aux     map[string]netip.Addr
}

// Guest is a container that is on a network.
type Guest struct {
	ID      string
	Name    string
	Project string // empty: Compose did not make it
}

// Network reads a Docker network by its name, with all that is on it; false where there is none.
func (e *Engine) Network(ctx context.Context, name string) (Network, bool, error) {
	shown, err := e.api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) || err == nil && shown.Network.Name != name { // a part of another one's id
		return Network{}, false, nil
	}
	if err != nil {
		return Network{}, false, fmt.Errorf("the network %s cannot be inspected: %w", name, err)
	}
	s := &shown.Network
	n := Network{ID: s.ID, Name: s.Name, Driver: s.Driver, Options: s.Options, Internal: s.Internal,
		IPv6: s.EnableIPv6, Labels: map[string]string{}, IPAM: s.IPAM.Driver, IPAMOptions: s.IPAM.Options}
	for label, value := range s.Labels {
		switch {
		case label == docker.LabelProject:
			n.Project = value
		case label == docker.LabelHash:
			n.Hashed = true
		case !strings.HasPrefix(label, docker.ComposeLabels):
			n.Labels[label] = value
		}
	}
	for _, c := range s.IPAM.Config {
		n.Pools = append(n.Pools, Pool{Subnet: c.Subnet, Range: c.IPRange, Gateway: c.Gateway, Aux: c.AuxAddress})
	}
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: make(client.Filters).Add("network", s.ID)})
	if err != nil {
		return n, false, fmt.Errorf("the containers on the network %s cannot be listed: %w", name, err)
	}
	for _, c := range list.Items {
		n.On = append(n.On, Guest{ID: c.ID, Project: c.Labels[docker.LabelProject],
			Name: strings.TrimPrefix(cmp.Or(slices.Concat(c.Names, []string{c.ID})...), "/")})
	}
	slices.SortFunc(n.On, func(a, b Guest) int { return strings.Compare(a.Name, b.Name) })
	return n, true, nil
}

// Seat is what a container had on a network that it has left.
type Seat struct {
	Network string // its name
	id      string
	on      *network.EndpointSettings
}

// Leave takes a container, by its whole id, off a network, whether it runs or not, and returns what it had there. One that is not on it,
// or is gone, is no error, and neither is a network that is gone.
func (e *Engine) Leave(ctx context.Context, n *Network, container string) (Seat, error) {
	seat := Seat{Network: n.Name, id: n.ID}
	shown, err := e.api.ContainerInspect(ctx, container, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return seat, nil
	}
	if err != nil {
		return seat, err
	}
	if shown.Container.NetworkSettings != nil {
		seat.on = shown.Container.NetworkSettings.Networks[n.Name]
	}
	err = e.mover.Off(ctx, e.api, n.ID, container, false)
	if errdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "is not connected to") {
		return seat, nil
	}
	return seat, err
}

// Return puts a container, by its whole id, back onto a network by its name: with the addresses that its configuration asked for there
// before, or, where the network was made anew since, with others; none: it is given what is chosen for it.
func (e *Engine) Return(ctx context.Context, seat Seat, container string, anew []netip.Addr) error {
	if seat.on == nil {
		return nil
	}
	defer e.mover.Done(container)
	now, err := e.api.NetworkInspect(ctx, seat.Network, client.NetworkInspectOptions{})
	if err != nil {
		return err
	}
	on := &network.EndpointSettings{IPAMConfig: seat.on.IPAMConfig, Aliases: seat.on.Aliases, Links: seat.on.Links,
		DriverOpts: seat.on.DriverOpts}
	if now.Network.ID != seat.id {
		on.IPAMConfig = nil
		for _, addr := range anew {
			if on.IPAMConfig == nil {
				on.IPAMConfig = &network.EndpointIPAMConfig{}
			}
			if addr.Is4() {
				on.IPAMConfig.IPv4Address = addr
			} else {
				on.IPAMConfig.IPv6Address = addr
			}
		}
	}
	return e.mover.On(ctx, e.api, now.Network.ID, container, on)
}

// RemoveNetwork removes a network on which nothing is any more. One that is gone is no error.
func (e *Engine) RemoveNetwork(ctx context.Context, id string) error {
	_, err := e.api.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
