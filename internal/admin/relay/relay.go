// Package relay passes the daemon's questions to the edge of its host, which alone speaks on the LANs, and returns the
// answers. A question without an edge fails at once. If the edge stops or disconnects, the question fails when its time
// is over. An answer always matches its question, even after a restart of either process.
//
// Ask sends a question to the edge that connected last, and Answer completes it (relay.go). A connected edge is a link
// (link.go), from which the admin API streams the questions.
package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"berth/internal/ipam"
)

const (
	// atOnce is the maximum number of open questions. Each start of a container and each renewal has one. An engine
	// starts far fewer at a time.
	atOnce = 1024
	// comes is the maximum wait for an edge to connect. An edge that is being replaced, or that was disconnected by the
	// daemon's restart, comes within that time. A refusal must come within a second.
	comes = 600 * time.Millisecond
	// longer is added to a question's time limit for the answer of a connected edge.
	longer = time.Second
)

// Relay passes questions to the edge of this host. Use New, because the zero Relay is not usable.
type Relay struct {
	mu    sync.Mutex
	next  uint64
	links []*link // connected edges, the last one at the end
	asked map[uint64]*question
	came  chan struct{} // closed and replaced when an edge connects
}

// question is an open question.
type question struct {
	to     *link
	answer chan ipam.LANAnswer // has one place
}

// New returns a Relay without an edge. Its ids begin at a random number, so an answer to an earlier run of the daemon
// matches no question.
func New() *Relay {
	return &Relay{next: rand.Uint64() >> 12, asked: map[uint64]*question{}, came: make(chan struct{})}
}

// Ask is an ipam.AskLAN.
func (r *Relay) Ask(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	to, refused, err := r.find(ctx)
	if err != nil || refused != nil {
		return failed(ask, refused), err
	}
	q := &question{to: to, answer: make(chan ipam.LANAnswer, 1)}
	ask.ID = r.add(q)
	defer r.end(ask.ID)
	allowed := time.NewTimer(time.Duration(ask.Within) + longer)
	defer allowed.Stop()
	select {
	case to.asks <- ask:
	case <-to.gone:
		return failed(ask, errWent), nil
	case <-allowed.C:
		return failed(ask, errStopped), nil
	case <-ctx.Done():
		return ipam.LANAnswer{}, ctx.Err()
	}
	select {
	case a := <-q.answer:
		return a, nil
	case <-to.gone:
		return answeredLast(q, ask), nil
	case <-allowed.C:
		return failed(ask, errStopped), nil
	case <-ctx.Done():
		return ipam.LANAnswer{}, ctx.Err()
	}
}

// answeredLast returns the answer that an edge gave before it disconnected.
func answeredLast(q *question, ask ipam.LANAsk) ipam.LANAnswer {
	select {
	case a := <-q.answer:
		return a
	default:
		return failed(ask, errWent)
	}
}

// find returns the edge for a question. If none is connected, it waits a moment for one.
func (r *Relay) find(ctx context.Context) (to *link, refused, err error) {
	timer := time.NewTimer(comes)
	defer timer.Stop()
	for {
		to, came, busy := r.last()
		switch {
		case busy:
			return nil, errBusy, nil
		case to != nil:
			return to, nil, nil
		}
		select {
		case <-came:
		case <-timer.C:
			return nil, errNone, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// last returns the edge that connected last. If an edge is replaced by another, that one stays.
func (r *Relay) last() (to *link, came <-chan struct{}, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.links) > 0 {
		to = r.links[len(r.links)-1]
	}
	return to, r.came, len(r.asked) >= atOnce
}

func (r *Relay) add(q *question) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	r.asked[r.next] = q
	return r.next
}

func (r *Relay) end(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, id)
}

// Answer passes an answer to the caller that waits for it. It returns false if nobody waits any more.
func (r *Relay) Answer(a ipam.LANAnswer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.asked[a.ID]
	if q == nil {
		return false
	}
	delete(r.asked, a.ID) // a second answer is ignored
	q.answer <- a
	return true
}

// refusal is the reason why no edge answers.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

const (
	errNone = refusal("no edge is connected on this host, and only an edge can use its LANs: start berth edge " +
		"(systemctl enable --now berth-edge.service)")
	errWent    = refusal("the edge of this host disconnected before it answered")
	errStopped = refusal("the edge of this host is connected, but does not answer: it is stopped, or very busy")
	errBusy    = refusal("berth edge on this host is already handling too many DHCP requests and probes; try " +
		"again in a moment")
)

// failed returns the answer for a question that no edge answered.
func failed(ask ipam.LANAsk, why error) ipam.LANAnswer {
	if why == nil {
		return ipam.LANAnswer{}
	}
	text := fmt.Sprintf("cannot send a request to the LAN on %s: %v", ask.Parent, why)
	if _, err := net.InterfaceByName(ask.Parent); err != nil && errors.Is(why, errNone) {
		text += fmt.Sprintf("; and this host has no interface %s (`ip link` lists its interfaces)", ask.Parent)
	}
	return ipam.LANAnswer{ID: ask.ID, Failure: ipam.LANNoEdge, Error: text}
}
