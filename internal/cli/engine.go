package cli

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

// EngineFlags name the engine that a command reads itself, and Berth's driver name there.
type EngineFlags struct {
	Host    string
	Drivers []string
}

// Names of these flags, which are also read from the environment.
const (
	flagDockerHost = "docker-host"
	flagDriver     = "ipam-driver"
)

// NoDockerHost is the value of --docker-host that means no engine.
const NoDockerHost = "none"

// DockerHostFlag names the engine that a command reads.
func DockerHostFlag(host *string) FlagRow {
	return Flag(host, flagDockerHost, "`URL` of the engine (default: DOCKER_HOST, the current docker context, or "+
		docker.DefaultHost+")")
}

// Flags are these flags.
func (e *EngineFlags) Flags() Flags {
	return Flags{
		DockerHostFlag(&e.Host),
		Flag(&e.Drivers, flagDriver, "`NAME` of Berth's IPAM driver in the engine (repeatable; default: the name of "+
			"the managed plugin whose socket is used, otherwise the daemon's driver name)").Split(),
	}
}

// Open returns the engine. It does not connect yet, so a missing engine shows at the first request.
func (e *EngineFlags) Open() (*docker.Engine, error) {
	if e.Host == NoDockerHost {
		return nil, errors.New("--docker-host is none, but this command reads an engine: give its URL, such as " +
			docker.DefaultHost)
	}
	return docker.Open(e.Host)
}

// pluginDir matches the directory of a managed plugin's sockets, which is its id.
var pluginDir = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Names returns the driver names that the engine may have for this daemon. They come from the flags, from the managed
// plugin that has the daemon's socket, or from the daemon.
func (e *EngineFlags) Names(r *Run, engine *docker.Engine) ([]string, error) {
	if len(e.Drivers) > 0 {
		return e.Drivers, nil
	}
	id := filepath.Base(filepath.Dir(r.Socket()))
	if !pluginDir.MatchString(id) {
		daemon, err := r.Version(r)
		if err != nil {
			return nil, err
		}
		if len(daemon.Drivers) == 0 { // an older daemon does not report them
			return []string{daemon.Driver}, nil
		}
		return daemon.Drivers, nil
	}
	name, err := engine.PluginName(r, id)
	if err != nil {
		return nil, err
	}
	return []string{name}, nil
}

// Given reports whether the command line names an engine. Then that one is read, whatever engine the daemon reads.
func (e *EngineFlags) Given() bool { return e.Host != "" && e.Host != NoDockerHost }

// MayLookHere reports whether this host's engine is the daemon's. It is not if the daemon is on another host.
func (e *EngineFlags) MayLookHere(r *Run) bool {
	return e.Host != NoDockerHost && !strings.Contains(r.Socket(), "://")
}

// Ask finds the daemon whose engine is to be changed. For a daemon on another host it demands a named engine, because
// the engine here is another one.
func (e *EngineFlags) Ask(r *Run) error {
	if err := r.Ask(); err != nil || e.Given() || e.MayLookHere(r) {
		return err
	}
	return r.Usagef("the daemon is on another host: give the URL of the engine on that host with --docker-host")
}

// View reads the engine for a daemon.
func (e *EngineFlags) View(r *Run) (*ipam.EngineView, error) {
	engine, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	names, err := e.Names(r, engine)
	if err != nil {
		return nil, err
	}
	daemon, err := r.Version(r)
	if err != nil {
		return nil, err
	}
	view, err := engine.View(r, daemon.Host, names)
	if err == nil {
		err = e.sameEngine(r, view.Engine)
	}
	return &view, err
}

// PinRecords asks for what Berth has written of the addresses of containers.
func (r *Run) PinRecords() (rec *pin.Records, err error) {
	rec = &pin.Records{}
	if rec.Subnets, err = r.Subnets(r, ""); err != nil {
		return nil, err
	}
	if rec.Networks, err = r.Networks(r, ""); err != nil {
		return nil, err
	}
	if rec.Reservations, err = r.Reservations(r, "", ""); err != nil {
		return nil, err
	}
	rec.Leases, err = r.Leases(r, ipam.LeaseFilter{Remembered: true})
	return rec, err
}
