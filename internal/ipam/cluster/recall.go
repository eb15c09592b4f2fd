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

// What a host remembers of the shared store, in its own: how far it knew it (store.Trace), its own attachments and
// leases, and the plan. It is written behind, within a second, so that no request waits for it, and read when the
// shared store went back to an earlier state: then nobody else knows what this host held.
//
//	v h       the head
//	v s       since when the shared store is not trusted (shareddoubt.go)
//	v r KEY   a record, as it was there

// rememberEvery is how often is written what has changed; rememberRevision how often where that is only the revision,
// which others raise who use the same etcd.
const (
	rememberEvery    = 500 * time.Millisecond
	rememberRevision = time.Minute
	rememberPage     = 1024 // records in one transaction
)

// recallHead says how far the records go that are remembered: they are at least as new.
type recallHead struct {
	Trace store.Trace `json:"trace"`
	// the greatest id of a lease of this host: one that is older and not remembered has ended
	Last uint64 `json:"last"`
	Plan uint64 `json:"plan"` // the number of the last change of the plan
}

// recallKeys begin the keys of what is remembered; ledger/keys.go has all letters.
const recallKeys = 'v'

func recallHeadKey() []byte             { return []byte{recallKeys, 'h'} }
func recallKey(key string) []byte       { return append([]byte{recallKeys, 'r'}, key...) }
func recalledRecords() store.Range      { return store.Prefix([]byte{recallKeys, 'r'}) }
func recalledAs(key []byte) (of string) { return string(key[2:]) }

// Remembered tells which records of a shared store may have to be remembered: all but what is told and done.
func Remembered(key []byte) bool {
	switch key[0] {
	case ledger.AttachmentKeys, ledger.DynamicKeys, ledger.HostKeys, ledger.LeaseKeys, ledger.NetworkKeys,
		ledger.SettingKeys, ledger.SpaceKeys, allocator.StandInKeys, ledger.SubnetKeys,
		ledger.AccountKeys, ledger.ElasticRangeKeys, ledger.ElasticKeys, ledger.AppliedKeys:
		return true
	}
	return false
}

// Bundled is what the keys of the records begin with of which a shared store puts several under one key of its own:
// those of events, which each host numbers apart from the others (ledger.Change.Event).
func Bundled() []byte { return []byte{ledger.EventKeys} }

// RecalledTrace is how far the host whose own store st is knew the shared one; nil: it has known none.
func RecalledTrace(ctx context.Context, st store.Store) (*store.Trace, error) {
	head, err := readRecallHead(ctx, st)
	if err != nil {
		return nil, err
	}
	if head == nil {
		return nil, nil
	}
	return &head.Trace, nil
}

func readRecallHead(ctx context.Context, st store.Store) (head *recallHead, err error) {
	err = st.View(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(recallHeadKey())
		if err != nil {
			return err
		}
		if raw == nil {
			return nil
		}
		head = new(recallHead)
		return ipam.DecodeJSON("how far the shared store is known", raw, head)
	})
	return head, err
}

// recall is what Shared keeps of it in memory.
type recall struct {
	head    recallHead
	known   map[string]struct{} // the keys of the records that are remembered; nil: it is not known which are
	written time.Time           // the head
}

// remember has what is written to the shared store be remembered, until ctx ends, and once more then.
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

// rememberTime is how long it is waited for the shared store to say what was written.
const rememberTime = 2 * time.Second

// rememberOnce remembers what has been written since the last time. It is all or nothing only for the head, which comes
// last.
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
		return nil // it is told the next time, or nothing was read yet
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
			return nil // all of it comes next
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

// toRemember is what is remembered of a record; nil: nothing. Of leases that are this host's own, and of those that a
// person has planned; of attachments and stand-ins only its own; of what edges say only what may be in force. The head
// follows.
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
