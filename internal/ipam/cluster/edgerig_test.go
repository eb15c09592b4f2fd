package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// edgeOf is the edge of a host. It reports twice a second that it is there, and otherwise what the test chooses.
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
	err      error              // the error that ended its news
	had      []ipam.EdgeMapping // in a script: the mappings of the address, as granted
	before   string             // in a script: the session of the edge before this one
}

// listen starts an edge that listens once.
func listen(t *testing.T, s *service.Service) *edgeOf {
	t.Helper()
	return newEdge(t, s, false)
}

// listenOn starts an edge that listens again when its session has ended, as the real one does
// (internal/edge/follow).
func listenOn(t *testing.T, s *service.Service) *edgeOf {
	t.Helper()
	return newEdge(t, s, true)
}

func newEdge(t *testing.T, s *service.Service, again bool) *edgeOf {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := &edgeOf{t: t, s: s, cancel: cancel, ended: make(chan struct{}), mappings: map[netip.Addr]ipam.EdgeMapping{}}
	go func() {
		defer close(e.ended)
		for on := true; on; on = again && ctx.Err() == nil {
			for news, err := range s.EdgeNews(ctx, false) {
				e.take(news, err)
			}
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
	e.until("the whole", func() bool { return e.whole || !again && e.err != nil })
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

// end ends the edge, and with it the session.
func (e *edgeOf) end() { e.cancel(); <-e.ended }

// until waits for a condition on what the lock guards.
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

// has waits until the edge gets an address whose traffic leads in, and returns its mapping.
func (e *edgeOf) has(addr netip.Addr) (m ipam.EdgeMapping) {
	e.t.Helper()
	e.until("granted", func() bool {
		m = e.mappings[addr]
		return m.Elastic == addr && !m.Staged
	})
	return m
}

// stages waits until the edge gets only the outgoing half of an address.
func (e *edgeOf) stages(addr netip.Addr) {
	e.t.Helper()
	e.until("staged", func() bool { return e.mappings[addr].Staged })
}

// lacks waits until the edge has no mapping of an address.
func (e *edgeOf) lacks(addr netip.Addr) {
	e.t.Helper()
	e.until("not told", func() bool { _, there := e.mappings[addr]; return !there })
}

// never fails if the edge gets an address whose traffic leads in, within some time.
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

// reports sends a report in the edge's session.
func (e *edgeOf) reports(r ipam.EdgeReport) error {
	e.mu.Lock()
	r.Session = e.session
	e.mu.Unlock()
	return e.s.ReportEdge(e.t.Context(), r)
}

// says reports the current state, in the next session if this one ends meanwhile.
func (e *edgeOf) says(now func() ipam.EdgeReport) {
	e.t.Helper()
	var err error
	e.until("heard", func() bool {
		r := now()
		r.Session = e.session
		err = e.s.ReportEdge(e.t.Context(), r)
		return !errors.Is(err, ipam.ErrChanged)
	})
	fine(e.t, err)
}

// applies reports that all mappings of the edge are in force.
func (e *edgeOf) applies() {
	e.t.Helper()
	e.says(func() (r ipam.EdgeReport) {
		for addr, m := range e.mappings {
			r.Applied = append(r.Applied, ipam.EdgeApplied{Address: addr, Association: m.Association, Guest: m.Guest,
				Grant: m.Grant, Staged: m.Staged})
		}
		return r
	})
}

// withdraws reports that a mapping is no longer in force.
func (e *edgeOf) withdraws(m ipam.EdgeMapping) {
	e.t.Helper()
	e.says(func() ipam.EdgeReport {
		return ipam.EdgeReport{Withdrawn: []ipam.EdgeWithdrawn{{Address: m.Elastic, Grant: m.Grant}}}
	})
}

// elasticAddr is the elastic address of the scripts.
var elasticAddr = netip.MustParseAddr("203.0.113.10")

// elastic makes a range of one address, for the cluster or for a host, and allocates the address.
func (st *stage) elastic(h *sharingHost, of string) {
	st.t.Helper()
	add := &ipam.AddElasticRange{Range: mustRange(st.t, elasticAddr.String())}
	if of == string(ipam.CutKeep) {
		add.OnCut = of
	} else {
		add.Host = of
	}
	h.edit(&ipam.ModifyNetwork{Network: "lan", Elastic: new("on")}, add, &ipam.AllocateElastic{Host: add.Host})
}

// grants writes the store's record of the address. It is in force for host a without an end or, if other is
// given, another host has a grant later than that of host a.
func (st *stage) grants(h *sharingHost, other string) {
	st.t.Helper()
	fine(st.t, h.svc.Ledger.Update(st.t.Context(), func(c *ledger.Change) error {
		at := *c.Index().Applied(ledger.AppliedAt{Host: "a", Address: elasticAddr})
		if at.Untimed, at.Grant = true, 0; other != "" {
			at.Host, at.Untimed, at.Grant = other, false, c.NextID()
		}
		return c.SetApplied(ledger.AppliedAt{Host: at.Host, Address: elasticAddr}, &at)
	}))
}

// edge is a step of a host's edge:
//
//	edge                  starts an edge that listens
//	edge has              waits until the address is granted: "new" if the grant is new, else "same"
//	edge stages, lacks    waits until only the outgoing half is wanted; until nothing is wanted
//	edge never            gets no grant of the address for some time
//	edge applies, withdraws [first], reapplies, whole
//	                      reports all as in force; its last or first grant as withdrawn; its last grant as in force;
//	                      nothing else as in force
//	edge late             reports whole in the session of the edge before it
//	edge ends, over       ends the edge; waits until its news have ended
func (st *stage) edge(h *sharingHost, what, which string) (string, error) {
	st.t.Helper()
	e := st.edges[h.name]
	switch what {
	case "":
		st.edges[h.name] = listen(st.t, h.svc)
		if e != nil {
			e.mu.Lock()
			st.edges[h.name].before = e.session
			e.mu.Unlock()
		}
		e = st.edges[h.name]
		e.mu.Lock()
		defer e.mu.Unlock()
		return "", e.err
	case "has":
		e.had = append(e.had, e.has(elasticAddr))
		if n := len(e.had); n > 1 && e.had[n-2].Grant == e.had[n-1].Grant {
			return "same", nil
		}
		return "new", nil
	case "stages":
		e.stages(elasticAddr)
	case "lacks":
		e.lacks(elasticAddr)
	case "never":
		e.never(elasticAddr)
	case "applies":
		e.applies()
	case "withdraws":
		e.withdraws(e.had[map[bool]int{true: 0, false: len(e.had) - 1}[which == "first"]])
	case "reapplies":
		m := e.had[len(e.had)-1]
		return "", e.reports(ipam.EdgeReport{Applied: []ipam.EdgeApplied{
			{Address: m.Elastic, Association: m.Association, Guest: m.Guest, Grant: m.Grant}}})
	case "whole":
		return "", e.reports(ipam.EdgeReport{Whole: true})
	case "late":
		return "", h.svc.ReportEdge(st.t.Context(), ipam.EdgeReport{Whole: true, Session: e.before})
	case "ends":
		e.end()
	case "over":
		e.until("its news end", func() bool { return e.err != nil })
	default:
		st.t.Fatalf("an edge knows no %q", what)
	}
	return "", nil
}
