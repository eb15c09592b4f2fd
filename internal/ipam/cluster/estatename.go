package cluster

import (
	"context"
	"iter"
	"sync"

	"berth/internal/ipam"
)

// Names is Service.Names of both stores.
func (e *Estate) Names(ctx context.Context) (all ipam.NameNews, err error) {
	for _, s := range e.stores() {
		part, err := s.Names(ctx)
		if err != nil {
			return ipam.NameNews{}, err
		}
		all.Whole = true
		all.Ranges, all.Set = append(all.Ranges, part.Ranges...), append(all.Set, part.Set...)
	}
	return all, nil
}

// NameNews yields what those of both stores do, as it comes, with the name of the store. The cluster's begin when it is
// reached, and stay as they were told while it is away.
func (e *Estate) NameNews(ctx context.Context) iter.Seq2[ipam.NameNews, error] {
	type told struct {
		ipam.NameNews
		err error
	}
	return func(yield func(ipam.NameNews, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		all := make(chan told)
		var tails sync.WaitGroup
		defer func() { cancel(); tails.Wait() }()
		send := func(store string, news iter.Seq2[ipam.NameNews, error]) {
			for one, err := range news {
				one.Store = store
				select {
				case all <- told{one, err}:
				case <-ctx.Done():
					return
				}
			}
		}
		tails.Go(func() { send(HostStore, e.local.NameNews(ctx)) })
		tails.Go(func() {
			if s := e.awaitShared(ctx); s != nil {
				send(ClusterStore, s.NameNews(ctx))
			}
		})
		for {
			select {
			case <-ctx.Done():
				return
			case one := <-all:
				if !yield(one.NameNews, one.err) || one.err != nil {
					return
				}
			}
		}
	}
}
