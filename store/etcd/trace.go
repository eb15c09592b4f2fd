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

// trace is what this handle knows of the store's progress. It only grows, so it shows whether etcd went back to an
// earlier state. Each host counts its transactions under its own key (layout.counts), and nobody else can restore that
// number. A handle follows the counts of all hosts, so it also sees what others have lost, and the highest revision.
type trace struct {
	mu     sync.Mutex
	known  store.Trace
	last   int64       // the revision of the last known change of a record
	back   *store.Back // why etcd is not trusted; nil: it is
	own    count
	mends  bool         // never distrust the store
	loaded bool         // the known state was found in the store, and not only remembered
	next   *store.Trace // the known state when etcd is trusted again
}

// count is the count of this handle's host.
type count struct {
	host string // empty: the handle counts nothing
	n    uint64 // the number that it holds
	mod  int64  // the revision that wrote it
	last int64  // the revision of the last known change
}

// found is the content of one answer of etcd, to be compared with a trace.
type found struct {
	before store.Trace // the known state when etcd was asked; later answers may overtake this one
	anew   bool        // before is trace.next
	place  uint64
	rev    int64             // 0: it was not asked for
	counts map[string]uint64 // nil: they were not asked for
	empty  bool              // nothing of the store exists
}

func (t *trace) init(cfg Config) {
	t.own.host, t.mends = cfg.Host, cfg.Mends
	if cfg.Trace != nil {
		t.known = *cfg.Trace
	}
	t.known = copied(t.known)
}

// check compares an answer with the known state, and learns it if nothing is missing. After a loss, etcd stays
// distrusted until Store.Trust.
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
	if !f.anew { // otherwise it is learnt after everything was read
		t.learn(f)
	}
	return nil
}

// learn records an answer. The caller holds mu.
func (t *trace) learn(f found) {
	if f.place != 0 {
		t.known.Place = f.place
	}
	t.known.Revision = max(t.known.Revision, f.rev)
	for host, n := range f.counts { // in place: readers have a copy
		t.known.Counts[host] = max(t.known.Counts[host], n)
	}
}

// missing returns what an answer lacks of the known state, or nil.
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
		b.Why = fmt.Sprintf("etcd lacks %d of its writes, %d of them from this host: it was restored to an earlier "+
			"state", b.All, b.Own)
	case f.place != 0 && f.before.Place != 0 && f.place != f.before.Place:
		b.Why = fmt.Sprintf("this is not the same etcd as before (its cluster id is %x, and was %x): a restored "+
			"snapshot may lack later writes", f.place, f.before.Place)
	case f.rev != 0 && f.rev < f.before.Revision:
		b.Why = fmt.Sprintf("etcd has the revision %d, and had %d before: it was restored to an earlier "+
			"state", f.rev, f.before.Revision)
	default:
		return nil
	}
	return b
}

// distrusted returns why etcd is not trusted, or nil.
func (t *trace) distrusted() *store.Back {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.back
}

// draw returns the count that a transaction writes and compares.
func (t *trace) draw() count {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.own
	c.n, c.last = max(c.n, t.known.Counts[c.host])+1, t.last
	return c
}

// counted records that the transaction of c was committed in the revision rev.
func (t *trace) counted(c count, rev int64) {
	t.changed(rev)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.host != "" {
		t.own.n, t.own.mod = c.n, rev
		t.known.Counts[c.host] = max(t.known.Counts[c.host], c.n)
	}
}

// noteCount records a host's count from the watch.
func (t *trace) noteCount(host string, kv *kv) {
	if kv.Version == 0 {
		return // it was deleted together with the store
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Counts[host] = max(t.known.Counts[host], countOf(kv.Value))
	if host == t.own.host && kv.ModRevision > t.own.mod {
		t.own.n, t.own.mod = countOf(kv.Value), kv.ModRevision
	}
}

// changed records that a record was changed in the revision rev.
func (t *trace) changed(rev int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, rev)
	t.known.Revision = max(t.known.Revision, rev)
}

// loadedFrom records the state of a snapshot. The store is trusted from then on.
func (t *trace) loadedFrom(n *snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own.n, t.own.mod = n.counts[t.own.host], n.ownMod
	t.last = n.last
	if t.mends { // the remembered state is void, except for the own count, which continues
		t.own.n = max(t.own.n, t.known.Counts[t.own.host])
		t.known = store.Trace{Counts: map[string]uint64{}}
	}
	if t.next != nil {
		t.known, t.back, t.next = *t.next, nil, nil
	}
	t.learn(found{place: n.place, rev: n.rev, counts: n.counts})
	t.loaded = true
}

// expected returns what a reader of everything must find, or must find before etcd is trusted again.
func (t *trace) expected() found {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		return found{before: copied(*t.next), anew: true}
	}
	return found{before: copied(t.known)}
}

// copied returns a trace with its own map of counts.
func copied(at store.Trace) store.Trace {
	counts := map[string]uint64{}
	maps.Copy(counts, at.Counts)
	at.Counts = counts
	return at
}

// at returns the known state, and whether to remember it, because it was found in the store.
func (t *trace) at() (store.Trace, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return copied(t.known), t.loaded
}

// countOf reads the count of a host.
func countOf(value []byte) uint64 {
	n, _ := strconv.ParseUint(string(value), 10, 64) // anything else is no count, and too low
	return n
}

func (c count) key(l *layout) string { return l.counts + c.host }

// put returns the operation that puts c's number.
func (c count) put(l *layout) *pb.RequestOp { return put(c.key(l), []byte(number(c.n))) }

// verify asks etcd for all counts and compares them with the known state.
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
	if own := kvs[s.cfg.Host]; own != nil { // another handle of this host may have continued
		s.trace.noteCount(s.cfg.Host, own)
	}
	return nil
}

// check compares an answer with the known state. If etcd went back, the handle stops working.
func (s *Store) check(f found) error {
	before := s.trace.distrusted()
	err := s.trace.check(f, s.emptied())
	if err != nil && s.trace.distrusted() != before && s.members.opened.Load() { // before that, Open reports it
		s.log.Errorf("%v; Berth gives no addresses from the shared store until you mend it (`berth state mend`)", err)
		s.feed.restart() // it must report nothing more
	}
	return err
}

// Trust makes the handle trust the store as it is, which must be at least as far as at. It first reads everything
// again.
func (s *Store) Trust(at store.Trace) {
	at = copied(at)
	s.trace.mu.Lock()
	s.trace.next = &at
	s.trace.mu.Unlock()
	s.feed.again()
	s.pulse.hurry()
}

// Trace returns how far the handle knows the store.
func (s *Store) Trace() store.Trace {
	known, _ := s.trace.at()
	return known
}

// quiet reports whether to ask etcd nothing, because it is not trusted.
func (t *trace) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.back != nil && t.next == nil
}

// placed checks which etcd cluster has answered.
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

// isBack reports whether etcd went back.
func isBack(err error) bool { return errors.Is(err, store.ErrBack) }
