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
	api    *client.Client
	places *pin.Connector
}

// Open returns the engine at a URL such as unix:///var/run/docker.sock; empty is docker.DefaultHost. It does not
// connect yet.
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
	places, err := pin.OpenConnector(host)
	return &Engine{api: api, places: places}, err
}

// Close closes the connections, and allows other processes to move all containers.
func (e *Engine) Close() error {
	e.places.Close()
	return e.api.Close()
}

// Container is a container of a project.
type Container struct {
	ID       string
	Name     string
	Service  string
	Number   int    // of the replica
	OneOff   bool   // made by `docker compose run`
	Hash     string // Compose's hash of its service when it was made
	Made     string // our hash, if Compose's covers more than the files (docker.LabelMade)
	Version  string // of the Compose that made it
	Image    string // in the files
	ImageID  string
	State    string // in the engine: created, running, paused, restarting, removing, exited, dead
	ExitCode int    // of its last end
	Health   string // healthy, unhealthy, starting; empty: it has no healthcheck
	Restarts int
	Forever  bool // it restarts however it ends
	// containers whose network, processes or volumes it uses, by id or by the name in the configuration
	Shares  []string
	Volumes []Volume   // by path
	On      []Endpoint // by network
}

// Volume is a volume of a container.
type Volume struct {
	Name   string // its name in the engine
	Target string // the path in the container
	Path   string // on the host
}

// anonymous matches the engine's names of unnamed volumes.
var anonymous = regexp.MustCompile("^[0-9a-f]{64}$")

// Anonymous reports whether the engine chose the volume's name. Such a volume can be found only through a container
// that has it.
func (v *Volume) Anonymous() bool { return anonymous.MatchString(v.Name) }

// temporaryName matches temporary names of containers, in Compose's form: a part of an id comes first.
var temporaryName = regexp.MustCompile("^[0-9a-f]{12}_(.+)$")

// Ought returns the proper name of a container, and whether its current name is a temporary one.
func (c *Container) Ought() (name string, isTemporary bool) {
	if parts := temporaryName.FindStringSubmatch(c.Name); parts != nil {
		return parts[1], true
	}
	return c.Name, false
}

// Endpoint is a container's place on a Docker network.
type Endpoint struct {
	Network   string       // its name
	Addresses []netip.Addr // while it runs
	Fixed     []netip.Addr // in its own configuration
}

// Runs reports whether the container runs.
func (c *Container) Runs() bool { return c.State == string(container.StateRunning) }

// Unreached returns why a container can be neither kept nor replaced, or "" if it can.
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

// Containers reads all containers of a project, by service and number. unread has an error for each container that
// cannot be inspected, with its name.
func (e *Engine) Containers(ctx context.Context, project string) (all []Container, unread []error, err error) {
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: make(client.Filters).Add("label", docker.LabelProject+"="+project)})
	if err != nil {
		return nil, nil, fmt.Errorf("the engine's containers cannot be listed: %w", err)
	}
	for _, one := range list.Items {
		c, err := e.Container(ctx, one.ID)
		switch {
		case errdefs.IsNotFound(err): // it was removed meanwhile
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

// Container reads one container.
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

// shares returns the containers that a container cannot run without.
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

// At returns a container's place on a Docker network. It returns false if it is not on it.
func (c *Container) At(network string) (Endpoint, bool) {
	i := slices.IndexFunc(c.On, func(on Endpoint) bool { return on.Network == network })
	if i < 0 {
		return Endpoint{}, false
	}
	return c.On[i], true
}
