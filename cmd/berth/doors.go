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

// doors are where the daemon is asked: its sockets, and what it listens on for others.
type doors struct {
	plugin, mac, admin *socket // mac: nil where nobody is known by his MAC
	remote             *remoteListener
	metrics            net.Listener // nil: there is none
	gid, readGID       int          // of those who may ask, and of those who may only look; -1: there is no such group
}

// openDoors binds them all, so that whoever asks waits from then on.
func (cfg serveConfig) openDoors(ctx context.Context, log *logrus.Entry) (d *doors, err error) {
	d = &doors{remote: &remoteListener{}, gid: groupID(cli.AdminGroup), readGID: groupID(readGroup)}
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

func (d *doors) close(log *logrus.Entry) {
	if d.metrics != nil {
		d.metrics.Close()
	}
	d.remote.Close()
	closeSockets(log, []*socket{d.plugin, d.mac, d.admin})
}

// drivers are the names that the engine has for this daemon: that of its plugin socket, and that of the socket for
// those who are known by their MAC; nil: there is none.
func (cfg serveConfig) drivers(onMAC *socket) []string {
	names := []string{cfg.ipamDriver}
	if onMAC != nil {
		names = append(names, driverOf(onMAC.path))
	}
	return names
}

// driverOf is how the engine calls the driver behind a plugin socket.
func driverOf(socket string) string { return strings.TrimSuffix(filepath.Base(socket), ".sock") }

// readGroup is the group whose members may only look on the admin socket.
const readGroup = "berth-read"

// groupID looks a group up; -1 where there is none of that name.
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
