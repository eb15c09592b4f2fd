package cluster

import (
	"cmp"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// State returns the current state. It never waits.
func (s *Shared) State() ipam.SharedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := ipam.SharedState{Err: s.fault, Since: s.since, Mark: s.mark, Waiting: len(s.outbox)}
	if svc := s.svc; svc != nil {
		r := s.reach()
		st.Fresh, st.Host = r.Fresh, hostState(svc.Ledger)
		if r.Err != nil {
			st.Err, st.Since = r.Err, r.Since
			if untrusted(r.Err) && !s.doubted.IsZero() {
				st.Since = s.doubted
			}
		} else if mark := svc.Ledger.BeingMended(); mark != nil {
			st.Err, st.Since = mark, mark.Since
		}
	}
	if st.Err == nil {
		st.Since = time.Time{}
	}
	if len(s.outbox) > 0 {
		st.Oldest = s.outbox[0].Since
	}
	for _, hr := range s.headroom {
		h := ipam.HeadroomState{Space: hr.Space, Network: hr.Network, Subnet: hr.CIDR, Wanted: hr.Wanted}
		for _, sp := range hr.addrs {
			if sp.free() {
				h.Claimed++
				continue
			}
			h.Used++
			if since := sp.Holder.Since; st.Oldest.IsZero() || since.Before(st.Oldest) {
				st.Oldest = since
			}
		}
		st.Waiting += h.Used
		st.Headroom = append(st.Headroom, h)
	}
	slices.SortFunc(st.Headroom, func(a, b ipam.HeadroomState) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Network, b.Network),
			a.Subnet.Addr().Compare(b.Subnet.Addr()))
	})
	return st
}

// hostState returns the state of this host in the cluster, as far as known.
func hostState(s *ledger.Ledger) ipam.HostState {
	if h := s.KnownHost(s.Host()); h != nil {
		return h.State
	}
	return ""
}

// speaks returns a refusal if this daemon no longer acts for its host, as far as known here.
func speaks(s *ledger.Ledger) error {
	return ledger.SpeaksFor(s.Member(), s.Host(), s.KnownHost(s.Host()))
}
