package main

import "net"

// hasDevice tells whether this host has a network device. Where no devices can be seen but the one that each namespace
// has, the daemon is kept from seeing the host's, and nothing is known to be missing.
func hasDevice(name string) bool {
	all, err := net.Interfaces()
	if err != nil {
		return true
	}
	others := false
	for _, one := range all {
		if one.Name == name {
			return true
		}
		others = others || one.Flags&net.FlagLoopback == 0
	}
	return !others
}
