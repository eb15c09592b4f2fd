package scene

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// Network is a Docker network in the engine.
type Network struct {
	ID       string
	Name     string
	Project  string // the project whose Compose created it; empty: none
	Hashed   bool   // Compose compares everything that it was created with, including labels
	Driver   string
	Options  map[string]string
	Internal bool
	IPv6     bool
	Labels   map[string]string // without those of Compose

	IPAM        string
	IPAMOptions map[string]string
	Pools       []Pool
	On          []Guest // all containers on it, running or not
}

// Pool is a subnet of a Docker network.
type Pool struct {
	Subnet  netip.Prefix
	Range   netip.Prefix // invalid: none
	Gateway netip.Addr
	Aux     map[string]netip.Addr
}

// Guest is a container on a network.
type Guest struct {
	ID      string
	Name    string
	Project string // empty: not created by Compose
}

// Network reads a Docker network by name, with the containers on it. It returns false if there is none.
func (e *Engine) Network(ctx context.Context, name string) (Network, bool, error) {
	shown, err := e.api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	// the name is a part of another network's id
	if errdefs.IsNotFound(err) || err == nil && shown.Network.Name != name {
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

// LeftEndpoint is a container's place on a network that it has left.
type LeftEndpoint struct {
	Network string // its name
	id      string
	place   *pin.Endpoint // nil: it had none
}

// Leave disconnects a container, given by its full id, from a network, and returns its place. The container need not
// run. It is no error if the container is not on the network, or if either is gone.
func (e *Engine) Leave(ctx context.Context, n *Network, container string) (left LeftEndpoint, err error) {
	left = LeftEndpoint{Network: n.Name, id: n.ID}
	left.place, err = e.places.Endpoint(ctx, container, n.Name)
	if err != nil && !errors.Is(err, ipam.ErrNotFound) {
		return left, err
	}
	err = e.places.Mover().Off(ctx, e.api, n.ID, container, false)
	if errdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "is not connected to") {
		return left, nil
	}
	return left, err
}

// Return connects a container, given by its full id, to a network with the name in left. It asks for the addresses that
// it asked for there. If the network was recreated, it asks for those in anew instead. If anew is empty, Berth chooses.
func (e *Engine) Return(ctx context.Context, left LeftEndpoint, container string, anew []netip.Addr) error {
	if left.place == nil {
		return nil
	}
	defer e.places.Mover().Done(container)
	now, err := e.api.NetworkInspect(ctx, left.Network, client.NetworkInspectOptions{})
	if err != nil {
		return err
	}
	wanted := left.place.Asked
	if now.Network.ID != left.id {
		wanted = anew
	}
	return e.places.Connect(ctx, now.Network.ID, container, left.place.Asking(wanted))
}

// RemoveNetwork removes an empty network. A missing network is not an error.
func (e *Engine) RemoveNetwork(ctx context.Context, id string) error {
	_, err := e.api.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
