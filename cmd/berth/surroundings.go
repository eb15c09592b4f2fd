package main

import (
	"context"
	"net/netip"

	"berth/driver"
	"berth/internal/ipam"
	"berth/internal/routes"
)

// surroundings is what the daemon reads of its network namespace. If a field is nil, the package that needs it reads
// the kernel and /etc itself.
type surroundings struct {
	routes  func() ([]ipam.HostRoute, error) // for driver.Config, like servers and bridges
	servers func() ([]netip.Prefix, error)
	bridges func() ([]driver.Bridge, error)
	list    func() ([]routes.Route, error) // for routes.Config, like changes
	changes func(context.Context) (<-chan struct{}, error)
	device  func(name string) bool // for admin.Config
}

// thisHost returns the surroundings of a daemon.
func thisHost() surroundings { return surroundings{device: hasDevice} }
