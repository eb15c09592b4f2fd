package main

import "net"

// hasDevice reports whether this host has a network device. If only the loopback device is visible, the daemon cannot
// see the host's devices, and hasDevice returns true.
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
