package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// outOfReach is the refusal of a request that needs the shared store.
type outOfReach struct {
	Why   error
	Since time.Time
}

func (e *outOfReach) Error() string {
	const form = "2006-01-02 15:04:05 MST"
	why := strings.TrimPrefix(e.Why.Error(), store.ErrAway.Error()+": ")
	if mark := new(ipam.Mending); errors.As(e.Why, &mark) {
		return fmt.Sprintf("the shared store went back to an earlier state, so Berth has given and changed nothing "+
			"in the cluster's spaces since %s: %s. Containers keep their addresses, Berth sends their releases "+
			"later, and networks of the space local work as before", e.Since.Format(form), mark)
	}
	if untrusted(e.Why) {
		return fmt.Sprintf("Berth has not trusted the shared store since %s (%s), so it gives and changes nothing "+
			"in the cluster's spaces. "+
			"Containers keep their addresses, Berth sends their releases later, and networks of the space local "+
			"work as before", e.Since.Format(form), why)
	}
	state := "has been out of reach"
	if errors.Is(e.Why, store.ErrNoSpace) {
		state = "has refused writes"
	}
	return fmt.Sprintf("the shared store %s since %s (%s), so the cluster's spaces give no new addresses. "+
		"Containers keep their addresses, Berth sends their releases later, and networks of the space local work as "+
		"before. Check etcd and the network to it", state, e.Since.Format(form), why)
}

// Helps returns the advice for the state of the store. A store that is being mended has its own advice.
func (e *outOfReach) Helps() []ipam.Advice {
	switch mark := new(ipam.Mending); {
	case errors.As(e.Why, &mark):
		return nil
	case untrusted(e.Why):
		return []ipam.Advice{ipam.Advise(ipam.DoMendStore)}
	}
	return []ipam.Advice{ipam.Advise(ipam.DoShowStatus)}
}

func (e *outOfReach) Unwrap() []error { return []error{ipam.ErrAway, e.Why} }

// untrusted reports that the store is reachable but went back to an earlier state. Nothing may be leased, because
// others may have leased it already.
func untrusted(err error) bool { return errors.Is(err, store.ErrBack) }

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

// A restarted daemon detects again that the shared store went back, but did not see when that happened. So the host's
// own store has the time, from the detection until the store is trusted again.

func doubtKey() []byte { return []byte{recallKeys, 's'} }

// readDoubted reads since when the shared store is not trusted; zero: it is trusted.
func readDoubted(tx store.Tx) (since time.Time, err error) {
	raw, err := tx.Get(doubtKey())
	if err != nil {
		return since, err
	}
	if raw == nil {
		return since, nil
	}
	return since, ipam.DecodeJSON("the time when Berth stopped trusting the shared store", raw, &since)
}

// keepDoubt records that the store is not trusted, or with a nil error that it is. If the write fails, the next look
// repeats it. Until then only a restarted daemon would miss the time.
func (s *Shared) keepDoubt(ctx context.Context, why error) {
	s.mu.Lock()
	before := s.doubted
	s.mu.Unlock()
	var since time.Time
	n := note{key: doubtKey()}
	var err error
	switch {
	case why != nil && !untrusted(why), (why == nil) == before.IsZero():
		return
	case why != nil:
		since = s.now().UTC()
		n, err = noteJSON(n.key, since)
	}
	if err == nil {
		err = s.keepNotes(ctx, []note{n})
	}
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = since
}

// doubtedSince returns the time for a refusal. For a store that is not trusted, it can be before the daemon's start.
func (s *Shared) doubtedSince(why error, since time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if untrusted(why) && !s.doubted.IsZero() {
		return s.doubted
	}
	return since
}
