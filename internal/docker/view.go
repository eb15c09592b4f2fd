package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// View reads the networks that use one of the drivers, and all containers with their endpoints on them. A driver's name
// with and without :latest is the same. It requests the lists of networks and containers, and each of these networks.
// Objects that end meanwhile are not in the view.
func (e *Engine) View(ctx context.Context, host string, drivers []string) (ipam.EngineView, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	api := e.client()
	taken := time.Now().UTC()
	view, err := e.networks(ctx, api, drivers)
	if err != nil {
		return ipam.EngineView{}, err
	}
	view.Host, view.Taken = host, taken
	if err := readContainers(ctx, api, &view); err != nil {
		return ipam.EngineView{}, err
	}
	e.ports.fill(view.Containers, true)
	e.identify(ctx, api, &view)
	return view, nil
}

// networks lists the networks of a view: those of the drivers, those of other IPAM
// plugins (Foreign), and the bridges of others.
func (e *Engine) networks(ctx context.Context, api *client.Client, drivers []string) (ipam.EngineView, error) {
	ours := func(n *network.Network) bool {
		return slices.ContainsFunc(drivers, func(d string) bool { return driverName(d) == driverName(n.IPAM.Driver) })
	}
	view := ipam.EngineView{Networks: []ipam.EngineNetwork{}}
	list, err := api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return ipam.EngineView{}, fmt.Errorf("cannot list the engine's networks: %w", err)
	}
	for _, n := range list.Items {
		if n.Driver == nullDriver {
			view.Root = n.ID
		}
		if n.ConfigOnly { // it holds nothing
			continue
		}
		if ours(&n.Network) {
			view.Networks = append(view.Networks, showNetwork(&n.Network))
			continue
		}
		if !slices.Contains(builtIn, n.IPAM.Driver) {
			view.Foreign = append(view.Foreign, showNetwork(&n.Network))
		}
		if n.Driver == bridgeDriver {
			view.Bridges = append(view.Bridges, showNetwork(&n.Network))
		}
	}
	return view, nil
}

// nullDriver is the driver of the network `none`. An engine makes that network once, with its data.
const nullDriver = "null"

// builtIn are the engine's own IPAM drivers.
var builtIn = []string{"", "default", "null", "windowsnull"}

// The engine's bridge driver, and the options that name a network's bridge in the host. The default network has
// docker0.
const (
	bridgeDriver     = "bridge"
	optBridge        = "com.docker.network.bridge.name"
	optDefaultBridge = "com.docker.network.bridge.default_bridge"
	defaultBridge    = "docker0"
)

// The network options that say how a bridge is reached, and the mode that admits everything.
const (
	optGateway4 = "com.docker.network.bridge.gateway_mode_ipv4"
	optGateway6 = "com.docker.network.bridge.gateway_mode_ipv6"
	openGateway = "nat-unprotected"
)

// linkOf returns the name of a network's bridge in the host, or empty if the engine does not report it.
func linkOf(n *network.Network) string {
	if n.Driver != bridgeDriver {
		return ""
	}
	if isDefault, _ := strconv.ParseBool(n.Options[optDefaultBridge]); isDefault {
		return cmp.Or(n.Options[optBridge], defaultBridge)
	}
	return n.Options[optBridge]
}

// driverName removes the tag :latest, which managed plugins get by default.
func driverName(s string) string { return strings.TrimSuffix(s, ":latest") }

// Network reads one network of any IPAM driver, by name or id, with its containers.
func (e *Engine) Network(ctx context.Context, ref string) (ipam.EngineView, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	api := e.client()
	view := ipam.EngineView{Taken: time.Now().UTC()}
	answer, err := api.NetworkInspect(ctx, ref, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return ipam.EngineView{},
			ipam.Refuse(ipam.ErrNotFound, "the engine has no network %s; `docker network ls` lists the networks",
				ref)
	}
	if err != nil {
		return ipam.EngineView{}, fmt.Errorf("cannot read the engine's network %s: %w", ref, err)
	}
	view.Networks = []ipam.EngineNetwork{showNetwork(&answer.Network.Network)}
	if err := readContainers(ctx, api, &view); err != nil {
		return ipam.EngineView{}, err
	}
	view.Containers = slices.DeleteFunc(view.Containers,
		func(c ipam.EngineContainer) bool { return len(c.Endpoints) == 0 })
	e.identify(ctx, api, &view)
	return view, nil
}

// readContainers adds the containers to a view, with their endpoints on its networks.
func readContainers(ctx context.Context, api *client.Client, view *ipam.EngineView) error {
	list, err := api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return fmt.Errorf("cannot list the engine's containers: %w", err)
	}
	p := newPlaces(view.Networks)
	for i := range list.Items {
		p.addContainer(&list.Items[i])
	}
	there := view.Networks[:0]
	for _, n := range view.Networks {
		answer, err := api.NetworkInspect(ctx, n.ID, client.NetworkInspectOptions{})
		if errdefs.IsNotFound(err) {
			p.drop(n.ID)
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read the engine's network %s: %w", n.Name, err)
		}
		p.fillGateways(&n)
		there = append(there, n)
		for key, resource := range answer.Network.Containers {
			p.addEndpoint(n.ID, key, resource)
		}
	}
	view.Networks = there
	view.Containers = p.sorted()
	slices.SortFunc(view.Networks, func(a, b ipam.EngineNetwork) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return nil
}

func showNetwork(n *network.Network) ipam.EngineNetwork {
	shown := ipam.EngineNetwork{ID: n.ID, Name: n.Name, Driver: n.IPAM.Driver, Kind: n.Driver,
		Swarm: n.Scope == "swarm", Created: n.Created, Link: linkOf(n), Parent: n.Options["parent"],
		Open4: n.Options[optGateway4] == openGateway,
		Open6: n.Options[optGateway6] == openGateway, Options: n.IPAM.Options, Subnets: []ipam.EngineSubnet{}}
	for _, c := range n.IPAM.Config {
		if c.Subnet.IsValid() { // a swarm's network has none before its first task
			shown.Subnets = append(shown.Subnets,
				ipam.EngineSubnet{CIDR: c.Subnet.Masked(), Range: c.IPRange.Masked(), Gateway: c.Gateway,
					Aux: c.AuxAddress})
		}
	}
	return shown
}

// Labels that mark a container of Compose, or of a swarm.
const (
	ComposeLabels = "com.docker.compose." // their common prefix

	LabelProject = ComposeLabels + "project"
	LabelService = ComposeLabels + "service"
	LabelNumber  = ComposeLabels + "container-number"
	LabelOneOff  = ComposeLabels + "oneoff"
	LabelHash    = ComposeLabels + "config-hash" // of the configuration it was made from
	LabelVersion = ComposeLabels + "version"     // of the Compose that made it

	LabelTask = "com.docker.swarm.task.id"

	// LabelMade is Berth's label with the hash of a container's configuration. A deploy needs it for services
	// that share with others: since version 2 Compose's own hash includes the ids of their containers, but the hash
	// that Compose prints does not.
	LabelMade = "berth.config-hash"
)

// showContainer converts a container, without its endpoints. A container of `docker compose run` has a number but is no
// replica.
func showContainer(c *container.Summary) *ipam.EngineContainer {
	shown := &ipam.EngineContainer{ID: c.ID, State: string(c.State), Project: c.Labels[LabelProject],
		Service: c.Labels[LabelService]}
	for _, name := range c.Names {
		if name = strings.TrimPrefix(name, "/"); !strings.Contains(name, "/") { // names with a slash are legacy links
			shown.Name = name
		}
	}
	if oneOff, _ := strconv.ParseBool(c.Labels[LabelOneOff]); !oneOff {
		number, _ := strconv.Atoi(c.Labels[LabelNumber])
		shown.Number = max(number, 0)
	}
	shown.Published = publishedBy(c)
	return shown
}

// publishedBy returns the ports that a container publishes, such as 8080/tcp, each once.
func publishedBy(c *container.Summary) (all []string) {
	for _, port := range c.Ports {
		if port.PublicPort != 0 {
			all = append(all, fmt.Sprintf("%d/%s", port.PublicPort, port.Type))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
