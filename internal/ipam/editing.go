package ipam

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/store"
)

// editing is what a change keeps for edits of the plan.
type editing struct {
	collects bool
	changes  []Event   // what was written, where it collects
	match    uint64    // the revision that the first network edited must have; 0: any
	swept    []*Subnet // that were removed, whose leases are to go
	strays   []stray
	leaving  bool // a network is left to be removed in pages
	ended    bool // attachments are left to be ended in pages

	capacity *capacity // of the request that is made now
}

// capacity counts the automatic addresses of one request in one network, for its refusal (BO-7).
type capacity struct{ wanted, given int }

// errDryRun ends a transaction whose writes are not wanted.
var errDryRun = errors.New("a dry run")

// Edit makes the edits as one durable change: all of them, or none, with an *EditError that says which was refused where
// there are several.
func (s *Service) Edit(ctx context.Context, opt EditOptions, edits ...Edit) (Outcome, error) {
	if len(edits) == 0 || len(edits) > MaxEdits {
		return Outcome{}, &refusal{ErrInvalid, fmt.Sprintf("%d changes were asked for; one request makes 1 to %d", len(edits), MaxEdits)}
	}
	var out Outcome
	var did editing
	err := s.update(ctx, func(c *change) (err error) {
		out = Outcome{}
		out.Replayed, err = c.replayed(opt, &out)
		if err != nil || out.Replayed {
			return err
		}
		c.edit = editing{collects: true, match: opt.IfMatch}
		c.plans = true
		if err := c.makeEdits(edits, &out); err != nil {
			return err
		}
		did = c.edit
		if opt.DryRun {
			return errDryRun
		}
		return c.keepOutcome(opt, &out)
	})
	if opt.DryRun && errors.Is(err, errDryRun) {
		for i := range out.Changes {
			out.Changes[i].ID, out.Changes[i].Lease = 0, 0
		}
		return out, nil
	}
	switch {
	case errors.Is(err, store.ErrTooMany):
		return Outcome{}, &refusal{ErrInvalid, "these changes are more than one transaction holds; make them in several requests"}
	case errors.Is(err, store.ErrTooLarge):
		return Outcome{}, &refusal{ErrInvalid, "what one network or subnet has of tags, links, pools and exclusions would be more than one record, or the event of such a change, holds; " +
			"change less at once, or take some of it away"}
	case err != nil:
		return Outcome{}, err
	}
	s.clearAway(ctx, did)
	return out, nil
}

func (c *change) makeEdits(edits []Edit, out *Outcome) error {
	for i, e := range edits {
		result, err := e.apply(c)
		if err != nil && len(edits) > 1 {
			return &EditError{i, err}
		}
		if err != nil {
			return err
		}
		out.Results = append(out.Results, result)
	}
	out.Changes = append([]Event{}, c.edit.changes...)
	if n := c.ix.network(out.Results[0].Network); n != nil {
		out.Revision = n.revision()
	}
	return nil
}

// clearAway removes in pages what removals have left, which means nothing any more. What a failure cuts off is gone on with
// by Run and the next Open, and is no failure of the edits.
func (s *Service) clearAway(ctx context.Context, did editing) {
	s.mu.Lock()
	s.ix.orphans, s.ix.strays = append(s.ix.orphans, did.swept...), append(s.ix.strays, did.strays...)
	s.mu.Unlock()
	if did.ended {
		_ = s.finish(ctx)
		return
	}
	if len(did.swept) > 0 || len(did.strays) > 0 || did.leaving {
		_ = s.finishPlans(ctx)
	}
}

// finishPlans removes the rest of networks and subnets that were removed.
func (s *Service) finishPlans(ctx context.Context) error {
	if err := errors.Join(s.finishLeaving(ctx), s.sweepStrays(ctx)); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		var gone *Subnet
		if n := len(s.ix.orphans); n > 0 {
			gone = s.ix.orphans[n-1]
		}
		s.mu.Unlock()
		if gone == nil {
			return nil
		}
		if err := s.sweep(ctx, gone); err != nil {
			return err
		}
		s.mu.Lock()
		s.ix.orphans = slices.DeleteFunc(s.ix.orphans, func(other *Subnet) bool { return other == gone })
		s.mu.Unlock()
	}
}

// kept is the record of a key: what was asked and what came of it.
type kept struct {
	Request [32]byte `json:"request"`
	Time    uint64   `json:"time"` // of the key's other record
	Outcome Outcome  `json:"outcome"`
}

// replayed reads the outcome of the same edits before, where the key was used within KeyAge.
func (c *change) replayed(opt EditOptions, out *Outcome) (bool, error) {
	if opt.Key == "" {
		return false, nil
	}
	raw, err := c.tx.Get(outcomeKey(opt.Key))
	if err != nil || raw == nil {
		return false, err
	}
	var k kept
	if err := decodeJSON("an idempotency key", raw, &k); err != nil {
		return false, err
	}
	switch {
	case c.now.Sub(eventTime(k.Time)) >= KeyAge:
		return false, c.tx.Delete(usedKey(k.Time, opt.Key))
	case k.Request != opt.Request:
		return false, &refusal{ErrKeyReused, fmt.Sprintf("the idempotency key %q was used for another request at %s; take a new one",
			opt.Key, eventTime(k.Time).Format(time.RFC3339))}
	}
	*out = k.Outcome
	return true, nil
}

// keepOutcome writes it in the transaction of the edits, so that a key is used exactly when they are made.
func (c *change) keepOutcome(opt EditOptions, out *Outcome) error {
	if opt.Key == "" {
		return nil
	}
	k := kept{opt.Request, uint64(max(c.now.UnixMicro(), 0)), *out}
	if _, err := c.putJSON(outcomeKey(opt.Key), &k, false); err != nil {
		return err
	}
	return c.tx.Put(usedKey(k.Time, opt.Key), []byte{recordVersion})
}

func outcomeKey(key string) []byte { return append([]byte{outcomeKeys}, key...) }

func usedKey(used uint64, key string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{usedKeys}, used), key...)
}

// trimKeys removes the outcomes whose time is over, one page of them.
func (c *change) trimKeys() (removed int, err error) {
	over := uint64(max(c.now.Add(-KeyAge).UnixMicro(), 0))
	page := kindRange(usedKeys)
	page.Limit = c.page
	var keys []string
	removed, err = deleteWhile(c.tx, page, func(_ int, key []byte) bool {
		if len(key) < 9 || binary.BigEndian.Uint64(key[1:]) > over {
			return false
		}
		keys = append(keys, string(key[9:]))
		return true
	})
	for _, key := range keys {
		if err == nil {
			err = c.trimOutcome(key, over)
		}
	}
	return removed, err
}

// trimOutcome removes the outcome of a key, unless the key was used again since.
func (c *change) trimOutcome(key string, over uint64) error {
	raw, err := c.tx.Get(outcomeKey(key))
	if err != nil || raw == nil {
		return err
	}
	var k kept
	if err := decodeJSON("an idempotency key", raw, &k); err != nil || k.Time > over {
		return err
	}
	return c.tx.Delete(outcomeKey(key))
}

// rawJSON is v for an event; nil is nothing.
func rawJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}
