package ipam

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"berth/store"
)

// ErrAway: the shared store is out of reach, or was never reached since the daemon began. Nothing was changed.
var ErrAway = store.ErrAway

// Shared is one host's half of a cluster: the Service over the shared store, and what the host does while that is out of reach.
// It keeps what it must not forget meanwhile in the host's own store.
type Shared struct {
	own   store.Store // of the host: the queue of releases, and the headroom
	mark  [4]byte
	host  string
	reach func() store.Reach

	opened atomic.Pointer[Service]
}

// SharedConfig is what a Shared needs.
type SharedConfig struct {
	Own  store.Store // the host's own
	Mark [4]byte     // of the cluster
	Host string
	// Open opens the Service over the shared store. It is called again, after a while, as long as it fails with store.ErrAway.
	Open  func(ctx context.Context) (*Service, error)
	Reach func() store.Reach
	Now   func() time.Time // default: time.Now
}

// SharedState is how it stands with the shared store and with what this host keeps meanwhile, for `berth status`.
type SharedState struct {
	Err      error           // why the store is out of reach; nil: it is within
	Since    time.Time       // when that began
	Fresh    time.Time       // what is read of it is all that there was at that time; zero: it was never read
	Mark     [4]byte         // of the cluster
	Host     HostState       // of this host, as far as is known
	Waiting  int             // releases, and uses of headroom, that the store has not heard of yet
	Oldest   time.Time       // since when the first of them waits; zero: none does
	Headroom []HeadroomState // by space and subnet
}

// HeadroomState is this host's headroom on one subnet.
type HeadroomState struct {
	Space   string       `json:"space"`
	Network string       `json:"network"`
	Subnet  netip.Prefix `json:"subnet"`
	Wanted  int          `json:"wanted"`
	Claimed int          `json:"claimed"` // those that can be given out
	Used    int          `json:"used"`    // given out, and the store has not heard of it yet
}

// OpenShared reads what the host has kept, and returns at once; Run opens the shared store.
func OpenShared(ctx context.Context, cfg SharedConfig) (*Shared, error) { panic("pending") }

// Run opens the shared Service, delivers what waits whenever the store is in reach, keeps the headroom full and does the
// Service's upkeep, until ctx ends. Its error is one that no waiting mends: the store is another cluster's, or the host is refused.
func (s *Shared) Run(ctx context.Context) error { panic("pending") }

// service is the Service over the shared store, or the reason why there is none yet, wrapping ErrAway. It is there while the
// store is out of reach, too, once it was opened: what is read from it then has the age that State tells.
func (s *Shared) service() (*Service, error) { panic("pending") }

// The calls of the engine, as those of Service. Out of reach of the store they answer within 2 s: a new pool or address is
// refused with ErrAway, unless the headroom has one; a release succeeds and is queued.

func (s *Shared) RequestPool(ctx context.Context, req PoolRequest) (PoolGrant, error) {
	panic("pending")
}
func (s *Shared) ReleasePool(ctx context.Context, pool ID) error { panic("pending") }
func (s *Shared) RequestAddress(ctx context.Context, req AddressRequest) (netip.Prefix, error) {
	panic("pending")
}
func (s *Shared) ReleaseAddress(ctx context.Context, pool ID, addr netip.Addr) error {
	panic("pending")
}

// Edit makes edits in the shared store, after what waits was delivered.
func (s *Shared) Edit(ctx context.Context, opt EditOptions, edits ...Edit) (Outcome, error) {
	panic("pending")
}

// State tells how it stands. It never waits.
func (s *Shared) State() SharedState { panic("pending") }
