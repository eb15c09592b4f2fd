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

// Leave takes a container off a network, whether it runs or not. One that is not on it, or is gone, is no error, and
// neither is a network that is gone.
func (e *Engine) Leave(ctx context.Context, network, container string) error {
	_, err := e.api.NetworkDisconnect(ctx, network, client.NetworkDisconnectOptions{Container: container})
	if errdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "is not connected to") {
		return nil
	}
	return err
}

// RemoveNetwork removes a network on which nothing is any more. One that is gone is no error.
func (e *Engine) RemoveNetwork(ctx context.Context, id string) error {
	_, err := e.api.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
