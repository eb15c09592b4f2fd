package ipam

import (
	"context"
	"errors"
	"sync/atomic"

	"berth/store"
)

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

// Shared is one host's half of a cluster: the Service over the shared store, and what the host does while that is out of reach.
// It keeps what it must not forget meanwhile in the host's own store.
type Shared struct {
	own     store.Store // of the host: the queue of releases, and the headroom
	service atomic.Pointer[Service]
	mark    [4]byte
	reach   func() store.Reach
}

// ErrAway: the shared store is out of reach, or was never reached since the daemon began. Nothing was changed.
var ErrAway = errors.New("the shared store is out of reach")

// SharedConfig is what a Shared needs.
type SharedConfig struct {
	Own  store.Store // the host's own
	Mark [4]byte     // of the cluster
	Host string
	// Open opens the Service over the shared store. It is called again, after a while, as long as it fails with store.ErrAway.
	Open  func(ctx context.Context) (*Service, error)
	Reach func() store.Reach
}

// OpenShared reads what the host has kept, and returns at once; Run opens the shared store.
func OpenShared(ctx context.Context, cfg SharedConfig) (*Shared, error) { panic("pending") }

// Run opens the shared Service, delivers what waits whenever the store is in reach, keeps the headroom full and does the
// Service's upkeep, until ctx ends. Its error is one that no waiting mends: the store is another cluster's, or the host is refused.
func (s *Shared) Run(ctx context.Context) error { panic("pending") }

// The calls of the engine, as those of Service. Out of reach of the store they answer within 2 s: a new pool or address is
// refused with ErrAway, unless the headroom has one; a release succeeds and is queued.

func (s *Shared) RequestPool(ctx context.Context, req PoolRequest) (PoolGrant, error) { panic("pending") }
func (s *Shared) ReleasePool(ctx context.Context, pool ID) error                     { panic("pending") }
