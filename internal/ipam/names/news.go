package names

import (
	"context"
	"iter"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// bearing are the kinds of records of which names are made.
var bearing = []byte{ledger.LeaseKeys, ledger.NetworkKeys, ledger.SubnetKeys, ledger.ElasticRangeKeys,
	ledger.ElasticKeys}

// together is how long commits are waited for that are told with the first one: what comes a hundred times a second is
// told less often.
const together = 5 * time.Millisecond

// Book tells of the names in all homes of a host's records.
type Book struct{ homes ledger.Homes }

// Of returns the Book of the homes of a host's records.
func Of(homes ledger.Homes) Book { return Book{homes} }

// Names is all that there is.
func (b Book) Names(ctx context.Context) (all ipam.NameNews, err error) {
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

// NameNews yields all that there is, and from then on what commits come to, until ctx ends or an error, which is the
// last. It ends also where nobody takes any more what it yields. Of a host that shares a store each has the name of its
// store. Those of the cluster begin when it is reached, and stay as they were told while it is away.
func (b Book) NameNews(ctx context.Context) iter.Seq2[ipam.NameNews, error] {
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
		called := false // what networks are called may have changed
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

// known has a token whenever what the witness knows has changed; nil where there is none.
func known(l *ledger.Ledger) (changed <-chan struct{}, end func()) {
	if watch := l.Known().Watch; watch != nil {
		return watch()
	}
	return nil, func() {}
}

// await waits for commits, or until what the witness knows has changed, and a little longer; false: ctx has ended.
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
