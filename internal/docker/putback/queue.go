package putback

import (
	"net/netip"
	"slices"
	"time"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// place is an address in its space, where it is unique.
type place struct {
	space string
	addr  netip.Addr
}

// attachment is a container on one network that is to be moved.
type attachment struct {
	docker.Astray // for its first address
	has, homes    []netip.Addr
	reserved      bool // all homes are reserved
	off           *note
	cut           time.Time // when it was disconnected
}

// queue holds the attachments to move, each after those that have its addresses.
type queue struct {
	attachments []*attachment
	stuck       map[place]bool // taken addresses whose holders do not move
}

// queueOf returns the attachments of the containers that may move. If several claim an address, a reservation comes
// first, then the first in the list.
func (k *Worker) queueOf(all []docker.Astray, deploys []ipam.DeployLock) *queue {
	q := &queue{stuck: map[place]bool{}}
	at, taken := map[string]*attachment{}, map[place]bool{}
	for _, reserved := range []bool{true, false} {
		for _, a := range all {
			home := place{a.Space, a.Home}
			if _, twice := taken[home]; twice || a.Reserved != reserved || !k.due(a, deploys) {
				continue
			}
			taken[home] = a.Taken != ""
			s := at[a.ID+a.Network]
			if s == nil {
				s = &attachment{Astray: a, reserved: true}
				at[a.ID+a.Network] = s
				q.attachments = append(q.attachments, s)
			}
			s.has, s.homes, s.reserved = append(s.has, a.Has), append(s.homes, a.Home), s.reserved && a.Reserved
		}
	}
	leave := q.held()
	for home, is := range taken {
		q.stuck[home] = is && leave[home] == nil
	}
	q.settle()
	return q
}

// held maps the addresses of connected containers to their attachments.
func (q *queue) held() map[place]*attachment {
	held := map[place]*attachment{}
	for _, s := range q.attachments {
		for _, addr := range s.has {
			if s.off == nil {
				held[place{s.Space, addr}] = s
			}
		}
	}
	return held
}

// blocker returns an attachment that has one of s's own addresses, or nil.
func (s *attachment) blocker(held map[place]*attachment) *attachment {
	for _, home := range s.homes {
		if by := held[place{s.Space, home}]; by != nil && by != s {
			return by
		}
	}
	return nil
}

// ready returns the attachments whose own addresses are free.
func (q *queue) ready() (ready []*attachment) {
	held := q.held()
	for _, s := range q.attachments {
		if s.blocker(held) == nil {
			ready = append(ready, s)
		}
	}
	return ready
}

// inRing returns an attachment of a ring. Call it only if no attachment is ready.
func (q *queue) inRing() *attachment {
	held, seen := q.held(), map[*attachment]bool{}
	s := q.attachments[0]
	for ; !seen[s]; s = s.blocker(held) {
		seen[s] = true
	}
	return s
}

// leave removes the attachments that were moved or could not be.
func (q *queue) leave(some []*attachment) {
	q.attachments = slices.DeleteFunc(q.attachments, func(s *attachment) bool { return slices.Contains(some, s) })
	for _, s := range some {
		if s.off == nil {
			q.stays(s)
		}
	}
	q.settle()
}

func (q *queue) stays(s *attachment) {
	for _, addr := range s.has {
		q.stuck[place{s.Space, addr}] = true
	}
}

// settle removes connected attachments whose address stays taken, because a move would not help them. A disconnected
// one stays, because it must be reconnected with any address.
func (q *queue) settle() {
	for again := true; again; {
		again = false
		q.attachments = slices.DeleteFunc(q.attachments, func(s *attachment) bool {
			out := s.off == nil &&
				slices.ContainsFunc(s.homes, func(a netip.Addr) bool { return q.stuck[place{s.Space, a}] })
			if out {
				q.stays(s)
				again = true
			}
			return out
		})
	}
}
