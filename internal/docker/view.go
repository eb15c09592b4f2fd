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

// View reads which networks have their addresses from one of the drivers, and all containers with their places on
// these. A driver's name and the same with :latest are one. It asks for the list of networks, that of containers, and
// each network of ours; what ends in between is not in the view.
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

// networks lists the networks of a view: those of the drivers, those of drivers that are nobody's, and the bridges of
// others.
func (e *Engine) networks(ctx context.Context, api *client.Client, drivers []string) (ipam.EngineView, error) {
	ours := func(n *network.Network) bool {
		return slices.ContainsFunc(drivers, func(d string) bool { return driverName(d) == driverName(n.IPAM.Driver) })
	}
	view := ipam.EngineView{Networks: []ipam.EngineNetwork{}}
	list, err := api.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return ipam.EngineView{}, fmt.Errorf("the engine's networks: %w", err)
	}
	for _, n := range list.Items {
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

// builtIn are the engine's own IPAM drivers.
var builtIn = []string{"", "default", "null", "windowsnull"}

// The engine's network driver that makes a bridge in the host, and the options of such a network that name the
// bridge: the default network has docker0.
const (
	bridgeDriver     = "bridge"
	optBridge        = "com.docker.network.bridge.name"
	optDefaultBridge = "com.docker.network.bridge.default_bridge"
	defaultBridge    = "docker0"
)

// The options of a network that say how its bridge is reached, and the mode in which all of it is.
const (
	optGateway4 = "com.docker.network.bridge.gateway_mode_ipv4"
	optGateway6 = "com.docker.network.bridge.gateway_mode_ipv6"
	openGateway = "nat-unprotected"
)

// linkOf is the name of a network's bridge in the host; empty where the engine does not tell.
func linkOf(n *network.Network) string {
	if n.Driver != bridgeDriver {
		return ""
	}
	if isDefault, _ := strconv.ParseBool(n.Options[optDefaultBridge]); isDefault {
		return cmp.Or(n.Options[optBridge], defaultBridge)
	}
	return n.Options[optBridge]
}

// driverName is the name of a driver without the tag that managed plugins have where none was said.
func driverName(s string) string { return strings.TrimSuffix(s, ":latest") }

// Network reads one network, by name or id, whichever driver its addresses come from, with the containers on it.
func (e *Engine) Network(ctx context.Context, ref string) (ipam.EngineView, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	api := e.client()
	view := ipam.EngineView{Taken: time.Now().UTC()}
	answer, err := api.NetworkInspect(ctx, ref, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return ipam.EngineView{},
			refuse(ipam.ErrNotFound, "the engine has no network %s; `docker network ls` lists those that are there",
				ref)
	}
	if err != nil {
		return ipam.EngineView{}, fmt.Errorf("the engine's network %s: %w", ref, err)
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

// readContainers adds the containers to a view, with their places on its networks.
func readContainers(ctx context.Context, api *client.Client, view *ipam.EngineView) error {
	list, err := api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return fmt.Errorf("the engine's containers: %w", err)
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
			return fmt.Errorf("the engine's network %s: %w", n.Name, err)
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
		Swarm: n.Scope == "swarm", Link: linkOf(n), Open4: n.Options[optGateway4] == openGateway,
		Open6: n.Options[optGateway6] == openGateway, Options: n.IPAM.Options, Subnets: []ipam.EngineSubnet{}}
	for _, c := range n.IPAM.Config {
		if c.Subnet.IsValid() { // that of a swarm's network is not there yet before its first task
			shown.Subnets = append(shown.Subnets,
				ipam.EngineSubnet{CIDR: c.Subnet.Masked(), Range: c.IPRange.Masked(), Gateway: c.Gateway,
					Aux: c.AuxAddress})
		}
	}
	return shown
}

// The labels that say what a container is to Compose, and that it is a swarm's.
const (
	ComposeLabels = "com.docker.compose." // they begin so

	LabelProject = ComposeLabels + "project"
	LabelService = ComposeLabels + "service"
	LabelNumber  = ComposeLabels + "container-number"
	LabelOneOff  = ComposeLabels + "oneoff"
	LabelHash    = ComposeLabels + "config-hash" // of what it was made of
	LabelVersion = ComposeLabels + "version"     // of the Compose that made it

	LabelTask = "com.docker.swarm.task.id"

	// LabelMade is our own, by which a deploy knows of what a container was made where Compose's hash does not say:
	// since version 2 that holds the ids of the containers with which a service shares, and is told without them.
	LabelMade = "berth.config-hash"
)

// showContainer leaves out the endpoints. What `docker compose run` makes has the number of a replica, and is none.
func showContainer(c *container.Summary) *ipam.EngineContainer {
	shown := &ipam.EngineContainer{ID: c.ID, State: string(c.State), Project: c.Labels[LabelProject],
		Service: c.Labels[LabelService]}
	for _, name := range c.Names {
		if name = strings.TrimPrefix(name, "/"); !strings.Contains(name, "/") { // others are those of legacy links
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

// publishedBy are the ports that a container publishes, such as 8080/tcp, each once.
func publishedBy(c *container.Summary) (all []string) {
	for _, port := range c.Ports {
		if port.PublicPort != 0 {
			all = append(all, fmt.Sprintf("%d/%s", port.PublicPort, port.Type))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
