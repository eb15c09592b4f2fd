package pin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/docker"
	"berth/internal/ipam"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Endpoint is a container's place on one Docker network: what its user asked for there, and what it has.
type Endpoint struct {
	Container string       `json:"container"` // its name
	ID        string       `json:"id"`        // the container's
	Network   string       `json:"network"`   // by its name
	Running   bool         `json:"running"`   // also while it is paused
	Addresses []netip.Addr `json:"addresses"`
	Asked     []netip.Addr `json:"asked"` // what it asks for at each start

	// what the user could have set, and nothing of what the engine adds
	Settings network.EndpointSettings `json:"settings"`
}

// labelServiceName is the name of the service that a swarm's task is of.
const labelServiceName = "com.docker.swarm.service.name"

// Endpoint reads the place of a container, by its id, on a Docker network, by its name. A task of a swarm's
// service is refused with ipam.ErrInvalid, a container that is not there or not on the network with
// ipam.ErrNotFound.
func (h *Hand) Endpoint(ctx context.Context, id, networkName string) (*Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, docker.Patience)
	defer cancel()
	api, err := h.agree(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return nil, ipam.Refuse(ipam.ErrNotFound, "the engine has no container %s any more", id)
	}
	if err != nil {
		return nil, fmt.Errorf("the engine's container %s: %w", id, err)
	}
	return readEndpoint(&answer.Container, answer.Raw, networkName)
}

func readEndpoint(c *container.InspectResponse, raw json.RawMessage, networkName string) (*Endpoint, error) {
	ep := &Endpoint{Container: strings.TrimPrefix(c.Name, "/"), ID: c.ID, Network: networkName}
	ep.Running = c.State != nil && c.State.Running
	if c.Config != nil && c.Config.Labels[docker.LabelTask] != "" {
		return nil, ipam.Refuse(ipam.ErrInvalid,
			"%s is a task of the swarm's service %s: its manager gives it its address "+
				"at each start",
			ep.Container, c.Config.Labels[labelServiceName])
	}
	var shown *network.EndpointSettings
	if c.NetworkSettings != nil {
		shown = c.NetworkSettings.Networks[networkName]
	}
	if shown == nil {
		return nil, ipam.Refuse(ipam.ErrNotFound,
			"%s is not on the Docker network %s by that name; start it once, and try again",
			ep.Container, networkName)
	}
	ep.Settings = own(shown, c.ID)
	if mode := modeOf(c); mode == networkName || mode == shown.NetworkID && mode != "" {
		ep.Settings.MacAddress = userMAC(raw)
	}
	ep.Asked = askedBy(&ep.Settings)
	if ep.Running {
		ep.Addresses = docker.ValidAddresses(shown.IPAddress, shown.GlobalIPv6Address)
	}
	return ep, nil
}

// own is what the user could have set of an endpoint. The engine adds the container's short id to the aliases by
// itself.
func own(shown *network.EndpointSettings, id string) network.EndpointSettings {
	copied := shown.Copy()
	aliases := slices.DeleteFunc(copied.Aliases,
		func(alias string) bool { return len(alias) == 12 && strings.HasPrefix(id, alias) })
	return network.EndpointSettings{IPAMConfig: copied.IPAMConfig, Links: copied.Links, Aliases: aliases,
		DriverOpts: copied.DriverOpts, GwPriority: copied.GwPriority}
}

func modeOf(c *container.InspectResponse) string {
	if c.HostConfig == nil {
		return ""
	}
	return string(c.HostConfig.NetworkMode)
}

// userMAC is the hardware address that a container's configuration gives it on the network that it was made on.
// The client has no field for it any more.
func userMAC(raw json.RawMessage) network.HardwareAddr {
	var answer struct {
		Config struct{ MacAddress network.HardwareAddr }
	}
	if json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	return answer.Config.MacAddress
}

func askedBy(s *network.EndpointSettings) []netip.Addr {
	if s.IPAMConfig == nil {
		return nil
	}
	return docker.ValidAddresses(s.IPAMConfig.IPv4Address, s.IPAMConfig.IPv6Address)
}

// asking are the endpoint's own settings with other addresses to ask for, at most one of each family.
func (ep *Endpoint) asking(addrs []netip.Addr) *network.EndpointSettings {
	s := ep.Settings.Copy()
	if s.IPAMConfig == nil {
		s.IPAMConfig = &network.EndpointIPAMConfig{}
	}
	s.IPAMConfig.IPv4Address, s.IPAMConfig.IPv6Address = netip.Addr{}, netip.Addr{}
	for _, addr := range addrs {
		if addr.Is4() {
			s.IPAMConfig.IPv4Address = addr
		} else {
			s.IPAMConfig.IPv6Address = addr
		}
	}
	if len(addrs) == 0 && len(s.IPAMConfig.LinkLocalIPs) == 0 {
		s.IPAMConfig = nil
	}
	return s
}

// Asking are the endpoint's own settings with other addresses to ask for, for whoever puts the container on a network
// that is made anew.
func (ep *Endpoint) Asking(addrs []netip.Addr) *network.EndpointSettings { return ep.asking(addrs) }

// Command is what a person types to put the container back on its network, where it asks for the addresses.
func (ep *Endpoint) Command(addrs []netip.Addr) string {
	s := ep.asking(addrs)
	words := []string{"docker", "network", "connect"}
	flag := func(name, value string) { words = append(words, name, quoted(value)) }
	for _, addr := range addrs {
		if addr.Is4() {
			flag("--ip", addr.String())
		} else {
			flag("--ip6", addr.String())
		}
	}
	if s.IPAMConfig != nil {
		for _, addr := range s.IPAMConfig.LinkLocalIPs {
			flag("--link-local-ip", addr.String())
		}
	}
	for _, alias := range s.Aliases {
		flag("--alias", alias)
	}
	for _, link := range s.Links {
		flag("--link", link)
	}
	for _, key := range sortedKeys(s.DriverOpts) {
		flag("--driver-opt", key+"="+s.DriverOpts[key])
	}
	if s.GwPriority != 0 {
		flag("--gw-priority", fmt.Sprint(s.GwPriority))
	}
	return strings.Join(append(words, quoted(ep.Network), quoted(ep.Container)), " ")
}
