package ipam

// Estate is all that a host sees where several share a store: its own space, in its own store, and those of the cluster. It
// answers like one Service.
//
// A request goes to the store that it is about. A pool's id tells which (Member.Mark), else the space: `local` is the host's own,
// and so is a space in which the host's own store has networks; all others are the cluster's. What is asked for by name is
// looked for in both.
type Estate struct {
	local  *Service
	shared *Shared
}

// NewEstate puts a host's own Service and its half of the cluster together.
func NewEstate(local *Service, shared *Shared) *Estate { return &Estate{local, shared} }
