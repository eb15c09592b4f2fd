package cli

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/docker"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// EngineFlags say which engine a command reads by itself, and what Berth is called there.
type EngineFlags struct {
	Host    string
	Drivers []string
}

// The names of those flags, which are also read from the environment.
const (
	flagDockerHost = "docker-host"
	flagDriver     = "ipam-driver"
)

// NoDockerHost is the value of --docker-host for no engine at all.
const NoDockerHost = "none"

func (e *EngineFlags) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.Host, flagDockerHost, "", "`URL` of the engine (default: "+docker.DefaultHost+")")
	f.StringSliceVar(&e.Drivers, flagDriver, nil,
		"`NAME` that Berth has in the engine's networks (repeatable; default: that of the managed plugin whose socket "+
			"is used, else what the daemon says)")
}

// Open opens the engine; whether it answers is seen when it is asked.
func (e *EngineFlags) Open() (*docker.Engine, error) {
	if e.Host == NoDockerHost {
		return nil, errors.New("--docker-host is none, and an engine is to be read: give its URL, such as " +
			docker.DefaultHost)
	}
	return docker.Open(e.Host)
}

// pluginDir is the directory of a managed plugin's sockets: its id.
var pluginDir = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Names are those that the engine has for the daemon behind a socket: what is said, that of the managed plugin whose
// socket it is, or what the daemon calls itself.
func (e *EngineFlags) Names(ctx context.Context, engine *docker.Engine, c *client.Client) ([]string, error) {
	if len(e.Drivers) > 0 {
		return e.Drivers, nil
	}
	id := filepath.Base(filepath.Dir(c.Socket()))
	if !pluginDir.MatchString(id) {
		daemon, err := c.Version(ctx)
		if err != nil {
			return nil, err
		}
		if len(daemon.Drivers) == 0 { // an older one
			return []string{daemon.Driver}, nil
		}
		return daemon.Drivers, nil
	}
	name, err := engine.PluginName(ctx, id)
	if err != nil {
		return nil, err
	}
	return []string{name}, nil
}

// Given tells whether an engine was named, which is read then whatever the daemon reads itself.
func (e *EngineFlags) Given() bool { return e.Host != "" && e.Host != NoDockerHost }

// MayLookHere tells whether the engine of this host may be read for a daemon: not where that is on another one.
func (e *EngineFlags) MayLookHere(c *client.Client) bool {
	return e.Host != NoDockerHost && !strings.Contains(c.Socket(), "://")
}

// OfDaemon finds the daemon whose engine is to be changed. It refuses to take the engine of this host for that of a
// daemon elsewhere, unless an engine was named.
func (e *EngineFlags) OfDaemon(ctx context.Context, p *Program, cmd *cobra.Command) (*client.Client, error) {
	c, err := p.Find(ctx)
	if err != nil {
		return nil, err
	}
	if e.Given() || e.MayLookHere(c) {
		return c, nil
	}
	c.Close()
	return nil, Usage(cmd, errors.New("the daemon is asked over the network: say with --docker-host where the engine of "+
		"its host is"))
}

// View reads the engine for a daemon.
func (e *EngineFlags) View(ctx context.Context, c *client.Client) (*ipam.EngineView, error) {
	engine, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	names, err := e.Names(ctx, engine, c)
	if err != nil {
		return nil, err
	}
	daemon, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	view, err := engine.View(ctx, daemon.Host, names)
	return &view, err
}
