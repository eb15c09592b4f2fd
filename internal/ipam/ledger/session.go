package ledger

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
)

// edges is this daemon's knowledge of the edges in the cluster: the one that it serves, and since when other hosts'
// sessions are gone.
type edges struct {
	mu    sync.Mutex
	told  string        // the session of the edge that gets this daemon's news; empty: none
	heard time.Duration // when that edge last reported
	gone  map[string]absence
}

// absence is a host's session that ended.
type absence struct {
	session string        // from the host's record; empty: it has none
	since   time.Duration // on this host's clock (moment), when the absence was first seen
}

// sessionKey is the key of the session of a host's edge.
func sessionKey(host string) []byte { return append([]byte{SessionKeys}, host...) }

// EdgeSession reads the session of a host's edge, or nil. The change commits only if the session is still the same.
func (c *Change) EdgeSession(host string) (*ipam.EdgeSession, error) {
	return ReadKnown(c.tx, sessionKey(host), c.index.elastic.sessions[host], "the edge session of host", text(host))
}

// SetEdgeSession writes the session of a host's edge, or removes it if one is nil.
func (c *Change) SetEdgeSession(host string, one *ipam.EdgeSession) error {
	return writeCached(c, c.index.elastic.sessions, host, sessionKey(host), one)
}

// EdgeSession returns the recorded session of a host's edge, or nil.
func (ix *Index) EdgeSession(host string) *ipam.EdgeSession { return ix.elastic.sessions[host].Value }

// edgeSessions yields the recorded sessions of edges by host, in no order.
func (ix *Index) edgeSessions() iter.Seq2[string, *ipam.EdgeSession] {
	return values(ix.elastic.sessions)
}

// ReadApplied reads an edge's report about an address, or nil.
func (c *Change) ReadApplied(at AppliedAt) (*ipam.Applied, error) {
	return ReadKnown(c.tx, AppliedKey(at), c.index.elastic.applied[at], "the edge report about", at.Address)
}

// SinceBoot is the time since the host's start, on the clock that its edge reads.
func (s *Ledger) SinceBoot() time.Duration { return s.moment() }

// ConnectEdge notes that the edge of a session gets this daemon's news from now on. It replaces the edge before it.
func (s *Ledger) ConnectEdge(session string) {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	s.edges.told, s.edges.heard = session, s.moment()
}

// DisconnectEdge notes that the edge of a session gets no more news.
func (s *Ledger) DisconnectEdge(session string) {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	if s.edges.told == session {
		s.edges.told = ""
	}
}

// ConnectedEdge is the session of the edge that gets this daemon's news, or empty.
func (s *Ledger) ConnectedEdge() string {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	return s.edges.told
}

// HeardEdge notes that the edge of a session has reported.
func (s *Ledger) HeardEdge(session string) {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	if s.edges.told == session {
		s.edges.heard = s.moment()
	}
}

// EdgeSilent is the time since the last report of the edge that gets this daemon's news.
func (s *Ledger) EdgeSilent() time.Duration {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	return s.moment() - s.edges.heard
}

// SessionGone returns for how long this daemon has known that a host's recorded session ended; one is nil without a
// record. It returns false if the session is valid, or if its end is noted by this call.
func (s *Ledger) SessionGone(host string, one *ipam.EdgeSession) (time.Duration, bool) {
	session := ""
	if one != nil {
		session = one.Session
	}
	held, now := s.Shared().Held()[host], s.moment()
	e := &s.edges
	e.mu.Lock()
	defer e.mu.Unlock()
	if session != "" && held == session {
		delete(e.gone, host)
		return 0, false
	}
	if known, there := e.gone[host]; there && known.session == session {
		return now - known.since, true
	}
	if e.gone == nil {
		e.gone = map[string]absence{}
	}
	e.gone[host] = absence{session, now}
	return 0, false
}

// EdgeHosts lists the hosts whose edges have a valid session, by name.
func (s *Ledger) EdgeHosts() []string {
	held, hosts := s.Shared().Held(), map[string]bool{}
	s.Read(func(ix *Index) {
		for host, one := range ix.edgeSessions() {
			if held[host] == one.Session {
				hosts[host] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(hosts))
}
