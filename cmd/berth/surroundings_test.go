package main

import (
	"context"
	"net/netip"
	"os"

	"berth/driver"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/routes"
)

// onEmptyHost gives main the same surroundings on every machine.
func onEmptyHost() {
	p := cli.New(version)
	os.Exit(p.Run(context.Background(), rootCommand(p, emptyHost()), os.Args[1:]))
}

// emptyHost has no routes, name servers, bridges and devices.
func emptyHost() surroundings {
	return surroundings{routes: func() ([]ipam.HostRoute, error) { return nil, nil },
		servers: func() ([]netip.Prefix, error) { return nil, nil },
		bridges: func() ([]driver.Bridge, error) { return nil, nil },
		list:    func() ([]routes.Route, error) { return nil, nil },
		changes: func(context.Context) (<-chan struct{}, error) { return nil, nil },
		device:  func(string) bool { return false }}
}
