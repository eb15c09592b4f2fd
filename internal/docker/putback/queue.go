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

// seat is a container on one network that is to be moved.
type seat struct {
	docker.Astray // for its first address
	has, homes    []netip.Addr
	reserved      bool // all homes are reserved
	off           *note
	cut           time.Time // when it was disconnected
}

// queue holds the seats to move, each after those that have its addresses.
type queue struct {
	seats []*seat
	stuck map[place]bool // taken addresses whose holders do not move
}

// queueOf returns the seats of the containers that may move. If several claim an address, a reservation comes first,
// then the first in the list.
func (k *Keeper) queueOf(all []docker.Astray, deploys []ipam.DeployLock) *queue {
	q := &queue{stuck: map[place]bool{}}
	at, taken := map[string]*seat{}, map[place]bool{}
	for _, reserved := range []bool{true, false} {
		for _, a := range all {
			home := place{a.Space, a.Home}
			if _, twice := taken[home]; twice || a.Reserved != reserved || !k.due(a, deploys) {
				continue
			}
			taken[home] = a.Taken != ""
			s := at[a.ID+a.Network]
			if s == nil {
				s = &seat{Astray: a, reserved: true}
				at[a.ID+a.Network] = s
				q.seats = append(q.seats, s)
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

// held maps the addresses of connected containers to their seats.
func (q *queue) held() map[place]*seat {
	held := map[place]*seat{}
	for _, s := range q.seats {
		for _, addr := range s.has {
			if s.off == nil {
				held[place{s.Space, addr}] = s
			}
		}
	}
	return held
}

// blocker returns a seat that has one of s's own addresses, or nil.
func (s *seat) blocker(held map[place]*seat) *seat {
	for _, home := range s.homes {
		if by := held[place{s.Space, home}]; by != nil && by != s {
			return by
		}
	}
	return nil
}

// ready returns the seats whose own addresses are free.
func (q *queue) ready() (ready []*seat) {
	held := q.held()
	for _, s := range q.seats {
		if s.blocker(held) == nil {
			ready = append(ready, s)
		}
	}
	return ready
}

// inRing returns a seat of a ring. Call it only if no seat is ready.
func (q *queue) inRing() *seat {
	held, seen := q.held(), map[*seat]bool{}
	s := q.seats[0]
	for ; !seen[s]; s = s.blocker(held) {
		seen[s] = true
	}
	return s
}

// leave removes the seats that were moved or could not be.
func (q *queue) leave(some []*seat) {
	q.seats = slices.DeleteFunc(q.seats, func(s *seat) bool { return slices.Contains(some, s) })
	for _, s := range some {
		if s.off == nil {
			q.stays(s)
		}
	}
	q.settle()
}

func (q *queue) stays(s *seat) {
	for _, addr := range s.has {
		q.stuck[place{s.Space, addr}] = true
	}
}

// settle removes connected seats whose address stays taken, because a move would not help them. A disconnected one
// stays, because it must be reconnected with any address.
func (q *queue) settle() {
	for again := true; again; {
		again = false
		q.seats = slices.DeleteFunc(q.seats, func(s *seat) bool {
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
