package cluster

import (
	"berth/internal/allocator"
	"berth/internal/ipam"
)

// lessHeld is allocator.LessHeld for the shared store. Before the store is opened it changes nothing.
func (s *Shared) lessHeld(docker []ipam.DockerSubnet) []ipam.DockerSubnet {
	svc, err := s.service()
	if err != nil {
		return docker
	}
	return allocator.LessHeld(svc.Ledger, docker)
}
