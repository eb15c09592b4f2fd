package cluster

import (
	"berth/internal/allocator"
	"berth/internal/ipam"
)

// lessHeld is the same of a store that hosts share; as long as it is not open, nothing of it is known.
func (s *Shared) lessHeld(docker []ipam.DockerSubnet) []ipam.DockerSubnet {
	svc, err := s.service()
	if err != nil {
		return docker
	}
	return allocator.LessHeld(svc.Ledger, docker)
}
