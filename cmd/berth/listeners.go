package main

import (
	"context"
	"net"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"berth/internal/cli"

	"github.com/sirupsen/logrus"
)

// listeners are the daemon's sockets and listeners.
type listeners struct {
	plugin, mac, admin *socket // mac: nil if no container is identified by its MAC
	remote             *remoteListener
	metrics            net.Listener // nil: none
	gid, readGID       int          // the groups for full and for read-only access; -1: there is no such group
}

// openListeners binds all of them. From then on clients wait.
func (cfg serveConfig) openListeners(ctx context.Context, log *logrus.Entry) (d *listeners, err error) {
	d = &listeners{remote: &remoteListener{}, gid: groupID(cli.AdminGroup), readGID: groupID(readGroup)}
	defer func() {
		if err != nil {
			d.close(log)
		}
	}()
	sockets, err := listen(log,
		socketSpec{name: "plugin", flag: "--plugin-socket", path: cfg.pluginSocket, gid: -1},
		socketSpec{name: "mac", flag: "--mac-socket", path: cfg.macSocket, gid: -1},
		socketSpec{name: "admin", flag: "--admin-socket", path: cfg.adminSocket, gid: d.gid, readGID: d.readGID})
	if err != nil {
		return d, err
	}
	d.plugin, d.mac, d.admin = sockets[0], sockets[1], sockets[2]
	remote, err := cfg.listenRemote(ctx, log)
	if err != nil {
		return d, err
	}
	d.remote = remote
	d.metrics, err = cfg.listenMetrics(ctx, log)
	return d, err
}

func (d *listeners) close(log *logrus.Entry) {
	if d.metrics != nil {
		d.metrics.Close()
	}
	d.remote.Close()
	closeSockets(log, []*socket{d.plugin, d.mac, d.admin})
}

// drivers returns the engine's names of this daemon: that of the plugin socket, and that of the MAC socket if it
// exists.
func (cfg serveConfig) drivers(onMAC *socket) []string {
	names := []string{cfg.ipamDriver}
	if onMAC != nil {
		names = append(names, driverOf(onMAC.path))
	}
	return names
}

// driverOf returns the engine's name of the driver behind a plugin socket.
func driverOf(socket string) string { return strings.TrimSuffix(filepath.Base(socket), ".sock") }

// readGroup is the group with read-only access to the admin socket.
const readGroup = "berth-read"

// groupID looks up a group; -1 if it does not exist.
func groupID(name string) int {
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return -1
	}
	return gid
}
