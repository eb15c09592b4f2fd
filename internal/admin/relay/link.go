package relay

import (
	"context"
	"iter"
	"slices"

	"berth/internal/ipam"
)

// link is a connected edge.
type link struct {
	asks chan ipam.LANAsk
	gone chan struct{} // closed when it disconnects
}

// Asks yields the questions to an edge that has just connected, until ctx ends. The edge is connected while the caller
// iterates.
func (r *Relay) Asks(ctx context.Context) iter.Seq[ipam.LANAsk] {
	return func(yield func(ipam.LANAsk) bool) {
		l := r.connect()
		defer r.leave(l)
		for {
			select {
			case ask := <-l.asks:
				if !yield(ask) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (r *Relay) connect() *link {
	l := &link{asks: make(chan ipam.LANAsk), gone: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = append(r.links, l)
	close(r.came)
	r.came = make(chan struct{})
	return l
}

func (r *Relay) leave(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = slices.DeleteFunc(r.links, func(other *link) bool { return other == l })
	close(l.gone)
}
