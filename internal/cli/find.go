package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
)

// places are the possible admin sockets: that of a daemon on this host, and those of managed plugins. The Docker Engine
// shows the plugins' directories here under their ids.
type places struct {
	host    string
	plugins string // a glob pattern
}

// DefaultAdminSocket is the daemon's default admin socket.
const DefaultAdminSocket = "/run/berth/admin.sock"

// AdminGroup is the group whose members may use the admin socket.
const AdminGroup = api.AdminGroup

// pluginSockets is the pattern for the admin sockets of managed plugins.
const pluginSockets = "/run/docker/plugins/*/berth-admin.sock"

func defaultPlaces() places { return places{host: DefaultAdminSocket, plugins: pluginSockets} }

// OfPlugin reports whether an admin socket is a managed plugin's.
func OfPlugin(socket string) bool {
	is, err := filepath.Match(pluginSockets, socket)
	return is && err == nil
}

// probeTime is the longest wait for a connection to a socket during a search.
const probeTime = 2 * time.Second

// Connect returns a client of the daemon that --admin-socket names: a path or an https:// address. Without it, Connect
// takes the daemon of this host or, if that does not answer, the only managed plugin that does.
func (p *Program) Connect(ctx context.Context) (*client.Client, error) {
	c, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	c.OnAway(p.warnAway)
	return c, nil
}

// warnAway warns once that data of the shared store is old or missing.
func (p *Program) warnAway(a api.Away) {
	p.warned.Do(func() {
		shown := "Berth cannot show any of its data"
		if a.Age >= 0 {
			shown = fmt.Sprintf("the data shown from it is %s old", a.Age)
		}
		fmt.Fprintf(p.Stderr, "berth: the shared store has been out of reach since %s; %s\n", LocalTime(a.Since), shown)
	})
}

func (p *Program) client(ctx context.Context) (*client.Client, error) {
	socket := p.AdminSocket
	if socket == "" {
		socket = strings.TrimSpace(p.Env(variable("admin-socket"))) // completion runs before fromEnvironment
	}
	if socket == "" {
		var err error
		if socket, err = p.places.search(ctx); err != nil {
			return nil, err
		}
	}
	if strings.Contains(socket, "://") {
		return p.Remote.client(socket, p.Env)
	}
	return client.New(socket), nil
}

// search returns the socket of this host's daemon or, if that does not answer, of the only managed plugin that does.
func (pl places) search(ctx context.Context) (string, error) {
	hostErr := probe(ctx, pl.host)
	if hostErr == nil {
		return pl.host, nil
	}
	found, err := filepath.Glob(pl.plugins)
	if err != nil {
		return "", err
	}
	var answering []string
	for _, socket := range found {
		if probe(ctx, socket) == nil {
			answering = append(answering, socket)
		}
	}
	switch {
	case len(answering) == 1:
		return answering[0], nil
	case len(answering) > 1:
		return "", fmt.Errorf("%d managed plugins answer; choose one with --admin-socket or BERTH_ADMIN_SOCKET: %s",
			len(answering), strings.Join(answering, ", "))
	case client.IsDenied(hostErr):
		return "", client.Denied(pl.host)
	}
	hidden := ""
	if _, err := os.ReadDir(filepath.Dir(filepath.Dir(pl.plugins))); client.IsDenied(err) {
		hidden = " (only root sees the sockets of managed plugins)"
	}
	return "", fmt.Errorf("no Berth answers, neither on %s nor as a managed plugin%s: start it as root with "+
		"`systemctl start berth`, "+
		"`docker plugin enable NAME` or `berth serve`, or say where it is with --admin-socket", pl.host, hidden)
}

// probe connects to a socket and closes the connection.
func probe(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}
