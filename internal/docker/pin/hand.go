package pin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/internal/docker"

	"github.com/moby/moby/client"
)

// Hand is a Docker Engine in which containers are taken off networks and put back, with the rights of whoever
// opened it. A person's command has one for as long as it runs; the daemon only reads
// (docker.Engine).
type Hand struct {
	host      string
	transport *handing
	mover     Mover

	mu     sync.Mutex
	api    *client.Client // nil until the version of its API is agreed upon
	speaks int            // the minor version of the newest API that the engine speaks
}

// handing lets through to the engine what reads, and what connects a container to a network or disconnects it; and what
// whoever opened it needs besides.
type handing struct {
	docker.Reading
	also func(*http.Request) bool
}

var placing = regexp.MustCompile(`^(/v[0-9.]+)?/networks/[^/]+/(connect|disconnect)$`)

func (h *handing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && placing.MatchString(req.URL.Path) || h.also(req) {
		return h.Base.RoundTrip(req)
	}
	return h.Reading.RoundTrip(req)
}

// OpenHand returns the engine that listens at a URL, as docker.Open does. It connects to nothing yet.
func OpenHand(host string) (*Hand, error) {
	return OpenWider(host, func(*http.Request) bool { return false })
}

// OpenWider is OpenHand for a room that lets through some more requests.
func OpenWider(host string, also func(*http.Request) bool) (*Hand, error) {
	if host == "" {
		host = docker.DefaultHost
	}
	dial, err := docker.Dial(host)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConns: 1,
		IdleConnTimeout: 30 * time.Second}
	return &Hand{host: host, transport: &handing{docker.Reading{Base: base}, also}}, nil
}

// Close ends the connections that are not in use, and lets other processes move all containers.
func (h *Hand) Close() {
	h.mover.Close()
	h.transport.Base.CloseIdleConnections()
}

// The minor versions of the engine's API (1.N) that matter here.
const (
	firstTakingAny = 52 // v29: a container may ask for an address also where Berth chose the subnet
	lastTellingMAC = 51 // the last in which a container's configuration has the MAC that its user gave
)

// TakesAnyAddress tells whether a container can ask for its address also on a network that was created without
// --subnet.
func (h *Hand) TakesAnyAddress(ctx context.Context) (bool, error) {
	_, err := h.agree(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.speaks >= firstTakingAny, err
}

// Mover is what takes containers off networks and puts them on.
func (h *Hand) Mover() *Mover { return &h.mover }

// API is the client of the version that is agreed upon.
func (h *Hand) API(ctx context.Context) (*client.Client, error) { return h.agree(ctx) }

// agree is a client of the version that the engine and this package know, and in which MACs are told.
func (h *Hand) agree(ctx context.Context) (*client.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.api != nil {
		return h.api, nil
	}
	first, err := h.newClient()
	if err != nil {
		return nil, err
	}
	pong, err := first.Ping(ctx, client.PingOptions{})
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", h.host, err)
	}
	h.speaks, err = minor(pong.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", h.host, err)
	}
	agreed := client.WithAPIVersion(fmt.Sprintf("1.%d", min(h.speaks, lastTellingMAC)))
	h.api, err = h.newClient(agreed)
	return h.api, err
}

func (h *Hand) newClient(more ...client.Opt) (*client.Client, error) {
	plain := &http.Client{Transport: h.transport, CheckRedirect: client.CheckRedirect}
	options := append([]client.Opt{client.WithHost(h.host), client.WithHTTPClient(plain)}, more...)
	api, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("the engine at %s: %w", h.host, err)
	}
	return api, nil
}

// minor is the N of an API's version 1.N.
func minor(version string) (int, error) {
	rest, found := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(rest)
	if !found || err != nil {
		return 0, errors.New("it says the version " + strconv.Quote(version) + " of its API, which is none")
	}
	return n, nil
}
