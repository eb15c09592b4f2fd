package ledger

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
)

// edges is what this daemon knows of the edges of hosts that share the store: of the one that it tells what to map, and
// since when sessions of others are gone.
type edges struct {
	mu    sync.Mutex
	told  string        // the session of the edge that is told; empty: none is
	heard time.Duration // when that one has said something last
	gone  map[string]absence
}

// absence is that of a session.
type absence struct {
	session string        // that of the host's record; empty: it has none
	since   time.Duration // this host's moment in which it was seen first
}

// sessionKey is that of the session of a host's edge.
func sessionKey(host string) []byte { return append([]byte{SessionKeys}, host...) }

// EdgeSession reads the session of a host's edge as the change finds it; nil where it has none. Its commit holds to
// that.
func (c *Change) EdgeSession(host string) (*ipam.EdgeSession, error) {
	raw, err := c.tx.Get(sessionKey(host))
	if err != nil || raw == nil {
		return nil, err
	}
	if known := c.index.elastic.sessions[host]; known.Is(raw) {
		return known.Value, nil
	}
	one := new(ipam.EdgeSession)
	return one, ipam.DecodeJSON("the edge session of host "+host, raw, one)
}

// SetEdgeSession writes the session of a host's edge, or forgets it where one is nil.
func (c *Change) SetEdgeSession(host string, one *ipam.EdgeSession) error {
	return setElastic(c, c.index.elastic.sessions, host, sessionKey(host), one)
}

// EdgeSession is the session of a host's edge as its record has it; nil where it has none.
func (ix *Index) EdgeSession(host string) *ipam.EdgeSession { return ix.elastic.sessions[host].Value }

// edgeSessions yields the sessions of hosts' edges as their records have them, by host, in no order.
func (ix *Index) edgeSessions() iter.Seq2[string, *ipam.EdgeSession] {
	return values(ix.elastic.sessions)
}

// ReadApplied reads what an edge may have of an address as the change finds it; nil where it has nothing.
func (c *Change) ReadApplied(at AppliedAt) (*ipam.Applied, error) {
	raw, err := c.tx.Get(AppliedKey(at))
	if err != nil || raw == nil {
		return nil, err
	}
	if known := c.index.elastic.applied[at]; known.Is(raw) {
		return known.Value, nil
	}
	a := new(ipam.Applied)
	return a, ipam.DecodeJSON("what is mapped of "+at.Address.String(), raw, a)
}

// NextID draws a number that is greater than all that this host has seen.
func (c *Change) NextID() uint64 { return c.nextID() }

// Moment is the time since the host's start, on the clock that its edge reads.
func (s *Ledger) Moment() time.Duration { return s.moment() }

// TellsEdge notes that an edge is told by a session from now on, and that others are told no more.
func (s *Ledger) TellsEdge(session string) {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	s.edges.told, s.edges.heard = session, s.moment()
}

// TellsEdgeNoMore takes that back.
func (s *Ledger) TellsEdgeNoMore(session string) {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	if s.edges.told == session {
		s.edges.told = ""
	}
}

// ToldEdge is the session by which an edge is told; empty where none is.
func (s *Ledger) ToldEdge() string {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	return s.edges.told
}

// HeardEdge notes that the edge of a session has said something.
func (s *Ledger) HeardEdge(session string) {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	if s.edges.told == session {
		s.edges.heard = s.moment()
	}
}

// EdgeSilent is for how long the edge that is told has said nothing.
func (s *Ledger) EdgeSilent() time.Duration {
	s.edges.mu.Lock()
	defer s.edges.mu.Unlock()
	return s.moment() - s.edges.heard
}

// SessionGone is for how long this daemon has known that the session of a host, as its record has it, stands no more;
// nil is a host without a record. false: it stands, or it was seen to be gone only now.
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

// EdgeHosts are the hosts whose edges have a session that stands, by name.
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
