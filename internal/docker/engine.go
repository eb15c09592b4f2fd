package docker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/client"
)

// DefaultHost is the engine's default address.
const DefaultHost = client.DefaultDockerHost

// Patience is the longest wait for all answers that make up a view. The engine may hold its locks for a while.
const Patience = 30 * time.Second

// Engine reads from a Docker Engine. Its methods are safe for concurrent use.
type Engine struct {
	host      string
	transport *Reading
	ports     *ports
	locks     *locks

	mu    sync.Mutex
	api   *client.Client
	known identity // zero until the engine was asked
}

// identity is what an engine reports about itself.
type identity struct {
	id       string
	version  string
	firewall string // firewall backend; empty for engines before 28.2, which do not report it
}

// Open returns the engine at a URL such as unix:///var/run/docker.sock or tcp://127.0.0.1:2375; empty means
// DefaultHost. It does not connect yet, so a missing engine shows at the first request. That also negotiates the API
// version.
func Open(host string) (*Engine, error) {
	if host == "" {
		host = DefaultHost
	}
	dial, err := Dial(host)
	if err != nil {
		return nil, err
	}
	e := &Engine{host: host, ports: newPorts(), transport: &Reading{&http.Transport{
		DialContext: dial, DisableCompression: true, MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second,
	}}}
	e.locks = newLocks(e, dial)
	return e, e.renew()
}

// URL returns the engine's address.
func (e *Engine) URL() string { return e.host }

// Locked returns the locked containers among those that may send the request. It takes at most a quarter of a second,
// and knows nothing while the engine's events are not followed.
func (e *Engine) Locked(ctx context.Context, q ipam.Question) ipam.Locked { return e.locks.ask(ctx, q) }

// DialFunc dials for an http.Transport.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial returns a function that connects to the engine at a URL and ignores its arguments. Dial itself does not connect.
func Dial(host string) (DialFunc, error) {
	scheme, address, found := strings.Cut(host, "://")
	d := &net.Dialer{Timeout: 10 * time.Second}
	switch {
	case found && scheme == "unix" && strings.HasPrefix(address, "/"):
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", address) },
			nil
	case found && scheme == "tcp" && address != "":
		return d.DialContext, nil
	}
	return nil, ipam.Refuse(ipam.ErrInvalid, "%q is not an address of an engine; write unix:///PATH or tcp://HOST:PORT",
		host)
}

// renew drops the negotiated API version, because a restarted engine may have another.
func (e *Engine) renew() error {
	api, err := client.New(client.WithHost(e.host),
		client.WithHTTPClient(&http.Client{Transport: e.transport, CheckRedirect: client.CheckRedirect}))
	if err != nil {
		return fmt.Errorf("the engine at %s: %w", e.host, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.api, e.known = api, identity{}
	return nil
}

func (e *Engine) client() *client.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.api
}

// Close closes idle connections and cancels open questions about locks.
func (e *Engine) Close() error {
	e.locks.stop()
	e.transport.Base.CloseIdleConnections()
	return nil
}

// identify adds to a view what the engine reports about itself. If that fails, it adds nothing, because only changes of
// it matter.
func (e *Engine) identify(ctx context.Context, api *client.Client, view *ipam.EngineView) {
	e.mu.Lock()
	is := e.known
	e.mu.Unlock()
	if is.id == "" {
		answer, err := api.Info(ctx, client.InfoOptions{})
		if err != nil {
			return
		}
		is = identity{id: answer.Info.ID, version: answer.Info.ServerVersion}
		if told := answer.Info.FirewallBackend; told != nil {
			is.firewall = told.Driver
		}
		e.mu.Lock()
		if e.api == api {
			e.known = is
		}
		e.mu.Unlock()
	}
	view.Engine, view.Version, view.Firewall = is.id, is.version, is.firewall
}

// ID returns the engine's own id.
func (e *Engine) ID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	answer, err := e.client().Info(ctx, client.InfoOptions{})
	if err != nil {
		return "", fmt.Errorf("the engine at %s: %w", e.host, err)
	}
	return answer.Info.ID, nil
}

// PluginName returns the name of a managed plugin, with its tag, by its id.
func (e *Engine) PluginName(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	answer, err := e.client().PluginInspect(ctx, id, client.PluginInspectOptions{})
	if err != nil {
		return "", fmt.Errorf("the engine does not show the name of plugin %s: %w", id, err)
	}
	return answer.Plugin.Name, nil
}
