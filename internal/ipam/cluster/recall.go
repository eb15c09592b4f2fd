package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// What a host remembers of the shared store, in its own store: the extent of its knowledge (store.Trace), its own
// attachments and leases, and the plan. It is written within a second, in the background, so no request waits for it.
// It is read when the shared store went back to an earlier state, because then nobody else knows what this host held.
//
//	v h       the head
//	v s       since when the shared store is not trusted (sharedstate.go)
//	v r KEY   a record, as it was there

// rememberEvery is the interval in which changes are written. rememberRevision is the interval if only the revision has
// changed, which other users of the same etcd raise.
const (
	rememberEvery    = 500 * time.Millisecond
	rememberRevision = time.Minute
	rememberPage     = 1024 // records in one transaction
)

// recallHead says how recent the remembered records are. They are at least as new as it says.
type recallHead struct {
	Trace store.Trace `json:"trace"`
	// the greatest lease id of this host; a lease with a lower id that is not remembered has ended
	Last uint64 `json:"last"`
	Plan uint64 `json:"plan"` // the number of the last change of the plan
}

// recallKeys is the first byte of the keys of what is remembered; ledger/keys.go lists all.
const recallKeys = 'v'

func recallHeadKey() []byte             { return []byte{recallKeys, 'h'} }
func recallKey(key string) []byte       { return append([]byte{recallKeys, 'r'}, key...) }
func recalledRecords() store.Range      { return store.Prefix([]byte{recallKeys, 'r'}) }
func recalledAs(key []byte) (of string) { return string(key[2:]) }

// Remembered reports whether a record of a shared store may have to be remembered. Records of finished things, such as
// events, need not.
func Remembered(key []byte) bool {
	switch key[0] {
	case ledger.AttachmentKeys, ledger.DynamicKeys, ledger.HostKeys, ledger.LeaseKeys, ledger.NetworkKeys,
		ledger.SettingKeys, ledger.SpaceKeys, allocator.StandInKeys, ledger.SubnetKeys,
		ledger.AccountKeys, ledger.ElasticRangeKeys, ledger.ElasticKeys, ledger.AppliedKeys:
		return true
	}
	return false
}

// Bundled returns the prefix of the keys of which a shared store puts several records under one key. These are events,
// which each host numbers separately (ledger.Change.Event).
func Bundled() []byte { return []byte{ledger.EventKeys} }

// RecalledTrace returns how recent the knowledge of the host is whose own store st is. It is nil if the host knows no
// shared store.
func RecalledTrace(ctx context.Context, st store.Store) (*store.Trace, error) {
	head, err := readRecallHead(ctx, st)
	if err != nil || head == nil {
		return nil, err
	}
	return &head.Trace, nil
}

func readRecallHead(ctx context.Context, st store.Store) (head *recallHead, err error) {
	err = st.View(ctx, func(tx store.Tx) (err error) {
		head, err = ledger.ReadJSON[recallHead](tx, recallHeadKey(), "the known position in the shared store")
		return err
	})
	return head, err
}

// recall is the part that Shared has in memory.
type recall struct {
	head    recallHead
	known   map[string]struct{} // the keys of the remembered records; nil: unknown
	written time.Time           // when the head was written
}

// remember remembers what is written to the shared store, until ctx ends and once more then.
func (s *Shared) remember(ctx context.Context) {
	again := time.NewTicker(rememberEvery)
	defer again.Stop()
	told := ""
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-again.C:
		}
		err := s.rememberOnce(context.WithoutCancel(ctx))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != told && text != "" {
			s.warn(err)
		}
		told = text
	}
}

// rememberTime bounds the wait for the shared store's changes.
const rememberTime = 2 * time.Second

// rememberOnce remembers what was written since the last call. It writes in several transactions, and the head in the
// last one.
func (s *Shared) rememberOnce(ctx context.Context) error {
	if s.written == nil {
		return nil
	}
	s.recalling.Lock()
	defer s.recalling.Unlock()
	r := &s.recall
	if s.recallStale {
		r.known, s.recallStale = nil, false
		s.forgotten()
	}
	asking, cancel := context.WithTimeout(ctx, rememberTime)
	defer cancel()
	w, err := s.written(asking)
	if err != nil || len(w.Trace.Counts) == 0 && w.Trace.Place == 0 {
		return nil // the next call gets it, or nothing was read yet
	}
	err = s.writeRecall(ctx, r, w)
	if err != nil {
		r.known = nil
		s.forgotten()
	}
	return err
}

func (s *Shared) writeRecall(ctx context.Context, r *recall, w store.Written) error {
	if w.Whole || r.known == nil {
		if !w.Whole {
			s.forgotten()
			return nil // the next call gets all records
		}
		head, err := readRecallHead(ctx, s.own)
		if err != nil {
			return err
		}
		if head != nil {
			r.head = *head
		}
		if r.known, err = readRecallKeys(ctx, s.own); err != nil {
			return err
		}
		for key := range r.known {
			if _, there := w.Records[key]; !there {
				w.Records[key] = nil
			}
		}
	}
	head := r.head
	head.Trace = w.Trace
	var notes []note
	for _, key := range slices.Sorted(maps.Keys(w.Records)) {
		value := s.toRemember(key, w.Records[key], &head)
		_, known := r.known[key]
		switch {
		case value != nil:
			r.known[key] = struct{}{}
			notes = append(notes, note{recallKey(key), append([]byte{}, value...)})
		case known:
			delete(r.known, key)
			notes = append(notes, note{key: recallKey(key)})
		}
	}
	sameTrace := head.Trace.Place == r.head.Trace.Place && maps.Equal(head.Trace.Counts, r.head.Trace.Counts)
	if len(notes) == 0 && sameTrace && s.now().Sub(r.written) < rememberRevision {
		return nil
	}
	last, err := noteJSON(recallHeadKey(), &head)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(append(notes, last), rememberPage) {
		if err := s.keepNotes(ctx, page); err != nil {
			return err
		}
	}
	r.head, r.written = head, s.now()
	return nil
}

// toRemember returns what to remember of a record; nil: nothing. Of leases it remembers this host's own and those with
// a reservation or an external holder. Of attachments and stand-ins it remembers this host's own, and of the edges'
// reports those that may be in force. It also updates the head.
func (s *Shared) toRemember(key string, value []byte, head *recallHead) []byte {
	if value == nil {
		return nil
	}
	switch k := []byte(key); k[0] {
	case ledger.LeaseKeys:
		_, addr, ok := ledger.LeaseKeyParts(k)
		if !ok {
			return nil
		}
		l, err := ipam.DecodeLease(addr, value)
		if err != nil {
			return nil
		}
		if l.Host == s.host && l.Attachment != (ipam.ID{}) {
			head.Last = max(head.Last, l.ID)
		}
		if !l.Held() && l.Reservation == nil || l.Held() && l.Reservation == nil && l.Attachment != (ipam.ID{}) &&
			l.Host != s.host {
			return nil
		}
	case ledger.AttachmentKeys:
		at, ok := ledger.Decoded[ipam.Attachment](value)
		if !ok || at.Value.Host != s.host {
			return nil
		}
	case allocator.StandInKeys:
		in, ok := ledger.Decoded[ipam.StandIn](value)
		if !ok || in.Value.Host != s.host {
			return nil
		}
	case ledger.AppliedKeys:
		at, ok := ledger.Decoded[ipam.Applied](value)
		if !ok || !at.Value.InForce {
			return nil
		}
	case ledger.SettingKeys:
		if key == string(ledger.PlanKey()) {
			head.Plan = planNumber(value)
		}
		if key == string(ledger.MendKey()) {
			return nil
		}
	}
	return value
}

func readRecallKeys(ctx context.Context, st store.Store) (keys map[string]struct{}, err error) {
	err = st.View(ctx, func(tx store.Tx) error {
		keys = map[string]struct{}{}
		for rec, err := range tx.Scan(recalledRecords()) {
			if err != nil {
				return err
			}
			keys[recalledAs(rec.Key)] = struct{}{}
		}
		return nil
	})
	return keys, err
}

// keepNotes makes writes to the host's own store, all or none.
func (s *Shared) keepNotes(ctx context.Context, notes []note) error {
	return s.own.Update(ctx, func(tx store.Tx) error {
		for _, n := range notes {
			var err error
			if n.value == nil {
				err = tx.Delete(n.key)
			} else {
				err = tx.Put(n.key, n.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
