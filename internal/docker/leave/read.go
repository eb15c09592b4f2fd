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

// labelNetwork has the key of a network in Compose's files.
const labelNetwork = docker.ComposeLabels + "network"

// Read makes a Note of a Docker network, given by its name, with its containers, running or not. Pins are what Berth
// knows about them: a stopped container keeps the address it would get. gateways has, by subnet, gateways that the
// engine does not report. If only a container fails, the note names the network all the same.
func (c *Connector) Read(ctx context.Context, name string, pins []pin.Pin, gateways map[netip.Prefix]netip.Addr,
	now time.Time) (*Note, error) {
	api, err := c.API(ctx)
	if err != nil {
		return nil, err
	}
	shown, err := api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the Docker network %s: %w", name, err)
	}
	n := &shown.Network.Network
	switch {
	case n.Scope == "swarm":
		return nil, ipam.Refuse(ipam.ErrInvalid, "the Docker network %s belongs to a swarm: remove the services on "+
			"it, remove the network, and create it without --ipam-driver", n.Name)
	case n.ConfigOnly || n.ConfigFrom.Network != "":
		return nil, ipam.Refuse(ipam.ErrInvalid, "the Docker network %s comes from a configuration (--config-from), "+
			"which sets its driver; remove it, and create both again", n.Name)
	}
	note := &Note{Network: n.Name, ID: n.ID, Taken: now.UTC(), Key: n.Labels[labelNetwork],
		Project: n.Labels[docker.LabelProject]}
	note.Old = client.NetworkCreateOptions{Driver: n.Driver, EnableIPv6: &n.EnableIPv6, Internal: n.Internal,
		Attachable: n.Attachable, Options: n.Options, Labels: n.Labels,
		IPAM: &network.IPAM{Driver: n.IPAM.Driver, Options: n.IPAM.Options, Config: n.IPAM.Config}}
	is4 := func(one network.IPAMConfig) bool { return one.Subnet.Addr().Is4() }
	if n.EnableIPv6 && !slices.ContainsFunc(n.IPAM.Config, is4) {
		note.Old.EnableIPv4 = new(bool) // engines before 28 know neither such a network nor the field
	}
	note.New = note.Old
	note.New.Labels = maps.Clone(n.Labels)
	// Compose compares this label with its files, which name another driver now. Without the label it accepts the
	// network.
	delete(note.New.Labels, docker.LabelHash)
	note.New.IPAM = &network.IPAM{Driver: builtIn}
	for _, one := range n.IPAM.Config {
		if gateway, known := gateways[one.Subnet.Masked()]; known && !one.Gateway.IsValid() {
			one.Gateway = gateway
		}
		if one.Gateway.Is4In6() {
			one.Gateway = one.Gateway.Unmap()
		}
		note.New.IPAM.Config = append(note.New.IPAM.Config, one)
	}
	return note, c.readEndpoints(ctx, note, pins)
}

// readEndpoints adds the containers on the network to the note.
func (c *Connector) readEndpoints(ctx context.Context, note *Note, pins []pin.Pin) error {
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
		ep, err := c.Endpoint(ctx, p.ID, note.Network)
		if err != nil {
			return err
		}
		endpoint := Endpoint{Container: ep.Container, ID: ep.ID, Running: ep.Running, Addresses: ep.Addresses,
			LosesMAC: ep.LosesMAC}
		if !ep.Running {
			endpoint.Addresses = ep.Asked
			if len(endpoint.Addresses) == 0 {
				endpoint.Addresses = p.Addresses
			}
		}
		places[endpoint.ID] = ep
		note.Endpoints = append(note.Endpoints, endpoint)
	}
	// Running containers come first: a stopped one must not ask for an address that one of them has.
	slices.SortStableFunc(note.Endpoints, func(a, b Endpoint) int {
		switch {
		case a.Running == b.Running:
			return strings.Compare(a.Container, b.Container)
		case a.Running:
			return -1
		}
		return 1
	})
	for i := range note.Endpoints {
		endpoint := &note.Endpoints[i]
		ep := places[endpoint.ID]
		lent := func(a netip.Addr) bool { return given[a] != "" }
		if len(ep.Asked) == 0 && !ep.Running && slices.ContainsFunc(endpoint.Addresses, lent) {
			endpoint.Addresses = nil // somebody else has its last address by now
		}
		endpoint.Settings, endpoint.Command = ep.Asking(endpoint.Addresses), ep.Command(endpoint.Addresses)
		for _, a := range endpoint.Addresses {
			if other := given[a]; other != "" {
				return ipam.Refuse(ipam.ErrInUse, "%s and %s would both get %s; remove or disconnect one of them",
					other,
					endpoint.Container, a)
			}
			given[a] = endpoint.Container
		}
	}
	return nil
}

// isGone reports whether an object does not exist.
func isGone(err error) bool { return errdefs.IsNotFound(err) }
