package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"berth/internal/admin"
	"berth/internal/docker"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// engineFlags say which engine a command reads by itself, and what Berth is called there.
type engineFlags struct {
	host    string
	drivers []string
}

func (e *engineFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&e.host, flagDockerHost, "", "`URL` of the engine (default: "+docker.DefaultHost+")")
	f.StringSliceVar(&e.drivers, flagDriver, nil,
		"`NAME` that Berth has in the engine's networks (repeatable; default: the managed plugin's whose socket is used, else what the daemon says)")
}

// The names of those flags, which are also read from the environment.
const (
	flagDockerHost = "docker-host"
	flagDriver     = "ipam-driver"
)

// open opens the engine; whether it answers is seen when it is asked.
func (e *engineFlags) open() (*docker.Engine, error) {
	if e.host == noDockerHost {
		return nil, errors.New("--docker-host is none, and an engine is to be read: give its URL, such as " + docker.DefaultHost)
	}
	return docker.Open(e.host)
}

// pluginDir is the directory of a managed plugin's sockets: its id.
var pluginDir = regexp.MustCompile(`^[0-9a-f]{64}$`)

// names are those that the engine has for the daemon behind a socket: what is said, that of the managed plugin whose socket it is, or
// what the daemon calls itself.
func (e *engineFlags) names(ctx context.Context, engine *docker.Engine, c *admin.Client) ([]string, error) {
	if len(e.drivers) > 0 {
		return e.drivers, nil
	}
	id := filepath.Base(filepath.Dir(c.Socket()))
	if !pluginDir.MatchString(id) {
		daemon, err := c.Version(ctx)
		if err != nil {
			return nil, err
		}
		return []string{daemon.Driver}, nil
	}
	name, err := engine.PluginName(ctx, id)
	if err != nil {
		return nil, err
	}
	return []string{name}, nil
}

// given tells whether an engine was named, which is read then whatever the daemon reads itself.
func (e *engineFlags) given() bool { return e.host != "" && e.host != noDockerHost }

// mayLookHere tells whether the engine of this host may be read for a daemon: not where that is on another one.
func (e *engineFlags) mayLookHere(c *admin.Client) bool {
	return e.host != noDockerHost && !strings.Contains(c.Socket(), "://")
}

// view reads the engine for a daemon.
func (e *engineFlags) view(ctx context.Context, c *admin.Client) (*ipam.EngineView, error) {
	engine, err := e.open()
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	names, err := e.names(ctx, engine, c)
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
