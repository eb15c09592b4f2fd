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

// DefaultHost is where an engine listens unless it was told otherwise.
const DefaultHost = client.DefaultDockerHost

// Patience is how long an engine is waited for. It bounds what an engine may take for all the answers that make a view:
// it holds its locks at times.
const Patience = 30 * time.Second

// Engine is a Docker Engine that is read from. Its methods may be called from many goroutines at once.
type Engine struct {
	host      string
	transport *Reading
	ports     *ports
	locks     *locks

	mu    sync.Mutex
	api   *client.Client
	known identity // zero until it was asked for
}

// identity is what an engine says of itself.
type identity struct {
	id       string
	version  string
	firewall string // its backend; empty where it does not tell, as engines before 28.2
}

// Open returns the engine that listens at a URL such as unix:///var/run/docker.sock or tcp://127.0.0.1:2375; empty is
// DefaultHost. It connects to nothing yet: whether there is an engine is seen when it is asked. The version of its API
// is agreed upon then.
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

// Locked tells which containers the engine has locked, of those from which a request can be. It takes a quarter of a
// second at most, and knows nothing while nobody follows the engine's events.
func (e *Engine) Locked(ctx context.Context, q ipam.Question) ipam.Locked { return e.locks.ask(ctx, q) }

// DialFunc is what an http.Transport connects with.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial returns what connects to the engine at a URL, whatever is dialled. It connects to nothing yet.
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
	return nil, refuse(ipam.ErrInvalid, "%q is not where an engine listens; write unix:///PATH or tcp://HOST:PORT",
		host)
}

// renew forgets what was agreed upon with the engine: after a restart it may be another version.
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

// Close ends the connections that are not in use, and the questions that were not answered.
func (e *Engine) Close() error {
	e.locks.stop()
	e.transport.Base.CloseIdleConnections()
	return nil
}

// identify adds to a view what the engine says of itself: nothing where that cannot be had, because only a change of it
// says anything.
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

// PluginName is the name of a managed plugin, with its tag, by its id.
func (e *Engine) PluginName(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	answer, err := e.client().PluginInspect(ctx, id, client.PluginInspectOptions{})
	if err != nil {
		return "", fmt.Errorf("the engine does not tell the name of plugin %s: %w", id, err)
	}
	return answer.Plugin.Name, nil
}
