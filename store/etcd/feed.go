package etcd

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

type kv = mvccpb.KeyValue

// feed updates the mirror by a watch of everything under the prefix.
type feed struct {
	s     *Store
	begun chan struct{} // closed when the first watch has begun
	once  sync.Once

	afresh atomic.Bool // read everything before the next watch

	mu     sync.Mutex
	cancel context.CancelFunc // of the present watch

	// The turn guards the rest.
	rev  int64 // the watch has reported everything up to this revision
	held []*kv // writes since the gate was closed, until they are complete
}

// run watches until the store is closed.
func (f *feed) run() {
	for try := 1; f.s.ctx.Err() == nil; try++ {
		if f.s.trace.quiet() {
			sleep(f.s.ctx, pulseQuick)
			continue
		}
		if f.afresh.Swap(false) {
			if err := f.s.reload(); err != nil {
				if !isBack(err) {
					f.s.log.Warnf("Berth must read the whole shared store again, but cannot yet: %v", err)
				}
				f.afresh.Store(true)
				pause(f.s.ctx, try)
				continue
			}
		}
		if f.watch() {
			try = 1
		}
		pause(f.s.ctx, try)
	}
}

// again makes the feed read everything again, because the mirror must be wrong.
func (f *feed) again() {
	f.afresh.Store(true)
	f.restart()
}

// restart begins a new watch, because the current one reports nothing.
func (f *feed) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
}

// watch watches at the member in use until the watch ends. It reports whether the watch had any answer.
func (f *feed) watch() (answered bool) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(f.s.members.use()))
	defer cancel()
	defer context.AfterFunc(f.s.ctx, cancel)()
	f.mu.Lock()
	f.cancel = cancel
	f.mu.Unlock()
	if f.afresh.Load() || !f.verified(ctx) {
		return false
	}
	c, _, err := f.s.members.client(ctx)
	if err != nil {
		return false
	}
	if f.s.turn.take(ctx) != nil {
		return false
	}
	from := f.rev + 1
	f.s.turn.give()
	for resp := range c.Watch(ctx, f.s.layout.prefix, clientv3.WithPrefix(), clientv3.WithRev(from),
		clientv3.WithProgressNotify(), clientv3.WithCreatedNotify()) {
		switch err := resp.Err(); {
		case errors.Is(err, rpctypes.ErrCompacted):
			f.afresh.Store(true)
			return answered
		case err != nil:
			return answered
		}
		answered = true
		if resp.Created {
			f.once.Do(func() { close(f.begun) })
		}
		if f.s.turn.take(ctx) != nil {
			return answered
		}
		f.take(resp.Events)
		f.s.turn.give()
	}
	return answered
}

// verified reports whether etcd did not go back. A new watch would not show that.
func (f *feed) verified(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, f.s.cfg.Timeout)
	defer cancel()
	return f.s.verify(ctx) == nil
}

// take processes what the watch reports, commit by commit. The caller holds the turn.
func (f *feed) take(events []*clientv3.Event) {
	for len(events) > 0 {
		rev := events[0].Kv.ModRevision
		var kvs []*kv
		for len(events) > 0 && events[0].Kv.ModRevision == rev {
			kvs, events = append(kvs, events[0].Kv), events[1:]
		}
		f.commit(rev, kvs)
	}
}

// commit processes one commit: what was written and, without a version, what was deleted.
func (f *feed) commit(rev int64, kvs []*kv) {
	s := f.s
	if slices.ContainsFunc(kvs, f.ends) { // nothing else in that commit can be believed
		f.again()
		return
	}
	old := rev <= s.mirror.at()
	f.rev = rev
	var data []*kv
	opened := false
	for _, kv := range kvs {
		place, name := s.layout.split(kv.Key)
		switch {
		case place == presentPlace, place == sessionPlace:
			s.mirror.mu.Lock()
			s.mirror.stand(place, string(name), kv)
			s.mirror.mu.Unlock()
		case place == countPlace:
			s.trace.noteCount(string(name), kv)
		case place == lastPlace:
			s.trace.changed(rev)
		case old:
		case place == gatePlace && len(kv.Value) > 0:
			f.close(kv)
		case place == gatePlace:
			opened = true
		case place == dataPlace, place == bundlePlace:
			data = append(data, kv)
		}
	}
	if old {
		return
	}
	as := rev
	if was := s.mirror.shut.Load(); was != nil {
		f.held = append(f.held, data...)
		if !opened && len(data) > 0 {
			s.mirror.shut.Store(&shut{was.closed, was.value, time.Now()})
		}
		if !opened {
			return
		}
		if was.value.Chunks > 0 {
			as = was.closed
		}
		data, f.held = f.held, nil
	}
	if opened {
		s.mirror.openGate(rev)
	}
	s.publish(rev, as, data)
}

// ends reports whether a change is one that Berth never makes. Then the store was replaced or deleted.
func (f *feed) ends(kv *kv) bool {
	place, _ := f.s.layout.split(kv.Key)
	return place == metaPlace || place == countPlace && kv.Version == 0
}

// close notes that the gate is closed.
func (f *feed) close(kv *kv) {
	value, err := parseGate(kv.Value)
	if err != nil {
		f.s.log.Error(err)
	}
	f.s.mirror.shut.Store(&shut{kv.ModRevision, value, time.Now()})
	f.s.pulse.hurry()
}

// publish moves the mirror to rev and reports the changes to watchers and followers. as is the revision of this
// handle's own commit, if it was one. The caller holds the turn.
func (s *Store) publish(rev, as int64, kvs []*kv) {
	all := s.mirror.move(&s.layout, rev, kvs)
	if own := s.own; own != nil && own.rev == as {
		s.own = nil
		s.watches.Publish(own.changes)
		return
	}
	s.tell(all) // first: a watcher must find its changes in the follower's index
	if s.watches.Any() {
		s.watches.Publish(records(all))
	}
}

// tell reports the changes of others to the follower and the journal, without what this handle has overwritten since.
func (s *Store) tell(all []change) {
	var foreign []store.Foreign
	for _, c := range all {
		if s.overwritten(c.key) {
			continue
		}
		if c.bad == nil {
			s.note(c.key, c.after)
		}
		foreign = append(foreign,
			store.Foreign{Key: bytes.Clone(c.key), Before: bytes.Clone(c.before), After: bytes.Clone(c.after)})
	}
	if s.apply != nil && len(foreign) > 0 {
		s.apply(foreign)
	}
}

// overwritten reports whether this handle has written key in a commit that the watch has not reported yet.
func (s *Store) overwritten(key []byte) bool { return s.own != nil && s.own.wrote[string(key)] != nil }

// ownCommit is this handle's last commit, until the mirror has reached it. The next one comes only then.
type ownCommit struct {
	rev     int64
	wrote   map[string]*write
	changes []store.Record // for watchers, update by update
}
