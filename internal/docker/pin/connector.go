package pin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/internal/docker"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Connector disconnects containers of a Docker Engine from networks and connects them again, with the rights of its
// opener. Only a command of a person has one, for as long as it runs. The daemon only reads (docker.Engine).
type Connector struct {
	host      string
	transport *limited
	mover     Mover

	mu         sync.Mutex
	api        *client.Client // nil until the version of its API is known
	connecting *client.Client // of a version in which a container can be connected with a MAC, if the engine has one
	speaks     int            // the minor version of the newest API that the engine speaks
}

// limited lets these requests through to the engine: reads, connects, disconnects, and what also accepts.
type limited struct {
	docker.Reading
	also func(*http.Request) bool
}

var placing = regexp.MustCompile(`^(/v[0-9.]+)?/networks/[^/]+/(connect|disconnect)$`)

func (c *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && placing.MatchString(req.URL.Path) || c.also(req) {
		return c.Base.RoundTrip(req)
	}
	return c.Reading.RoundTrip(req)
}

// OpenConnector returns the engine that listens at a URL, as docker.Open does. It connects to nothing yet.
func OpenConnector(host string) (*Connector, error) {
	return OpenWider(host, func(*http.Request) bool { return false })
}

// OpenWider is OpenConnector that also lets through the requests that also accepts.
func OpenWider(host string, also func(*http.Request) bool) (*Connector, error) {
	if host == "" {
		host = docker.DefaultHost
	}
	dial, err := docker.Dial(host)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConns: 1,
		IdleConnTimeout: 30 * time.Second}
	return &Connector{host: host, transport: &limited{docker.Reading{Base: base}, also}}, nil
}

// Close ends idle connections, and lets other processes move all containers.
func (c *Connector) Close() {
	c.mover.Close()
	c.transport.Base.CloseIdleConnections()
}

// Minor versions of the engine's API (1.N) that matter here.
const (
	firstTakingAny     = 52 // from 29.0.4 on, a container may ask for an address even if Berth chose the subnet
	lastTellingMAC     = 51 // the last one in which a container's configuration has the MAC that its user gave
	firstEndpointMAC   = 44 // from 25.0 on, a disconnected endpoint takes the MAC that its user gave with it
	firstConnectingMAC = 54 // from 29.3 on, a container can be connected with a MAC
)

// refusing lists engines with that API that do not accept such an address yet (moby pull request 51583).
var refusing = []string{"29.0.0", "29.0.1", "29.0.2", "29.0.3"}

// TakesAnyAddress reports whether a container can ask for its address even on a network that was created without
// --subnet.
func (c *Connector) TakesAnyAddress(ctx context.Context) (bool, error) {
	api, err := c.API(ctx)
	if err != nil || c.speaks < firstTakingAny { // no such engine gets updates any more
		return false, err
	}
	engine, err := api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot read the version of the engine at %s: %w", c.host, err)
	}
	release, _, _ := strings.Cut(engine.Version, "+") // without a distribution's suffix
	return !slices.Contains(refusing, release), nil
}

// Mover disconnects containers from networks.
func (c *Connector) Mover() *Mover { return &c.mover }

// Connect connects a container (by full id) to a network.
func (c *Connector) Connect(ctx context.Context, on, container string, settings *network.EndpointSettings) error {
	if _, err := c.API(ctx); err != nil {
		return err
	}
	return c.mover.on(ctx, c.connecting, on, container, settings)
}

// ForceOff takes a container (by full id) off a network, even if it is half connected.
func (c *Connector) ForceOff(ctx context.Context, on, container string) error {
	api, err := c.API(ctx)
	if err != nil {
		return err
	}
	return c.mover.Off(ctx, api, on, container, true)
}

// losesMAC reports whether the engine gives a container another MAC when it connects it again, although its user gave
// it one. These engines take a MAC only when they create a container. Call it after API.
func (c *Connector) losesMAC() bool {
	return c.speaks >= firstEndpointMAC && c.speaks < firstConnectingMAC
}

// API returns a client of the newest version that the engine and this package know and that still shows MACs.
func (c *Connector) API(ctx context.Context) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.api != nil {
		return c.api, nil
	}
	first, err := c.newClient()
	if err != nil {
		return nil, err
	}
	pong, err := first.Ping(ctx, client.PingOptions{})
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", c.host, err)
	}
	c.speaks, err = minor(pong.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", c.host, err)
	}
	reading, err := c.newClient(ofMinor(min(c.speaks, lastTellingMAC)))
	if err != nil {
		return nil, err
	}
	if c.connecting, err = c.newClient(ofMinor(min(c.speaks, firstConnectingMAC))); err != nil {
		return nil, err
	}
	c.api = reading
	return c.api, nil
}

func ofMinor(version int) client.Opt { return client.WithAPIVersion(fmt.Sprintf("1.%d", version)) }

func (c *Connector) newClient(more ...client.Opt) (*client.Client, error) {
	plain := &http.Client{Transport: c.transport, CheckRedirect: client.CheckRedirect}
	options := append([]client.Opt{client.WithHost(c.host), client.WithHTTPClient(plain)}, more...)
	api, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", c.host, err)
	}
	return api, nil
}

// minor returns the N of an API version 1.N.
func minor(version string) (int, error) {
	rest, found := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(rest)
	if !found || err != nil {
		return 0, errors.New("it reports the API version " + strconv.Quote(version) + ", which is invalid")
	}
	return n, nil
}
