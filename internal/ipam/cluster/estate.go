package cluster

import (
	"fmt"
	"iter"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// Estate is all that a host sees where several share a store: its own space, in its own store, and those of the
// cluster. It answers like one Service.
//
// A request goes to the store that it is about. What has an id is in the host's own store where that knows the id, and
// else in the cluster's. The space `local` is the host's own, and so is each in which its store has networks; all
// others are the cluster's. What is asked for by name is looked for in both. Lists are those of both stores, in one
// order.
type Estate struct {
	local  *service.Service
	shared *Shared
}

// NewEstate puts a host's own Service and its half of the cluster together.
func NewEstate(local *service.Service, shared *Shared) *Estate { return &Estate{local, shared} }

// Partial tells why only the host's own records can be seen: the cluster's store was not reached since the daemon
// began. nil: all can, if they may be old (Shared.State).
func (e *Estate) Partial() error {
	_, err := e.shared.service()
	return err
}

// cluster is the Service over the shared store, for what is not in the host's own. Where it was never reached the
// refusal says so, and not that there is no such thing.
func (e *Estate) cluster(what string) (*service.Service, error) {
	s, err := e.shared.service()
	if err != nil {
		return nil, ipam.Refuse(err, "%s is not in this host's own store, and %s", what, err)
	}
	return s, nil
}

// having is the Service that has a subnet, by id.
func (e *Estate) having(subnet ipam.ID) (*service.Service, error) {
	if e.local.Ledger.Knows(subnet) {
		return e.local, nil
	}
	return e.cluster("subnet " + subnet.String())
}

// with is the Service that has the network which ref names.
func (e *Estate) with(ref string) (*service.Service, error) {
	n, own, err := e.find(ref, "")
	if own || err != nil {
		return e.local, err
	}
	if n == nil && e.local.Ledger.Several(ref) != nil {
		return e.local, nil // which refuses it
	}
	return e.cluster(fmt.Sprintf("network %q", ref))
}

// in is the Service that a space belongs to.
func (e *Estate) in(space string) (*service.Service, error) {
	if ownsSpace(e.local.Ledger, space) {
		return e.local, nil
	}
	return e.cluster("the space " + space)
}

// find is the network that ref names, as far as the indexes know, and whether the host's own store has it: the one in
// the given space, where both stores have one of that name; nil where neither has.
func (e *Estate) find(ref, space string) (n *ipam.Network, own bool, err error) {
	mine := named(e.local.Ledger, ref)
	var theirs *ipam.Network
	if s, err := e.shared.service(); err == nil {
		theirs = named(s.Ledger, ref)
	}
	switch {
	case mine == nil:
		return theirs, false, nil
	case theirs == nil, mine.ID == theirs.ID, space == mine.Space:
		return mine, true, nil
	case space == theirs.Space:
		return theirs, false, nil
	}
	return nil, false, ipam.Refuse(ipam.ErrInvalid,
		"there are two networks %s: one in the space %s of this host's own store (id %s), and one in the space %s of "+
			"the cluster's (id %s); name it by its id, or say the space of which one you mean, as in --ipam-opt "+
			"space=%s",
		ref, mine.Space, mine.ID, theirs.Space, theirs.ID, theirs.Space)
}

// named is the network that a name or an id means, as far as the index knows; nil where there is none.
func named(s *ledger.Ledger, ref string) *ipam.Network {
	return ledger.Ask(s, func(ix *ledger.Index) *ipam.Network {
		id, err := ipam.ParseID(ref)
		if err != nil {
			id = ix.NetworkNamed(ref)
		}
		if id == (ipam.ID{}) {
			id = ix.ShortNetwork(ref)
		}
		if id == (ipam.ID{}) {
			id = s.DockerNetwork(ix, ref)
		}
		if n := ix.Network(id); n != nil && n.Stage != ipam.Leaving {
			return n
		}
		return nil
	})
}

// ownsSpace tells whether what is asked for in a space belongs to this host's own store: no space stands for the
// default one.
func ownsSpace(s *ledger.Ledger, name string) bool {
	if name == "" || name == ipam.LocalSpace {
		return true
	}
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		for _, nx := range ix.Networks() {
			if n := nx.Record(); n != nil && n.Space == name && n.Stage != ipam.Leaving {
				return true
			}
		}
		return false
	})
}

// stores are those that can be read: the host's own and, where it was opened, the cluster's.
func (e *Estate) stores() []*service.Service {
	if s, err := e.shared.service(); err == nil {
		return []*service.Service{e.local, s}
	}
	return []*service.Service{e.local}
}

// merged asks both stores for their lists, and makes one in that order of them; of what is equal the host's own comes
// first.
func merged[T any](e *Estate, order func(a, b T) int, ask func(*service.Service) ([]T, error)) ([]T, error) {
	var all []T
	for _, s := range e.stores() {
		part, err := ask(s)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	slices.SortStableFunc(all, order)
	return all, nil
}

// upTo is the beginning of a list, so many of it and what is equal to the last of these: who goes on behind that one
// misses nothing. 0: all.
func upTo[T any](all []T, n int, order func(a, b T) int) []T {
	if n <= 0 || len(all) <= n {
		return all
	}
	for n < len(all) && order(all[n-1], all[n]) == 0 {
		n++
	}
	return all[:n]
}

// mergedEach is merged for what is yielded, each store's in that order, and ends like upTo.
func mergedEach[T any](e *Estate, n int, order func(a, b T) int,
	ask func(*service.Service) iter.Seq2[T, error]) iter.Seq2[T, error] {
	stores := e.stores()
	if len(stores) == 1 {
		return ask(stores[0])
	}
	return func(yield func(T, error) bool) {
		count := 0
		var last T
		for item, err := range woven(ask(stores[0]), ask(stores[1]), order) {
			if n > 0 && count >= n && err == nil && order(last, item) != 0 {
				return
			}
			if !yield(item, err) || err != nil {
				return
			}
			count, last = count+1, item
		}
	}
}

// woven yields what two sequences yield in one order, which each has; of what is equal that of the first one first. An
// error is the last.
func woven[T any](first, second iter.Seq2[T, error], order func(a, b T) int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		next, stop := iter.Pull2(second)
		defer stop()
		b, errB, more := next()
		for a, errA := range first {
			for errA == nil && more && (errB != nil || order(b, a) < 0) {
				if !yield(b, errB) || errB != nil {
					return
				}
				b, errB, more = next()
			}
			if !yield(a, errA) || errA != nil {
				return
			}
		}
		for more {
			if !yield(b, errB) || errB != nil {
				return
			}
			b, errB, more = next()
		}
	}
}

// refusedEach yields an error and nothing else.
func refusedEach[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
