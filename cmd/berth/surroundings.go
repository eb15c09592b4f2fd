package main

import (
	"context"
	"net/netip"

	"berth/driver"
	"berth/internal/ipam"
	"berth/internal/routes"
)

// surroundings are what the daemon reads of the network namespace that it runs in. Where a field is nil, the room that
// needs it reads the kernel and /etc itself.
type surroundings struct {
	routes  func() ([]ipam.HostRoute, error) // of driver.Config, as are servers and bridges
	servers func() ([]netip.Prefix, error)
	bridges func() ([]driver.Bridge, error)
	list    func() ([]routes.Route, error) // of routes.Config, as is changes
	changes func(context.Context) (<-chan struct{}, error)
	device  func(name string) bool // of admin.Config
}

// thisHost are the surroundings of a daemon.
func thisHost() surroundings { return surroundings{device: hasDevice} }
