package etcd

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
	"berth/store/internal/record"
)

type kv = mvccpb.KeyValue

// feed moves the mirror by a watch of everything under the prefix.
type feed struct {
	s       *Store
	begun   chan struct{} // closed when the watch stands for the first time
	trusted chan struct{} // holds a token when etcd is to be trusted again

	once sync.Once

	mu     sync.Mutex
	cancel context.CancelFunc // of the watch as it is
	afresh bool               // read everything before watching again

	// What follows is guarded by the turn.
	rev  int64             // the watch has told of everything up to this revision
	held []*clientv3.Event // what was written since the gate was closed, until it is whole
}

// run watches until the store is closed.
func (f *feed) run() {
	for try := 1; f.s.ctx.Err() == nil; try++ {
		if f.s.trace.quiet() {
			select {
			case <-f.trusted:
			case <-f.s.ctx.Done():
			}
			continue
		}
		if f.wantsAfresh() {
			if err := f.s.reload(); err != nil {
				if !isBack(err) {
					f.s.log.Warnf("the shared store cannot be read afresh: %v", err)
				}
				f.setAfresh()
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

// again has everything read afresh, because the mirror cannot be right.
func (f *feed) again() {
	f.setAfresh()
	f.restart()
}

// restart has the watch begun anew, because it tells nothing.
func (f *feed) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
}

func (f *feed) setAfresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.afresh = true
}

func (f *feed) wantsAfresh() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.afresh
	f.afresh = false
	return was
}

// watch watches at the member in use until the watch ends; it answers whether it told anything.
func (f *feed) watch() (told bool) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(f.s.members.use()))
	defer cancel()
	defer context.AfterFunc(f.s.ctx, cancel)()
	f.mu.Lock()
	f.cancel = cancel
	afresh := f.afresh
	f.mu.Unlock()
	if afresh {
		return false
	}
	if !f.verified(ctx) {
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
			f.setAfresh()
			return told
		case err != nil:
			return told
		}
		told = true
		if resp.Created {
			f.once.Do(func() { close(f.begun) })
		}
		if f.s.turn.take(ctx) != nil {
			return told
		}
		f.take(resp.Events)
		f.s.turn.give()
	}
	return told
}

// verified tells whether etcd is still as far as it was: a watch that is begun anew would not tell.
func (f *feed) verified(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, f.s.cfg.Timeout)
	defer cancel()
	return f.s.verify(ctx) == nil
}

// take takes what the watch tells, commit by commit. The caller has the turn.
func (f *feed) take(events []*clientv3.Event) {
	for len(events) > 0 {
		rev := events[0].Kv.ModRevision
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == rev {
			n++
		}
		f.commit(rev, events[:n])
		events = events[n:]
	}
}

// commit takes one commit.
func (f *feed) commit(rev int64, events []*clientv3.Event) {
	l := &f.s.layout
	if slices.ContainsFunc(events, f.ends) { // of what else was in that commit nothing is to be believed
		f.again()
		return
	}
	old := rev <= f.s.mirror.at()
	f.rev = rev
	var data []*clientv3.Event
	opened := false
	for _, e := range events {
		key := string(e.Kv.Key)
		switch {
		case strings.HasPrefix(key, l.present):
			f.s.mirror.setPresent(key[len(l.present):], e)
		case strings.HasPrefix(key, l.sessions):
			f.s.mirror.setHeld(key[len(l.sessions):], e)
		case strings.HasPrefix(key, l.counts):
			f.s.trace.toldCount(key[len(l.counts):], e.Kv)
		case key == l.last:
			f.s.trace.changed(rev)
		case old:
		case key == l.gate && len(e.Kv.Value) > 0:
			f.close(e.Kv)
		case key == l.gate:
			opened = true
		case strings.HasPrefix(key, l.data), strings.HasPrefix(key, l.bundles):
			data = append(data, e)
		}
	}
	if old {
		return
	}
	as := rev
	if was := f.s.mirror.closed(); was != nil {
		f.held = append(f.held, data...)
		if !opened && len(data) > 0 {
			f.s.mirror.shutGate(&shut{was.closed, was.value, time.Now()})
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
		f.s.mirror.openGate(rev)
	}
	f.s.publish(rev, as, f.s.changes(data))
}

// ends tells whether an event is one that Berth never makes: another store takes the place of this one, or nothing
// does.
func (f *feed) ends(e *clientv3.Event) bool {
	key := string(e.Kv.Key)
	return key == f.s.layout.meta || e.Type == clientv3.EventTypeDelete && strings.HasPrefix(key, f.s.layout.counts)
}

// close notes that the gate is closed.
func (f *feed) close(kv *kv) {
	value, err := parseGate(kv.Value)
	if err != nil {
		f.s.log.Error(err)
	}
	f.s.mirror.shutGate(&shut{kv.ModRevision, value, time.Now()})
	f.s.pulse.hurry()
}

// changes says what events do to the mirror, in the order of the keys. Which bundles there are it has already noted.
// The caller has the turn.
func (s *Store) changes(events []*clientv3.Event) []change {
	s.mirror.mu.Lock()
	defer s.mirror.mu.Unlock()
	all := make([]change, 0, len(events))
	for _, e := range events { // first: a record that is taken out of one may be written under a key of its own
		if name, ok := strings.CutPrefix(string(e.Kv.Key), s.layout.bundles); ok {
			all = s.mirror.rebundle(all, name, e.Kv)
		}
	}
	for _, e := range events {
		if !bytes.HasPrefix(e.Kv.Key, []byte(s.layout.data)) {
			continue
		}
		c := change{key: e.Kv.Key[len(s.layout.data):], mod: e.Kv.ModRevision}
		if was, found := s.mirror.tree.Get(rec{key: c.key}); found {
			c.before = was.value
		}
		if e.Type == clientv3.EventTypePut {
			c.after, c.bad = unseal(c.key, e.Kv.Value)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b change) int { return bytes.Compare(a.key, b.key) })
	last := all[:0] // of several changes of a key the last one
	for i, c := range all {
		if i+1 < len(all) && bytes.Equal(all[i+1].key, c.key) || c.before == nil && c.after == nil {
			continue
		}
		last = append(last, c)
	}
	return last
}

// unseal returns the value in its stored form, or what there is instead, and why.
func unseal(key, stored []byte) ([]byte, error) {
	value, err := record.Unseal(key, stored)
	if err != nil {
		return append([]byte{}, stored...), err
	}
	return value, nil
}

// publish moves the mirror to rev and tells those who watch and follow of it. If it was this handle that committed it,
// it was in the revision as. The caller has the turn.
func (s *Store) publish(rev, as int64, all []change) {
	own, known := s.own[as]
	delete(s.own, as)
	s.mirror.move(rev, all)
	all = news(all)
	s.noteAll(all)
	switch {
	case known:
		s.watches.Publish(own.changes)
	case len(all) > 0:
		s.tell(all) // first: whoever watches finds in the follower's index what he is told
		if s.watches.Any() {
			s.watches.Publish(records(all))
		}
	}
}

// tell hands changes of others to the follower: those that this handle has not written over meanwhile.
func (s *Store) tell(all []change) {
	if s.apply == nil {
		return
	}
	foreign := make([]store.Foreign, 0, len(all))
	for _, c := range all {
		if !s.overwritten(c.key) {
			foreign = append(foreign,
				store.Foreign{Key: bytes.Clone(c.key), Before: bytes.Clone(c.before), After: bytes.Clone(c.after)})
		}
	}
	if len(foreign) > 0 {
		s.apply(foreign)
	}
}

// overwritten tells whether a commit of this handle that the watch has not told of yet has written key.
func (s *Store) overwritten(key []byte) bool {
	for _, o := range s.own {
		if o.wrote[string(key)] != nil {
			return true
		}
	}
	return false
}

// ownCommit is what this handle has committed.
type ownCommit struct {
	wrote   map[string]*write
	changes []store.Record // for those who watch, update by update
}

// advance moves the mirror to the state that b has made of it, without waiting for the watch. The caller has the turn.
func (s *Store) advance(b *batch, rev int64) {
	s.mirror.mu.Lock()
	for _, w := range b.wrote {
		if w.value != nil && !w.bundled {
			b.tree.Set(rec{key: w.key, value: w.value, mod: rev})
		}
	}
	for _, bundle := range b.laid.bundles {
		bundle.mod = rev
		for _, r := range bundle.records() {
			b.tree.Set(r)
		}
		s.mirror.note(bundle)
	}
	s.mirror.tree = b.tree
	s.mirror.come(rev)
	s.mirror.mu.Unlock()
}
