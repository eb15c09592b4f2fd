package ipam

import (
	"cmp"
	"net/netip"
	"slices"
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

// State tells how it stands. It never waits.
func (s *Shared) State() SharedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := SharedState{Err: s.fault, Since: s.since, Mark: s.mark, Waiting: len(s.outbox)}
	if svc := s.svc; svc != nil {
		r := s.reach()
		st.Fresh, st.Host = r.Fresh, svc.hostState()
		if r.Err != nil {
			st.Err, st.Since = r.Err, r.Since
		}
	}
	if st.Err == nil {
		st.Since = time.Time{}
	}
	if len(s.outbox) > 0 {
		st.Oldest = s.outbox[0].Since
	}
	for _, stock := range s.stocks {
		h := HeadroomState{Space: stock.Space, Network: stock.Network, Subnet: stock.CIDR, Wanted: stock.Wanted}
		for _, sp := range stock.spares {
			if sp.free() {
				h.Claimed++
				continue
			}
			h.Used++
			if since := sp.Use.Since; st.Oldest.IsZero() || since.Before(st.Oldest) {
				st.Oldest = since
			}
		}
		st.Waiting += h.Used
		st.Headroom = append(st.Headroom, h)
	}
	slices.SortFunc(st.Headroom, func(a, b HeadroomState) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Network, b.Network), a.Subnet.Addr().Compare(b.Subnet.Addr()))
	})
	return st
}

// hostState is that of this host in the cluster, as far as is known.
func (s *Service) hostState() HostState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.ix.hosts[s.host].value; h != nil {
		return h.State
	}
	return ""
}

// speaks refuses this daemon where it does not speak for its host any more, as far as is known here.
func (s *Service) speaks() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.member.speaksFor(s.host, s.ix.hosts[s.host].value)
}
