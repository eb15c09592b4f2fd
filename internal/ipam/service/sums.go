package service

import "berth/internal/ipam"

// LANLeases is the sum of what several stores have.
func LANLeases(of []*Service) map[string]map[ipam.LANState]uint64 {
	all := map[string]map[ipam.LANState]uint64{}
	for _, s := range of {
		for network, states := range s.LANLeases() {
			if all[network] == nil {
				all[network] = map[ipam.LANState]uint64{}
			}
			for state, n := range states {
				all[network][state] += n
			}
		}
	}
	return all
}

// Told is the sum of how often the events of each verb were written.
func Told(of []*Service) map[ipam.Verb]uint64 {
	all := map[ipam.Verb]uint64{}
	for _, s := range of {
		for verb, n := range s.Told() {
			all[verb] += n
		}
	}
	return all
}
