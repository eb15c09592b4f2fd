package ipam

import (
	"net/netip"
	"time"
)

// SharedState is how it stands with the shared store and with what this host keeps meanwhile, for `berth status`.
type SharedState struct {
	Err      error           // why the store is out of reach; nil: it is within
	Since    time.Time       // when that began
	Fresh    time.Time       // what is read of it is all that there was at that time; zero: it was never read
	Mark     [4]byte         // of the cluster
	Host     HostState       // of this host, as far as is known
	Waiting  int             // releases, and uses of headroom, that the store has not heard of yet
	Oldest   time.Time       // since when the first of them waits; zero: none does
	Headroom []HeadroomState // by space, network and subnet
}

// HeadroomState is this host's headroom of one Docker network on a subnet.
type HeadroomState struct {
	Space   string       `json:"space"`
	Network string       `json:"network"`
	Subnet  netip.Prefix `json:"subnet"`
	Wanted  int          `json:"wanted"`
	Claimed int          `json:"claimed"` // those that can be given out
	Used    int          `json:"used"`    // given out, and the store has not heard of it yet
}
