// Package driver speaks Docker's IPAM protocol: JSON over HTTP on a unix socket. Every call gets its answer or an error
// that gives the reason. A malformed call is refused, because the engine repeats a broken call with an empty body. A
// release always succeeds.
//
// A call arrives as a message of docker/go-plugins-helpers. The driver parses it into netip values and an ipam request,
// asks the Service, and returns strings. Its only state is whether the engine sends names.
package driver

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"sync/atomic"
	"time"

	"berth/internal/drain"
	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
	"github.com/sirupsen/logrus"
)

// The options that the engine sends by itself.
const (
	optMAC         = "com.docker.network.endpoint.macaddress"
	optName        = "com.docker.network.endpoint.name" // engines from v29 on
	optAddressType = "RequestAddressType"
	typeGateway    = "com.docker.network.gateway"
	optSerial      = "com.docker.network.ipam.serial" // from a swarm's manager and its nodes
)

// metaGateway is the key of a pool's gateway in the answer, as a CIDR.
const metaGateway = "com.docker.network.gateway"

// Service decides who has which address. It is a service.Service or, if the host shares a store, a cluster.Service.
type Service interface {
	RequestPool(context.Context, ipam.PoolRequest) (ipam.PoolGrant, error)
	ReleasePool(ctx context.Context, pool ipam.ID) error
	RequestAddress(context.Context, ipam.AddressRequest) (netip.Prefix, error)
	ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error
}

// Config is what a Driver needs. Service and Log are mandatory.
type Config struct {
	Service Service
	Log     *logrus.Entry

	// Errors receives the messages of http.Server; default: the standard logger.
	Errors *log.Logger

	// Routes returns the host's routes without the default ones, and NameServers the addresses of its name servers.
	// Default: those of this network namespace and of /etc/resolv.conf. If a chosen subnet overlaps one of them, the
	// engine refuses it and asks for another.
	Routes      func() ([]ipam.HostRoute, error)
	NameServers func() ([]netip.Prefix, error)

	// Host returns the engine's bridges on the host; default: hostBridges. No subnet may overlap one of theirs.
	Host func() ([]Bridge, error)

	// Bridges returns the engine's own bridge networks as a witness knows them. live reports whether these are all
	// current networks. Default: none are known.
	Bridges func() (networks []ipam.EngineNetwork, live bool)

	// AskMAC makes the engine send the MAC of each endpoint. Engines before 28 then draw a random MAC instead of
	// deriving it from the address, and ipvlan refuses such a driver.
	AskMAC bool

	// Named is called once, with the first request that has a container's name; default: nobody is told.
	Named func()

	// Observe receives the duration and the error of each call; default: none.
	Observe func(call string, took time.Duration, err error)

	// Ready refuses all calls except the handshake while it returns an error; default: always ready.
	Ready func() error
}

// Driver answers the calls of one Docker Engine.
type Driver struct {
	service Service
	log     *logrus.Entry
	errors  *log.Logger
	routes  func() ([]ipam.HostRoute, error)
	servers func() ([]netip.Prefix, error)
	host    func() ([]Bridge, error)
	bridges func() ([]ipam.EngineNetwork, bool)
	askMAC  bool
	named   atomic.Bool // the engine has sent a name, so it sends the names of all endpoints
	tell    func()      // of that
	ready   func() error
	observe func(string, time.Duration, error)

	headerTimeout, bodyTimeout time.Duration // the time that a client has to send these
	quiet, first               time.Duration // the times that it has for a request after the stop
}

// New returns a Driver over a Service.
func New(cfg Config) *Driver {
	d := &Driver{service: cfg.Service, log: cfg.Log, errors: cfg.Errors, routes: cfg.Routes,
		servers: cfg.NameServers, host: cfg.Host, bridges: cfg.Bridges,
		askMAC: cfg.AskMAC, tell: cfg.Named, ready: cfg.Ready, observe: cfg.Observe,
		headerTimeout: headerTimeout, bodyTimeout: bodyTimeout, quiet: drain.Quiet, first: drain.First}
	if d.routes == nil {
		d.routes = hostRoutes
	}
	if d.servers == nil {
		d.servers = func() ([]netip.Prefix, error) { return nameServers(resolvConf) }
	}
	if d.host == nil {
		d.host = hostBridges
	}
	if d.bridges == nil {
		d.bridges = func() ([]ipam.EngineNetwork, bool) { return nil, false }
	}
	if d.observe == nil {
		d.observe = func(string, time.Duration, error) {}
	}
	if d.ready == nil {
		d.ready = func() error { return nil }
	}
	return d
}

// capabilities asks the engine for the MAC of each endpoint if this driver identifies containers by it. The MAC
// identifies a repeated call and a container that comes back. The driver never asks for a replay after a restart,
// because all leases are on disk.
func (d *Driver) capabilities(context.Context, *struct{}) (*api.CapabilitiesResponse, error) {
	return &api.CapabilitiesResponse{RequiresMACAddress: d.askMAC}, nil
}

// addressSpaces returns the default spaces of the engine's requests.
func (d *Driver) addressSpaces(context.Context, *struct{}) (*api.AddressSpacesResponse, error) {
	return &api.AddressSpacesResponse{LocalDefaultAddressSpace: ipam.LocalSpace,
		GlobalDefaultAddressSpace: ipam.GlobalSpace}, nil
}

// requestPool attaches a Docker network to a subnet.
func (d *Driver) requestPool(ctx context.Context, msg *api.RequestPoolRequest) (*api.RequestPoolResponse, error) {
	req, err := parsePool(msg)
	if err != nil {
		return nil, err
	}
	req.AskedMAC = d.askMAC
	if !isSwarm(msg) {
		req.Docker = d.docker()
	}
	if req.Routes, err = d.routes(); err != nil {
		d.log.WithError(err).Warn("the host's routes cannot be read: a chosen subnet may overlap one")
	}
	if !req.CIDR.IsValid() {
		req.Avoid = d.avoid(&req)
	}
	grant, err := d.service.RequestPool(ctx, req)
	if err != nil {
		return nil, err
	}
	answer := &api.RequestPoolResponse{PoolID: grant.ID.String(), Pool: grant.CIDR.String(), Data: map[string]string{}}
	if grant.Gateway.IsValid() {
		answer.Data[metaGateway] = grant.Gateway.String()
	}
	return answer, nil
}

// avoid returns the prefixes that a chosen subnet must not overlap.
func (d *Driver) avoid(req *ipam.PoolRequest) []netip.Prefix {
	all, err := d.servers()
	if err != nil {
		d.log.WithError(err).Warn("the host's name servers cannot be read: a chosen subnet may hold one")
	}
	for _, route := range req.Routes {
		all = append(all, route.Prefix)
	}
	for _, docker := range req.Docker {
		all = append(all, docker.CIDR)
	}
	return all
}

// docker returns the subnets of the engine's own bridges. It omits those that it cannot read; the engine still makes
// its other checks.
func (d *Driver) docker() []ipam.DockerSubnet {
	host, err := d.host()
	if err != nil {
		d.log.WithError(err).Warn("the host's bridges cannot be read: a subnet may overlap one of Docker's own")
	}
	networks, live := d.bridges()
	return dockerSubnets(host, networks, live)
}

// releasePool ends an attachment. An unknown pool counts as released.
func (d *Driver) releasePool(ctx context.Context, msg *api.ReleasePoolRequest) (*struct{}, error) {
	id, err := parsePoolID(msg.PoolID)
	if errors.Is(err, errForeign) {
		return &struct{}{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &struct{}{}, d.service.ReleasePool(context.WithoutCancel(ctx), id)
}

// requestAddress takes an address for an endpoint, for a gateway or for the network itself.
func (d *Driver) requestAddress(ctx context.Context,
	msg *api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
	req, err := parseAddress(msg)
	if err != nil {
		return nil, err
	}
	if req.Name != "" && !d.named.Swap(true) && d.tell != nil {
		d.tell()
	}
	req.Telling = d.askMAC || d.named.Load()
	given, err := d.service.RequestAddress(ctx, req)
	if err != nil {
		return nil, err
	}
	return &api.RequestAddressResponse{Address: given.String(), Data: map[string]string{}}, nil
}

// releaseAddress releases an address. It refuses only malformed calls, because the engine logs the error and
// forgets the address. The release continues if the client hangs up.
func (d *Driver) releaseAddress(ctx context.Context, msg *api.ReleaseAddressRequest) (*struct{}, error) {
	id, err := parsePoolID(msg.PoolID)
	if errors.Is(err, errForeign) {
		return &struct{}{}, nil
	}
	if err != nil {
		return nil, err
	}
	addr, err := parseAddr(msg.Address)
	if err != nil {
		return nil, fmt.Errorf("the address to release: %w", err)
	}
	return &struct{}{}, d.service.ReleaseAddress(context.WithoutCancel(ctx), id, addr)
}
