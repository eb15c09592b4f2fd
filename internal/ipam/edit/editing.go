package edit

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("a dry run")

// run is the one change that makes the edits of a request, with the state that they share.
type run struct {
	*ledger.Change
	names newNames // the DNS names that the request assigns

	match   uint64 // the required revision of the first edited network; 0: any
	leaving bool   // a network is left to be removed in batches
	ended   bool   // attachments are left to be ended in batches

	goesOn bool // continue after a refusal: nothing is committed

	imports *Importing // the import that makes the edits; nil: none

	at       int         // the index of the current edit
	result   ipam.Result // of the current edit
	capacity capacity
	edits    []ipam.Edit // all edits of the request

	deploy    ipam.ID           // the deploy that sends the edits; zero: none
	locks     []ipam.DeployLock // the project locks, once read
	locksRead bool
}

// Edit makes all edits as one durable change, or none. If there are several, an *EditError identifies the refused one.
func (s Editor) Edit(ctx context.Context, opt ipam.EditOptions, edits ...ipam.Edit) (ipam.Outcome, error) {
	if err := opt.Fits(len(edits)); err != nil {
		return ipam.Outcome{}, err
	}
	if err := s.prepare(ctx, opt, edits); err != nil {
		return ipam.Outcome{}, err
	}
	var out ipam.Outcome
	did := new(run)
	err := allocator.Update(ctx, s.ledger, func(change *ledger.Change) (err error) {
		c := &run{Change: change, match: opt.IfMatch, deploy: opt.Deploy, goesOn: opt.Refused}
		out = ipam.Outcome{}
		out.Replayed, err = replayed(c.Change, opt, &out)
		if err != nil {
			return err
		}
		if out.Replayed {
			return nil
		}
		c.CollectEvents()
		c.TouchPlan()
		if err := makeEdits(c, edits, &out); err != nil {
			return err
		}
		did = c
		if opt.DryRun {
			return errDryRun
		}
		return keepOutcome(c.Change, opt, &out)
	})
	if opt.DryRun && errors.Is(err, errDryRun) {
		for i := range out.Changes {
			out.Changes[i].ID, out.Changes[i].Lease = 0, 0
		}
		return out, nil
	}
	switch {
	case errors.Is(err, store.ErrTooMany) && opt.DryRun:
		return ipam.Outcome{}, ipam.Refuse(ipam.ErrInvalid, "these changes do not fit in one transaction, the limit "+
			"of a dry run; without a dry run, Berth removes an account or changes a network in several "+
			"transactions").Advise(ipam.DoListElastic)
	case errors.Is(err, store.ErrTooMany):
		return ipam.Outcome{}, ipam.Refuse(ipam.ErrInvalid, "these changes exceed one transaction; split them into "+
			"several requests")
	case errors.Is(err, store.ErrTooLarge):
		return ipam.Outcome{}, ipam.Refuse(ipam.ErrInvalid, "the tags, links, pools and exclusions of one network or "+
			"subnet would not fit in one record or event; change fewer at once, or remove some")
	case err != nil:
		return ipam.Outcome{}, err
	}
	clearAway(ctx, s.ledger, did)
	return out, nil
}

// prepare does the work that is too large for one transaction, before the edits. It does nothing if the key was used
// before.
func (s Editor) prepare(ctx context.Context, opt ipam.EditOptions, edits []ipam.Edit) error {
	if opt.DryRun {
		return nil
	}
	if opt.Key != "" {
		made := false
		err := s.ledger.View(ctx, func(tx store.Tx) error {
			raw, err := tx.Get(outcomeKey(opt.Key))
			made = raw != nil
			return err
		})
		if err != nil || made {
			return err
		}
	}
	return elastic.Shrink(ctx, s.ledger, edits)
}

func makeEdits(c *run, edits []ipam.Edit, out *ipam.Outcome) error {
	c.edits = edits
	for i, e := range edits {
		c.at = i
		var result ipam.Result
		err := unlocked(c, e)
		if err == nil {
			result, err = apply(c, e)
		}
		switch refused, is := ipam.RefusedOf(i, err); {
		case err != nil && c.goesOn && is:
			out.Refused, result = append(out.Refused, refused), ipam.Result{}
		case err != nil && len(c.capacity.short) == 0:
			return ofSeveral(edits, i, err)
		case err != nil:
			return c.tooFew(out) // report the earlier shortage
		}
		out.Results = append(out.Results, result)
	}
	if err := c.tooFew(out); err != nil {
		return err
	}
	out.Changes = append([]ipam.Event{}, c.Collected()...)
	out.Revision = revision(c.Change, edits[0], &out.Results[0])
	return nil
}

// tooFew refuses edits that want more addresses than there are. If all refusals are requested, it adds one for each
// distinct shortage.
func (of *run) tooFew(out *ipam.Outcome) error {
	all := refusals(&of.capacity)
	switch {
	case len(all) == 0:
		return nil
	case !of.goesOn:
		return ofSeveral(of.edits, all[0].edit, all[0].err)
	}
	for _, one := range all {
		refused, _ := ipam.RefusedOf(one.edit, one.err)
		out.Refused = append(out.Refused, refused)
	}
	return nil
}

// revision returns the revision after all edits of the first edit's object: an elastic address, otherwise a network. It
// is 0 for neither.
func revision(c *ledger.Change, first ipam.Edit, came *ipam.Result) uint64 {
	if addr, is := elastic.Edited(first, came); is {
		if e := c.Index().Elastic(addr); e != nil {
			return e.ID
		}
		return 0
	}
	if n := c.Index().Network(came.Network); n != nil {
		return n.LastRevision()
	}
	return 0
}

// apply makes one edit or refuses it.
func apply(c *run, e ipam.Edit) (ipam.Result, error) {
	if err := elastic.MayAsk(c.Change, e); err != nil {
		return ipam.Result{}, err
	}
	if rule := rules[reflect.TypeOf(e)]; rule != nil {
		c.result = ipam.Result{}
		err := rule(c, e)
		return c.result, err
	}
	result, mine, err := elastic.Apply(c.Change, e, c.match)
	if !mine {
		return result, ipam.RefuseAs("", ipam.ErrInvalid, "this Berth has no operation %q", e.Op())
	}
	c.match = 0
	return result, err
}

// ofSeveral adds the index to the refusal of one edit, if there are several.
func ofSeveral(edits []ipam.Edit, i int, err error) error {
	if len(edits) > 1 {
		return &ipam.EditError{Index: i, Err: err}
	}
	return err
}

// clearAway removes the leftovers of removals in batches. They no longer mean anything, so a failure here is no failure
// of the edits. Run and the next Open continue.
func clearAway(ctx context.Context, s *ledger.Ledger, did *run) {
	switch {
	case did.ended:
		_ = Finish(ctx, s)
	case did.leaving || s.HasLeftovers():
		_ = finishPlans(ctx, s)
	}
}

// finishPlans removes the rest of removed networks and subnets.
func finishPlans(ctx context.Context, s *ledger.Ledger) error {
	if err := errors.Join(finishLeaving(ctx, s), sweepStrays(ctx, s)); err != nil {
		return err
	}
	return sweepOrphans(ctx, s)
}

// sweepOrphans removes the leftovers of removed subnets.
func sweepOrphans(ctx context.Context, s *ledger.Ledger) error {
	for {
		gone := s.Orphan()
		if gone == nil {
			return nil
		}
		if err := allocator.Sweep(ctx, s, gone); err != nil {
			return err
		}
		s.OrphanSwept(gone)
	}
}

// Kept is the record of an idempotency key: the request's digest and its outcome.
type Kept struct {
	Request [32]byte     `json:"request"`
	Time    uint64       `json:"time"` // the time in the key's other record
	Outcome ipam.Outcome `json:"outcome"`
}

// KeptFor reads the record of an idempotency key. It returns nil if there is none.
func KeptFor(tx store.Tx, key string) (*Kept, error) {
	return ledger.ReadJSON[Kept](tx, outcomeKey(key), "an idempotency key")
}

// replayed reads the earlier outcome if the key was used within KeyAge.
func replayed(c *ledger.Change, opt ipam.EditOptions, out *ipam.Outcome) (bool, error) {
	if opt.Key == "" {
		return false, nil
	}
	k, err := KeptFor(c.Tx(), opt.Key)
	if err != nil || k == nil {
		return false, err
	}
	switch {
	case c.Now().Sub(ipam.EventTime(k.Time)) >= ipam.KeyAge:
		return false, c.Tx().Delete(usedKey(k.Time, opt.Key))
	case k.Request != opt.Request:
		return false, ipam.Refuse(ipam.ErrKeyReused, "the idempotency key %q was used for another request at %s; use "+
			"a new key", opt.Key, ipam.EventTime(k.Time).Format(time.RFC3339))
	}
	*out = k.Outcome
	return true, nil
}

// keepOutcome writes the outcome in the transaction of the edits, so that a key counts as used exactly if they are
// made.
func keepOutcome(c *ledger.Change, opt ipam.EditOptions, out *ipam.Outcome) error {
	if opt.Key == "" {
		return nil
	}
	k := Kept{opt.Request, uint64(max(c.Now().UnixMicro(), 0)), *out}
	if _, err := c.PutJSON(outcomeKey(opt.Key), &k); err != nil {
		return err
	}
	return c.Tx().Put(usedKey(k.Time, opt.Key), []byte{ipam.RecordVersion})
}

// The key letters of outcomes and of the times of their use. ledger/keys.go lists all letters.
const (
	outcomeKeys = 'k'
	usedKeys    = 't'
)

// outcomeKey returns the store key for the outcome of an idempotency key.
func outcomeKey(key string) []byte { return append([]byte{outcomeKeys}, key...) }

func usedKey(used uint64, key string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{usedKeys}, used), key...)
}

// TrimKeys removes one batch of expired outcomes.
func TrimKeys(c *ledger.Change) (removed int, err error) {
	over := uint64(max(c.Now().Add(-ipam.KeyAge).UnixMicro(), 0))
	page := ledger.KindRange(usedKeys)
	page.Limit = c.Page()
	var keys []string
	removed, err = ledger.DeleteWhile(c.Tx(), page, func(used store.Record) bool {
		if len(used.Key) < 9 || binary.BigEndian.Uint64(used.Key[1:]) > over {
			return false
		}
		keys = append(keys, string(used.Key[9:]))
		return true
	})
	for _, key := range keys {
		if err == nil {
			err = trimOutcome(c, key, over)
		}
	}
	return removed, err
}

// trimOutcome removes the outcome of a key, unless the key was used again.
func trimOutcome(c *ledger.Change, key string, over uint64) error {
	k, err := KeptFor(c.Tx(), key)
	if err != nil || k == nil || k.Time > over {
		return err
	}
	return c.Tx().Delete(outcomeKey(key))
}

// rawJSON encodes v for an event. Nil stays nil.
func rawJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}
