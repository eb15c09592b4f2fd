package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"berth/store"
)

// trace is how far this handle knows the store, by which it finds out that etcd went back to an earlier state. It only
// grows.
//
// Each host counts its transactions under a key of its own (layout.counts): nobody else can bring that number back. A
// handle notes the counts of all hosts, so that it also sees what is lost of others, and the highest revision.
type trace struct {
	mu     sync.Mutex
	known  store.Trace
	last   int64       // the revision of the last change of a record that is known
	back   *store.Back // etcd is not trusted, and why; nil: it is
	own    count
	mends  bool         // nothing is distrusted
	loaded bool         // what is known was found there, and not only remembered
	next   *store.Trace // what is to be known when it is trusted again
}

// count is the key of this handle's host.
type count struct {
	host string // empty: the handle counts nothing
	n    uint64 // the number that it holds
	mod  int64  // the revision that wrote it
	last int64  // the revision of the last change that is known
}

// found is what there is to compare with a trace, as one answer of etcd showed it.
type found struct {
	before store.Trace // what was known when etcd was asked: later answers may overtake this one
	anew   bool        // before is what is to be known when it is trusted again
	place  uint64
	rev    int64             // 0: it was not asked for
	counts map[string]uint64 // nil: it was not asked for them
	empty  bool              // nothing of the store is there
}

func (t *trace) init(cfg Config) {
	t.own.host, t.mends = cfg.Host, cfg.Mends
	if cfg.Trace != nil {
		t.known = *cfg.Trace
	}
	t.known = copied(t.known)
}

// check compares what was found with what is known, and takes it over where nothing is missing. Once etcd is distrusted
// it stays so until Store.Trust.
func (t *trace) check(f found, emptied string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.back != nil && !f.anew {
		return t.back
	}
	if !t.mends {
		if back := t.missing(f, emptied); back != nil {
			t.back, t.next = back, nil
			return back
		}
	}
	if !f.anew { // otherwise it is taken over once everything was read
		t.learn(f)
	}
	return nil
}

// learn takes over what was found. The caller holds mu.
func (t *trace) learn(f found) {
	if f.place != 0 {
		t.known.Place = f.place
	}
	t.known.Revision = max(t.known.Revision, f.rev)
	for host, n := range f.counts { // in place: who asked has a copy
		t.known.Counts[host] = max(t.known.Counts[host], n)
	}
}

// missing tells what is known and was not found; nil: nothing.
func (t *trace) missing(f found, emptied string) *store.Back {
	b := &store.Back{Since: time.Now(), Emptied: f.empty}
	if f.counts != nil {
		for host, n := range f.before.Counts {
			if lacks := n - min(n, f.counts[host]); lacks > 0 {
				b.All += lacks
				if host == t.own.host {
					b.Own = lacks
				}
			}
		}
	}
	switch {
	case f.empty && (len(f.before.Counts) > 0 || f.before.Revision > 0):
		b.Why = emptied
	case b.All > 0:
		b.Why = fmt.Sprintf("etcd lacks %d writes that were in it, %d of them of this host: it was put back to an "+
			"earlier state", b.All, b.Own)
	case f.place != 0 && f.before.Place != 0 && f.place != f.before.Place:
		b.Why = fmt.Sprintf("this is another etcd than before (its cluster id is %x, and was %x): a snapshot was "+
			"restored, which may lack what was written after it", f.place, f.before.Place)
	case f.rev != 0 && f.rev < f.before.Revision:
		b.Why = fmt.Sprintf("etcd has come to the revision %d, and was at %d before: it was put back to an "+
			"earlier state", f.rev, f.before.Revision)
	default:
		return nil
	}
	return b
}

// distrusted is why etcd is not trusted; nil: it is.
func (t *trace) distrusted() *store.Back {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.back
}

// draw is the count that one transaction makes, and compares.
func (t *trace) draw() count {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.own
	c.n, c.last = max(c.n, t.known.Counts[c.host])+1, t.last
	return c
}

// counted notes that the transaction of c was committed in the revision rev.
func (t *trace) counted(c count, rev int64) {
	t.changed(rev)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.host != "" {
		t.own.n, t.own.mod = c.n, rev
		t.known.Counts[c.host] = max(t.known.Counts[c.host], c.n)
	}
}

// toldCount notes what the watch tells of the count of a host.
func (t *trace) toldCount(host string, kv *kv) {
	if kv.Version == 0 {
		return // it was deleted, and the store with it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Counts[host] = max(t.known.Counts[host], countOf(kv.Value))
	if host == t.own.host && kv.ModRevision > t.own.mod {
		t.own.n, t.own.mod = countOf(kv.Value), kv.ModRevision
	}
}

// changed notes that a record was changed in the revision rev.
func (t *trace) changed(rev int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, rev)
	t.known.Revision = max(t.known.Revision, rev)
}

// loadedFrom notes what a snapshot has, of a store that is trusted from then on.
func (t *trace) loadedFrom(n *snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own.n, t.own.mod = n.counts[t.own.host], n.ownMod
	t.last = n.last
	if t.mends { // what was remembered is over, but for the own count, which goes on from there
		t.own.n = max(t.own.n, t.known.Counts[t.own.host])
		t.known = store.Trace{Counts: map[string]uint64{}}
	}
	if t.next != nil {
		t.known, t.back, t.next = *t.next, nil, nil
	}
	t.learn(found{place: n.place, rev: n.rev, counts: n.counts})
	t.loaded = true
}

// expected is what is to be found by who reads everything: where etcd is to be trusted again, that.
func (t *trace) expected() found {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		return found{before: copied(*t.next), anew: true}
	}
	return found{before: copied(t.known)}
}

// copied is a trace with counts of its own.
func copied(at store.Trace) store.Trace {
	counts := map[string]uint64{}
	maps.Copy(counts, at.Counts)
	at.Counts = counts
	return at
}

// at is what is known, and whether it is worth remembering: that it was found there.
func (t *trace) at() (store.Trace, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return copied(t.known), t.loaded
}

// countOf reads the count of a host.
func countOf(value []byte) uint64 {
	n, _ := strconv.ParseUint(string(value), 10, 64) // whatever else it is: it is no count, and too low
	return n
}

func (c count) key(l *layout) string { return l.counts + c.host }

// put is the operation that puts the number of c there.
func (c count) put(l *layout) *pb.RequestOp { return put(c.key(l), []byte(number(c.n))) }

// verify asks etcd for all counts and compares them with what is known.
func (s *Store) verify(ctx context.Context) error {
	before, _ := s.trace.at()
	resp, err := s.members.do(ctx, getAll(s.layout.counts), get(s.layout.meta))
	if err != nil {
		return err
	}
	kvs, counts := map[string]*kv{}, map[string]uint64{}
	for _, kv := range kvsOf(resp, 0) {
		host := strings.TrimPrefix(string(kv.Key), s.layout.counts)
		kvs[host], counts[host] = kv, countOf(kv.Value)
	}
	if err := s.check(found{before: before, place: resp.Header.ClusterId, rev: resp.Header.Revision, counts: counts,
		empty: len(kvsOf(resp, 1)) == 0}); err != nil {
		return err
	}
	if own := kvs[s.cfg.Host]; own != nil { // another handle of this host may have counted on
		s.trace.toldCount(s.cfg.Host, own)
	}
	return nil
}

// check compares what was found with what is known. Where etcd went back, nothing is done with this handle any more.
func (s *Store) check(f found) error {
	before := s.trace.distrusted()
	err := s.trace.check(f, s.emptied())
	if err != nil && s.trace.distrusted() != before && s.members.opened.Load() { // else Open says it
		s.log.Errorf("%v; nothing of it is given until it is mended (`berth state mend`)", err)
		s.feed.restart() // it tells nothing any more
	}
	return err
}

// Trust has the store be trusted again as it is, which is at least as far as at says. Everything is read afresh first.
func (s *Store) Trust(at store.Trace) {
	at = copied(at)
	s.trace.mu.Lock()
	s.trace.next = &at
	s.trace.mu.Unlock()
	s.feed.again()
	s.pulse.hurry()
}

// Trace is how far the handle knows the store.
func (s *Store) Trace() store.Trace {
	known, _ := s.trace.at()
	return known
}

// quiet tells whether nothing is asked of etcd, because it is distrusted.
func (t *trace) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.back != nil && t.next == nil
}

// placed compares which etcd has answered.
func (s *Store) placed(h *pb.ResponseHeader) error {
	s.trace.mu.Lock()
	was, back := s.trace.known.Place, s.trace.back
	s.trace.mu.Unlock()
	if back == nil && was == h.GetClusterId() {
		return nil
	}
	before, _ := s.trace.at()
	return s.check(found{before: before, place: h.GetClusterId()})
}

// isBack tells whether etcd went back.
func isBack(err error) bool { return errors.Is(err, store.ErrBack) }
