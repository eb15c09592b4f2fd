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

// Endpoint is a container's endpoint on one Docker network: the settings that its user asked for, and its addresses.
type Endpoint struct {
	Container string       `json:"container"` // its name
	ID        string       `json:"id"`        // the container's
	Network   string       `json:"network"`   // its name
	Running   bool         `json:"running"`   // true also while it is paused
	Addresses []netip.Addr `json:"addresses"`
	Asked     []netip.Addr `json:"asked"` // the addresses that it asks for at each start

	// only settings that a user can make, none that the engine adds
	Settings network.EndpointSettings `json:"settings"`
	LosesMAC bool                     `json:"loses_mac,omitempty"` // a new connection costs it the MAC of its settings
	TakesMAC bool                     `json:"-"`                   // it has no MAC in its settings, and can get one
}

// labelServiceName is the label with the name of a swarm task's service.
const labelServiceName = "com.docker.swarm.service.name"

// Endpoint reads the endpoint of a container (by id) on a Docker network (by name). It returns ipam.ErrInvalid for a
// task of a swarm's service. It returns ipam.ErrNotFound if the container is gone or is not on the network.
func (c *Connector) Endpoint(ctx context.Context, id, networkName string) (*Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, docker.Patience)
	defer cancel()
	api, err := c.API(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if errdefs.IsNotFound(err) {
		return nil, ipam.Refuse(ipam.ErrNotFound, "the engine has no container %s any more", id)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the engine's container %s: %w", id, err)
	}
	ep, err := readEndpoint(&answer.Container, answer.Raw, networkName)
	if err != nil {
		return nil, err
	}
	ep.LosesMAC = len(ep.Settings.MacAddress) > 0 && c.losesMAC()
	ep.TakesMAC = ep.TakesMAC && c.speaks >= firstConnectingMAC
	return ep, nil
}

// LossOfMAC says that a new connection costs the container its MAC.
func (ep *Endpoint) LossOfMAC() string {
	return fmt.Sprintf("%s has the MAC %s in its configuration, but Docker Engine 25.0 to 29.2 changes the MAC when "+
		"it reconnects a container", ep.Container, ep.Settings.MacAddress)
}

func readEndpoint(c *container.InspectResponse, raw json.RawMessage, networkName string) (*Endpoint, error) {
	ep := &Endpoint{Container: strings.TrimPrefix(c.Name, "/"), ID: c.ID, Network: networkName}
	ep.Running = c.State != nil && c.State.Running
	if c.Config != nil && c.Config.Labels[docker.LabelTask] != "" {
		return nil, ipam.Refuse(ipam.ErrInvalid,
			"%s is a task of the swarm's service %s: the manager assigns its address at each start",
			ep.Container, c.Config.Labels[labelServiceName])
	}
	var shown *network.EndpointSettings
	if c.NetworkSettings != nil {
		shown = c.NetworkSettings.Networks[networkName]
	}
	if shown == nil {
		return nil, ipam.Refuse(ipam.ErrNotFound,
			"%s is on no Docker network named %s; start the container once, and try again",
			ep.Container, networkName)
	}
	ep.Settings = own(shown, c.ID)
	if c.HostConfig != nil {
		if mode := string(c.HostConfig.NetworkMode); mode == networkName || mode == shown.NetworkID && mode != "" {
			ep.Settings.MacAddress = userMAC(raw)
			ep.TakesMAC = len(ep.Settings.MacAddress) == 0
		}
	}
	if asks := ep.Settings.IPAMConfig; asks != nil {
		ep.Asked = docker.ValidAddresses(asks.IPv4Address, asks.IPv6Address)
	}
	if ep.Running {
		ep.Addresses = docker.ValidAddresses(shown.IPAddress, shown.GlobalIPv6Address)
	}
	return ep, nil
}

// own returns the settings of an endpoint that its user can have made. The engine itself adds the container's short id
// to the aliases.
func own(shown *network.EndpointSettings, id string) network.EndpointSettings {
	copied := shown.Copy()
	aliases := slices.DeleteFunc(copied.Aliases,
		func(alias string) bool { return len(alias) == 12 && strings.HasPrefix(id, alias) })
	return network.EndpointSettings{IPAMConfig: copied.IPAMConfig, Links: copied.Links, Aliases: aliases,
		DriverOpts: copied.DriverOpts, GwPriority: copied.GwPriority}
}

// userMAC returns the MAC in a container's configuration. It is the MAC on the network with which the container was
// created. The client has no field for it any more.
func userMAC(raw json.RawMessage) network.HardwareAddr {
	var answer struct {
		Config struct{ MacAddress network.HardwareAddr }
	}
	if json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	return answer.Config.MacAddress
}

// Asking returns the endpoint's own settings, with these addresses in place of those that it asks for. At most one of
// each family is used.
func (ep *Endpoint) Asking(addrs []netip.Addr) *network.EndpointSettings {
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

// Command returns the docker command that connects the container to its network again, with these addresses.
func (ep *Endpoint) Command(addrs []netip.Addr) string {
	s := ep.Asking(addrs)
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
