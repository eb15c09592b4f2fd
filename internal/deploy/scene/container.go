package scene

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth/internal/docker"
	"berth/internal/docker/pin"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Engine is the Docker Engine of a deploy.
type Engine struct {
	api   *client.Client
	mover pin.Mover
}

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
	return &Engine{api: api}, nil
}

// Close ends the connections, and lets other processes move all containers.
func (e *Engine) Close() error {
	e.mover.Close()
	return e.api.Close()
}

// Container is one of a project's containers.
type Container struct {
	ID       string
	Name     string
	Service  string
	Number   int    // of the replica
	OneOff   bool   // made by `docker compose run`
	Hash     string // of the service as it was made of, by Compose's word
	Made     string // the same by ours, where Compose's holds more than the files say (docker.LabelMade)
	Version  string // of the Compose that made it
	Image    string // as the files named it
	ImageID  string
	State    string // as the engine calls it: created, running, paused, restarting, removing, exited, dead
	ExitCode int    // with which it ended last
	Health   string // healthy, unhealthy, starting; empty: it has no healthcheck
	Restarts int
	Forever  bool       // it is started again however it ends
	Shares   []string   // containers whose network, processes or volumes it uses, by id or as they were named
	Volumes  []Volume   // by path
	On       []Endpoint // by network
}

// Volume is one that a container has.
type Volume struct {
	Name   string // as the engine calls it
	Target string // the path in the container
	Path   string // on the host
}

// anonymous is how the engine names a volume that nobody named.
var anonymous = regexp.MustCompile("^[0-9a-f]{64}$")

// Anonymous tells whether nobody named the volume, so that none but this container's successor can find it.
func (v *Volume) Anonymous() bool { return anonymous.MatchString(v.Name) }

// aside is how a container is called while it stands beside the one that it is exchanged for, by us and by Compose: a
// part of an id comes first.
var aside = regexp.MustCompile("^[0-9a-f]{12}_(.+)$")

// Ought is the name that a container ought to have; aside: it is another than it has.
func (c *Container) Ought() (name string, isAside bool) {
	if parts := aside.FindStringSubmatch(c.Name); parts != nil {
		return parts[1], true
	}
	return c.Name, false
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
		Filters: make(client.Filters).Add("label", docker.LabelProject+"="+project)})
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
		c.State, c.ExitCode = string(shown.State.Status), shown.State.ExitCode
		if h := shown.State.Health; h != nil && h.Status != container.NoHealthcheck {
			c.Health = string(h.Status)
		}
	}
	if shown.HostConfig != nil {
		c.Forever = shown.HostConfig.RestartPolicy.IsAlways() || shown.HostConfig.RestartPolicy.IsUnlessStopped()
		c.Shares = shares(shown.HostConfig)
	}
	for _, m := range shown.Mounts {
		if m.Type == mount.TypeVolume {
			c.Volumes = append(c.Volumes, Volume{Name: m.Name, Target: m.Destination, Path: m.Source})
		}
	}
	slices.SortFunc(c.Volumes, func(a, b Volume) int { return strings.Compare(a.Target, b.Target) })
	if shown.Config != nil {
		labels := shown.Config.Labels
		c.Image, c.Service, c.Hash, c.Version = shown.Config.Image, labels[docker.LabelService], labels[docker.LabelHash],
			labels[docker.LabelVersion]
		c.Made = labels[docker.LabelMade]
		c.Number, _ = strconv.Atoi(labels[docker.LabelNumber])
		c.OneOff, _ = strconv.ParseBool(labels[docker.LabelOneOff])
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

// shares are the containers that a container cannot run without.
func shares(host *container.HostConfig) (all []string) {
	for _, ref := range []string{host.NetworkMode.ConnectedContainer(), host.PidMode.Container(),
		host.IpcMode.Container()} {
		if ref != "" {
			all = append(all, ref)
		}
	}
	for _, from := range host.VolumesFrom {
		ref, _, _ := strings.Cut(from, ":")
		all = append(all, ref)
	}
	slices.Sort(all)
	return slices.Compact(all)
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
