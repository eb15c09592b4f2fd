package ipam

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// HostState says what a host of a cluster may do.
type HostState string

// The states. A host that takes part as usual has none.
const (
	HostDraining HostState = "draining" // it takes no new address, and keeps what it has
	HostLeaving  HostState = "leaving"  // it was asked to go, and gives everything back as soon as it hears of it
	HostRemoved  HostState = "removed"  // it is refused until it is admitted
)

// maxHosts is how many hosts share a store at most. It is the distance between two event ids of one host, in microseconds, so
// that no two hosts make the same.
const maxHosts = 256

// Host is a host's record in a shared store.
type Host struct {
	Name    string    `json:"name"`
	ID      ID        `json:"id"`
	Session ID        `json:"session"` // of the daemon that speaks for it
	Slot    int       `json:"slot"`    // less than maxHosts; no two hosts that are not removed have the same
	State   HostState `json:"state,omitempty"`
	Joined  time.Time `json:"joined"`
	Started time.Time `json:"started"` // the daemon
	Version string    `json:"version,omitempty"`
}

// HostInfo is a host as it is shown, with what `berth host rm` would free.
type HostInfo struct {
	Host
	Present  bool `json:"present"` // its daemon is there at this moment
	Self     bool `json:"self"`    // it is the host that answers
	Pools    int  `json:"pools"`   // Docker networks' holds on subnets
	Leases   int  `json:"leases"`  // addresses in use through them, headroom not counted
	Headroom int  `json:"headroom"`

	First []netip.Addr `json:"first,omitempty"` // of the leases, so that a person knows which they are
}

// shownAddresses is how many HostInfo names.
const shownAddresses = 10

var errAlone = &refusal{ErrAlone, "this Berth has a store of its own (--store bolt): it knows no other hosts"}

// Hosts lists the hosts of the cluster by name, those that were removed last. Where the store is the host's own it is refused
// with ErrAlone.
func (s *Service) Hosts(ctx context.Context) (all []HostInfo, err error) {
	if s.member == nil {
		return nil, errAlone
	}
	held := map[ID]counted{}
	for l, err := range s.Leases(ctx, LeaseFilter{}) {
		if err != nil {
			return nil, err
		}
		n := held[l.Pool]
		n.count(&l)
		held[l.Pool] = n
	}
	present := s.shared().Present()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.ix.hosts {
		h := HostInfo{Host: *known.value, Self: known.value.ID == s.member.Host}
		_, h.Present = present[h.Name]
		for id, at := range s.ix.attachments {
			if at.value.Host == h.Name && !at.value.Ended {
				h.Pools++
				h.Leases += held[id].leases
				h.Headroom += held[id].headroom
				h.First = append(h.First, held[id].first...)
			}
		}
		slices.SortFunc(h.First, netip.Addr.Compare)
		h.First = h.First[:min(len(h.First), shownAddresses)]
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b HostInfo) int {
		return cmp.Or(boolCompare(a.State == HostRemoved, b.State == HostRemoved), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// counted is what is held through one attachment.
type counted struct {
	leases, headroom int
	first            []netip.Addr // of the leases, up to shownAddresses
}

func (n *counted) count(l *LeaseInfo) {
	switch l.Kind {
	case Headroom:
		n.headroom++
	case Gateway:
	default:
		n.leases++
		if len(n.first) < shownAddresses {
			n.first = append(n.first, l.Address)
		}
	}
}

// boolCompare orders false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
