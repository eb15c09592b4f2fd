package putback

import (
	"net/netip"
	"slices"
	"time"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// place is an address where it means one thing: in its space.
type place struct {
	space string
	addr  netip.Addr
}

// seat is a container on one network, that is to be moved.
type seat struct {
	docker.Astray // of one of its addresses
	has, homes    []netip.Addr
	reserved      bool // all of homes are
	off           *note
	cut           time.Time // when it was taken off
}

// queue are seats that are to be moved, each after those that have its own addresses.
type queue struct {
	seats []*seat
	stuck map[place]bool // own addresses that somebody has who stays where he is
}

// queueOf are the seats of those of a list that may be moved. An address that several call their own is the first
// one's, and before it that of whoever has it reserved.
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

// held are the addresses of those that are on their networks, and whose they are.
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

// blocker is one that has an address which is another's own, nil where there is none.
func (s *seat) blocker(held map[place]*seat) *seat {
	for _, home := range s.homes {
		if by := held[place{s.Space, home}]; by != nil && by != s {
			return by
		}
	}
	return nil
}

// ready are those whose own addresses are free.
func (q *queue) ready() (ready []*seat) {
	held := q.held()
	for _, s := range q.seats {
		if s.blocker(held) == nil {
			ready = append(ready, s)
		}
	}
	return ready
}

// inRing is one of those that wait for one another, where nobody is ready.
func (q *queue) inRing() *seat {
	held, seen := q.held(), map[*seat]bool{}
	s := q.seats[0]
	for ; !seen[s]; s = s.blocker(held) {
		seen[s] = true
	}
	return s
}

// leave takes out those that were moved, or could not be.
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

// settle takes out whoever needs the address of one that stays: it would be cut off for nothing. One that is off its
// network is put on, whatever it gets there.
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
