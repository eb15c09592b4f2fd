package names

import (
	"context"
	"iter"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// bearing are the kinds of records from which names are made.
var bearing = []byte{ledger.LeaseKeys, ledger.NetworkKeys, ledger.SubnetKeys, ledger.ElasticRangeKeys,
	ledger.ElasticKeys}

// together is how long to wait for more commits after the first one, so that a hundred per second cause fewer news.
const together = 5 * time.Millisecond

// Source streams the names from all homes of a host's records.
type Source struct{ homes ledger.Homes }

// Of returns the Source of a host's records.
func Of(homes ledger.Homes) Source { return Source{homes} }

// Names returns everything at once.
func (b Source) Names(ctx context.Context) (all ipam.NameNews, err error) {
	for _, l := range b.homes.All() {
		part, err := newFollower(l).whole(ctx)
		if err != nil {
			return ipam.NameNews{}, err
		}
		all.Whole = true
		all.Ranges, all.Set = append(all.Ranges, part.Ranges...), append(all.Set, part.Set...)
	}
	return all, nil
}

// NameNews yields everything, and then the changes of each commit, until ctx ends or the caller stops or it yields an
// error. If the host shares a store, each item has the name of its store. The cluster's begin when its store is
// reached, and stay as they are during an outage.
func (b Source) NameNews(ctx context.Context) iter.Seq2[ipam.NameNews, error] {
	return func(yield func(ipam.NameNews, error) bool) {
		for one, err := range ledger.FromEach(ctx, b.homes, news) {
			if b.homes.Shares() {
				one.What.Store = b.homes.StoreOf(one.Home)
			}
			if !yield(one.What, err) {
				return
			}
		}
	}
}

func news(ctx context.Context, l *ledger.Ledger) iter.Seq2[ipam.NameNews, error] {
	return func(yield func(ipam.NameNews, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		commits := l.Watch(ctx, bearing, nil) // before anything is read
		defer func() { cancel(); commits.Wait() }()
		changed, end := known(l)
		defer end()
		f := newFollower(l)
		called := false // the names of networks may have changed
		for first := true; ; first = false {
			seen, missed := commits.Take()
			var news ipam.NameNews
			var err error
			if first || missed {
				news, err = f.whole(ctx)
			} else {
				news, err = f.after(ctx, seen, called)
			}
			if ctx.Err() != nil {
				return
			}
			if (err != nil || !news.Empty()) && !yield(news, err) || err != nil {
				return
			}
			var ok bool
			if called, ok = await(ctx, commits.Woken(), changed); !ok {
				return
			}
		}
	}
}

// known returns a channel that gets a token when the witness's knowledge changes, or nil without a witness.
func known(l *ledger.Ledger) (changed <-chan struct{}, end func()) {
	if watch := l.Known().Watch; watch != nil {
		return watch()
	}
	return nil, func() {}
}

// await waits for commits or for the witness's knowledge to change, and a little longer. ok is false if ctx has ended.
func await(ctx context.Context, woken, changed <-chan struct{}) (called, ok bool) {
	select {
	case <-ctx.Done():
		return false, false
	case <-woken:
	case <-changed:
		called = true
	}
	timer := time.NewTimer(together)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, false
	case <-timer.C:
		return called, true
	}
}
