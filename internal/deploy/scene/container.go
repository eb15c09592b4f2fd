package scene

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/docker"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// The labels by which Compose knows its containers.
const (
	labelProject = "com.docker.compose.project"
	labelService = "com.docker.compose.service"
	labelNumber  = "com.docker.compose.container-number"
	labelOneOff  = "com.docker.compose.oneoff"
	labelHash    = "com.docker.compose.config-hash"
	labelVersion = "com.docker.compose.version"
)

// Engine is the Docker Engine of a deploy.
type Engine struct{ api *client.Client }

// Open returns the engine at a URL such as unix:///var/run/docker.sock; empty is docker.DefaultHost. It connects to
// nothing yet.
func Open(host string) (*Engine, error) {
	if host == "" {
		host = docker.DefaultHost
	}
	dial, err := docker.Dial(host)
	if err != nil {
		return nil, err
	}
	api, err := client.New(client.WithHost(host), client.WithHTTPClient(&http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableCompression: true},
		CheckRedirect: client.CheckRedirect,
	}))
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", host, err)
	}
	return &Engine{api}, nil
}

// Close ends the connections.
func (e *Engine) Close() error { return e.api.Close() }

// Container is one of a project's containers.
type Container struct {
	ID       string
	Name     string
	Service  string
	Number   int    // of the replica
	OneOff   bool   // made by `docker compose run`
	Hash     string // of the service as it was made of
	Version  string // of the Compose that made it
	Image    string // as the files named it
	ImageID  string
	State    string // as the engine calls it: created, running, paused, restarting, removing, exited, dead
	Restarts int
	On       []Endpoint // by network
}

// Endpoint is what a container has on a Docker network.
type Endpoint struct {
	Network   string       // its name
	Addresses []netip.Addr // that it has while it runs
	Fixed     []netip.Addr // that its own configuration asks for
}

// Runs tells whether the container runs.
func (c *Container) Runs() bool { return c.State == string(container.StateRunning) }

// Unreached tells why a container that is there can be neither kept nor exchanged; empty: it can.
func (c *Container) Unreached() string {
	switch container.ContainerState(c.State) {
	case container.StatePaused:
		return "it is paused"
	case container.StateDead:
		return "the engine calls it dead"
	case container.StateRemoving:
		return "it is being removed"
	}
	return ""
}

// Containers reads all containers of a project, by service and number. Those whose inspection failed are told in
// unread, each by its name.
func (e *Engine) Containers(ctx context.Context, project string) (all []Container, unread []error, err error) {
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: make(client.Filters).Add("label", labelProject+"="+project)})
	if err != nil {
		return nil, nil, fmt.Errorf("the engine's containers cannot be listed: %w", err)
	}
	for _, one := range list.Items {
		c, err := e.Container(ctx, one.ID)
		switch {
		case errdefs.IsNotFound(err): // it is gone meanwhile
		case err != nil:
			unread = append(unread, fmt.Errorf("the container %s cannot be inspected: %w",
				strings.TrimPrefix(cmp.Or(slices.Concat(one.Names, []string{one.ID})...), "/"), err))
		default:
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Container) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), cmp.Compare(a.Number, b.Number),
			strings.Compare(a.ID, b.ID))
	})
	return all, unread, nil
}

// Container reads one.
func (e *Engine) Container(ctx context.Context, id string) (Container, error) {
	shown, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return Container{}, err
	}
	return read(&shown.Container), nil
}

func read(shown *container.InspectResponse) Container {
	c := Container{ID: shown.ID, Name: strings.TrimPrefix(shown.Name, "/"), ImageID: shown.Image,
		Restarts: shown.RestartCount}
	if shown.State != nil {
		c.State = string(shown.State.Status)
	}
	if shown.Config != nil {
		labels := shown.Config.Labels
		c.Image, c.Service, c.Hash, c.Version = shown.Config.Image, labels[labelService], labels[labelHash],
			labels[labelVersion]
		c.Number, _ = strconv.Atoi(labels[labelNumber])
		c.OneOff, _ = strconv.ParseBool(labels[labelOneOff])
	}
	if shown.NetworkSettings == nil {
		return c
	}
	for _, name := range slices.Sorted(maps.Keys(shown.NetworkSettings.Networks)) {
		on := shown.NetworkSettings.Networks[name]
		one := Endpoint{Network: name}
		if on != nil {
			one.Addresses = valid(on.IPAddress, on.GlobalIPv6Address)
			if on.IPAMConfig != nil {
				one.Fixed = valid(on.IPAMConfig.IPv4Address, on.IPAMConfig.IPv6Address)
			}
		}
		c.On = append(c.On, one)
	}
	return c
}

func valid(addrs ...netip.Addr) (all []netip.Addr) {
	for _, a := range addrs {
		if a.IsValid() {
			all = append(all, a)
		}
	}
	return all
}

// At is what a container has on a Docker network; false where it is not on it.
func (c *Container) At(network string) (Endpoint, bool) {
	i := slices.IndexFunc(c.On, func(on Endpoint) bool { return on.Network == network })
	if i < 0 {
		return Endpoint{}, false
	}
	return c.On[i], true
}
