package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// edgeOf is the edge of a host: it says twice a second that it is there, and reports what the test has it.
type edgeOf struct {
	t      *testing.T
	s      *service.Service
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	session  string
	mappings map[netip.Addr]ipam.EdgeMapping
	sent     time.Duration
	whole    bool
	err      error // by which its news ended
}

// listen begins one.
func listen(t *testing.T, s *service.Service) *edgeOf {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := &edgeOf{t: t, s: s, cancel: cancel, ended: make(chan struct{}), mappings: map[netip.Addr]ipam.EdgeMapping{}}
	go func() {
		defer close(e.ended)
		for news, err := range s.EdgeNews(ctx, false) {
			e.take(news, err)
		}
	}()
	beat := make(chan struct{})
	go func() {
		defer close(beat)
		for ctx.Err() == nil {
			e.mu.Lock()
			session := e.session
			e.mu.Unlock()
			if session != "" {
				_ = s.ReportEdge(ctx, ipam.EdgeReport{Session: session})
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { cancel(); <-e.ended; <-beat })
	e.until("the whole", func() bool { return e.whole || e.err != nil })
	return e
}

func (e *edgeOf) take(news ipam.EdgeNews, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err = err; err != nil {
		return
	}
	if news.Whole {
		e.whole, e.session = true, news.Session
		clear(e.mappings)
	}
	e.sent = max(e.sent, news.Sent)
	for _, addr := range news.Removed {
		delete(e.mappings, addr)
	}
	for _, m := range news.Set {
		e.mappings[m.Elastic] = m
	}
}

// end has the edge end, and with it the session.
func (e *edgeOf) end() { e.cancel(); <-e.ended }

// until waits for something that is guarded by the lock.
func (e *edgeOf) until(what string, is func() bool) {
	e.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		e.mu.Lock()
		done, state := is(), fmt.Sprintf("%v %v", e.mappings, e.err)
		e.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("%s: the edge of %s has been told %s", what, e.s.Ledger.Host(), state)
		}
	}
}

// has waits until it is told of an address as leading in, and returns how.
func (e *edgeOf) has(addr netip.Addr) (m ipam.EdgeMapping) {
	e.t.Helper()
	e.until("granted", func() bool {
		m = e.mappings[addr]
		return m.Elastic == addr && !m.Staged
	})
	return m
}

// stages waits until it is told of the outgoing half of an address alone.
func (e *edgeOf) stages(addr netip.Addr) {
	e.t.Helper()
	e.until("staged", func() bool { return e.mappings[addr].Staged })
}

// lacks waits until it is told nothing of an address.
func (e *edgeOf) lacks(addr netip.Addr) {
	e.t.Helper()
	e.until("not told", func() bool { _, there := e.mappings[addr]; return !there })
}

// never fails where it is told of an address as leading in, in a time in which much can happen.
func (e *edgeOf) never(addr netip.Addr) {
	e.t.Helper()
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); {
		e.mu.Lock()
		m, there := e.mappings[addr]
		e.mu.Unlock()
		if there && !m.Staged {
			e.t.Fatalf("the edge of %s is told that it may have %s", e.s.Ledger.Host(), addr)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// reports says something in the name of its session.
func (e *edgeOf) reports(r ipam.EdgeReport) error {
	e.mu.Lock()
	r.Session = e.session
	e.mu.Unlock()
	return e.s.ReportEdge(e.t.Context(), r)
}

// applies says that all is in force that it was told.
func (e *edgeOf) applies() {
	e.t.Helper()
	e.mu.Lock()
	all := maps.Clone(e.mappings)
	e.mu.Unlock()
	var r ipam.EdgeReport
	for addr, m := range all {
		r.Applied = append(r.Applied, ipam.EdgeApplied{Address: addr, Association: m.Association, Guest: m.Guest,
			Grant: m.Grant, Staged: m.Staged})
	}
	fine(e.t, e.reports(r))
}

// withdraws says that a mapping is in force no more.
func (e *edgeOf) withdraws(m ipam.EdgeMapping) {
	e.t.Helper()
	err := e.reports(ipam.EdgeReport{Withdrawn: []ipam.EdgeWithdrawn{{Address: m.Elastic, Grant: m.Grant}}})
	fine(e.t, err)
}
