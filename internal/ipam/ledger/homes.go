package ledger

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
)

// Homes are the stores that hold a host's records: its own and, if it shares one, the cluster's. A record's space
// decides its home. The space `local` and all spaces with networks in the host's own store belong to the host; all
// others belong to the cluster. An object with an id is in the store that knows the id.
type Homes struct {
	Own    *Ledger
	shared func() (*Ledger, error) // nil: the host shares no store
}

// Alone returns the homes of a host without a shared store, or of a single store.
func Alone(own *Ledger) Homes { return Homes{Own: own} }

// Sharing returns the homes of a host with a shared store. Until that store was reached, shared returns an error with
// the reason.
func Sharing(own *Ledger, shared func() (*Ledger, error)) Homes { return Homes{own, shared} }

// Partial returns why only the host's own records are visible: the cluster's store was not reached since the daemon's
// start. nil means that all are visible, though they may be old.
func (h Homes) Partial() error {
	if h.shared == nil {
		return nil
	}
	_, err := h.shared()
	return err
}

// Shares reports whether the host shares a store.
func (h Homes) Shares() bool { return h.shared != nil }

// Reached returns the cluster's home. It returns false if it was not reached yet.
func (h Homes) Reached() (l *Ledger, is bool) {
	if h.shared == nil {
		return nil, false
	}
	l, err := h.shared()
	return l, err == nil
}

// The two stores of a host that shares one.
const (
	hostStore    = "host"    // this host's own
	clusterStore = "cluster" // shared with other hosts
)

// StoreOf returns the name of a home's store, "host" or "cluster".
func (h Homes) StoreOf(l *Ledger) string {
	if l == h.Own {
		return hostStore
	}
	return clusterStore
}

// All returns the homes that can be read, the host's own first.
func (h Homes) All() []*Ledger {
	if l, is := h.Reached(); is {
		return []*Ledger{h.Own, l}
	}
	return []*Ledger{h.Own}
}

// Cluster is the home of the objects that all hosts share: the cluster's store, or the host's own if there is no
// cluster. what names the objects in the refusal if the cluster's store was never reached.
func (h Homes) Cluster(what string) (*Ledger, error) {
	if h.shared == nil {
		return h.Own, nil
	}
	l, err := h.shared()
	if err != nil {
		return nil, ipam.Refuse(err, "%s is not in this host's own store, and %s", what, err)
	}
	return l, nil
}

// Having returns the home of a subnet id.
func (h Homes) Having(subnet ipam.ID) (*Ledger, error) {
	if h.shared == nil || h.Own.Knows(subnet) {
		return h.Own, nil
	}
	return h.Cluster("subnet " + subnet.String())
}

// In returns the home of a space.
func (h Homes) In(space string) (*Ledger, error) {
	if h.OwnsSpace(space) {
		return h.Own, nil
	}
	return h.Cluster("the space " + space)
}

// At returns the home of an address in a space.
func (h Homes) At(space string, addr netip.Addr) (*Ledger, error) {
	if h.shared == nil || space == ipam.LocalSpace {
		return h.Own, nil
	}
	here := Ask(h.Own, func(ix *Index) bool {
		return ix.Overlapping(space, netip.PrefixFrom(addr, addr.BitLen())) != nil
	})
	if here {
		return h.Own, nil
	}
	return h.Cluster(addr.String())
}

// With returns the home of the network that ref names.
func (h Homes) With(ref string) (*Ledger, error) {
	if h.shared == nil {
		return h.Own, nil
	}
	n, own, err := h.Find(ref, "")
	if own || err != nil {
		return h.Own, err
	}
	if n == nil && h.Own.Several(ref) != nil {
		return h.Own, nil // the home refuses the ambiguous name
	}
	return h.Cluster(fmt.Sprintf("network %q", ref))
}

// Find returns the network that ref names, according to the indexes, and whether the host's own store has it. If both
// stores have one of that name, space decides. If neither has one, ref may be a former name; else Find returns nil.
func (h Homes) Find(ref, space string) (n *ipam.Network, own bool, err error) {
	mine := h.Own.Named(ref)
	var theirs *ipam.Network
	if l, is := h.Reached(); is {
		theirs = l.Named(ref)
	}
	if mine == nil && theirs == nil {
		mine = h.Own.formerlyNamed(ref)
		if l, is := h.Reached(); is {
			theirs = l.formerlyNamed(ref)
		}
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
			"the cluster's (id %s); give the id or the space of the network that you mean, as in --ipam-opt space=%s",
		ref, mine.Space, mine.ID, theirs.Space, theirs.ID, theirs.Space)
}

// OwnsSpace reports whether the host's own store is the home of a space. An empty name means the default space.
func (h Homes) OwnsSpace(name string) bool {
	if h.shared == nil || name == "" || name == ipam.LocalSpace {
		return true
	}
	return h.Own.hasNetworksIn(name)
}

// Has reports whether l has anything in a space. The space `global` exists in each store from the beginning.
func (h Homes) Has(l *Ledger, space string) bool {
	return l != h.Own || h.shared == nil || space == ipam.LocalSpace || l.hasNetworksIn(space)
}

func (l *Ledger) hasNetworksIn(space string) bool {
	return Ask(l, func(ix *Index) bool {
		for _, nx := range ix.Networks() {
			if n := nx.Record(); n != nil && n.Space == space && n.Stage != ipam.Leaving {
				return true
			}
		}
		return false
	})
}

// Named returns the network of a name or id according to the index, or nil.
func (l *Ledger) Named(ref string) *ipam.Network {
	return Ask(l, func(ix *Index) *ipam.Network {
		id, err := ipam.ParseID(ref)
		if err != nil {
			id = ix.NetworkNamed(ref)
		}
		if id == (ipam.ID{}) {
			id = ix.shortNetwork(ref)
		}
		if id == (ipam.ID{}) {
			id = l.dockerNetwork(ix, ref)
		}
		if n := ix.Network(id); n != nil && n.Stage != ipam.Leaving {
			return n
		}
		return nil
	})
}

// formerlyNamed returns the network that had a name before, or nil.
func (l *Ledger) formerlyNamed(name string) *ipam.Network {
	return Ask(l, func(ix *Index) *ipam.Network { return ix.Network(ix.FormerlyNamed(name)) })
}

// Merged merges the sorted lists of all homes into one. Among equal elements the host's own come first.
func Merged[T any](h Homes, order func(a, b T) int, list func(*Ledger) ([]T, error)) ([]T, error) {
	homes := h.All()
	all, err := list(h.Own)
	if err != nil || len(homes) == 1 {
		return all, err
	}
	theirs, err := list(homes[1])
	if err != nil {
		return nil, err
	}
	all = append(all, theirs...)
	slices.SortStableFunc(all, order)
	return all, nil
}

// UpTo returns the first n elements of a list and any that equal the last of these. So a reader that continues after it
// misses nothing. 0 returns all.
func UpTo[T any](all []T, n int, order func(a, b T) int) []T {
	if n <= 0 || len(all) <= n {
		return all
	}
	for n < len(all) && order(all[n-1], all[n]) == 0 {
		n++
	}
	return all[:n]
}

// MergedEach is Merged for sequences, limited like UpTo.
func MergedEach[T any](h Homes, n int, order func(a, b T) int,
	list func(*Ledger) iter.Seq2[T, error]) iter.Seq2[T, error] {
	homes := h.All()
	if len(homes) == 1 {
		return list(h.Own)
	}
	return func(yield func(T, error) bool) {
		count := 0
		var last T
		for item, err := range merged(list(homes[0]), list(homes[1]), order) {
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

// merged merges two sequences that are in the same order. Among equal elements those of first come first. An error ends
// the merged sequence.
func merged[T any](first, second iter.Seq2[T, error], order func(a, b T) int) iter.Seq2[T, error] {
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

// Refused yields an error and nothing else.
func Refused[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}

// From is an element with the home that yielded it.
type From[T any] struct {
	Home *Ledger
	What T
}

// FromEach yields the elements of all homes' sequences as they arrive. It stops when ctx ends or after an error. The
// cluster's sequence begins as soon as its store is reached.
func FromEach[T any](ctx context.Context, h Homes,
	of func(context.Context, *Ledger) iter.Seq2[T, error]) iter.Seq2[From[T], error] {
	return func(yield func(From[T], error) bool) {
		if h.shared == nil {
			for what, err := range of(ctx, h.Own) {
				if !yield(From[T]{h.Own, what}, err) || err != nil || ctx.Err() != nil {
					return
				}
			}
			return
		}
		type told struct {
			From[T]
			err error
		}
		ctx, cancel := context.WithCancel(ctx)
		all := make(chan told)
		var tails sync.WaitGroup
		defer func() { cancel(); tails.Wait() }()
		send := func(l *Ledger) {
			for what, err := range of(ctx, l) {
				select {
				case all <- told{From[T]{l, what}, err}:
				case <-ctx.Done():
					return
				}
			}
		}
		tails.Go(func() { send(h.Own) })
		tails.Go(func() {
			if l, is := h.awaitReached(ctx); is {
				send(l)
			}
		})
		for {
			select {
			case <-ctx.Done():
				return
			case one := <-all:
				if !yield(one.From, one.err) || one.err != nil {
					return
				}
			}
		}
	}
}

// reachAgain is the time between two attempts to get the cluster's store.
const reachAgain = time.Second

// awaitReached waits for the cluster's home. It returns false if ctx ends first.
func (h Homes) awaitReached(ctx context.Context) (*Ledger, bool) {
	again := time.NewTicker(reachAgain)
	defer again.Stop()
	for {
		if l, is := h.Reached(); is {
			return l, true
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-again.C:
		}
	}
}
