package docker

import (
	"context"
	"maps"
	"slices"
	"time"

	"berth/internal/ipam"
)

// Check compares the records with what runs, at this moment, and puts right what is sure if that is wanted. An engine
// that does not answer is no error: the report says so, and finds nothing.
func (w *Witness) Check(ctx context.Context, req ipam.CheckRequest) (ipam.CheckReport, error) {
	return w.check(ctx, req, false)
}

// check is Check. One that nobody has asked for repairs nothing by an engine without any Docker network of Berth's:
// that may be another engine than the one that Berth serves.
func (w *Witness) check(ctx context.Context, req ipam.CheckRequest, unasked bool) (ipam.CheckReport, error) {
	if req.Only != nil && req.Only.Host != w.cfg.Host {
		return ipam.CheckReport{},
			refuse(ipam.ErrInvalid, "the report is of host %q, and this Berth repairs what is wrong on host %q",
				req.Only.Host, w.cfg.Host)
	}
	done, err := w.take(ctx)
	if err != nil {
		return ipam.CheckReport{}, err
	}
	defer done()
	ctx = ipam.WithActor(ctx, actor)
	src, err := w.ask(ctx, req.View)
	if err != nil {
		return ipam.CheckReport{}, err
	}
	var found []finding
	if src.view != nil {
		found, err = w.examine(ctx, &src)
	}
	if err != nil {
		return ipam.CheckReport{}, err
	}
	if src.view == nil { // or not any more
		return w.blind(src.trouble), nil
	}
	for i := range found {
		f := &found[i]
		f.Seen = w.patience.first[f.key()]
		f.Repairable = f.sure && (!f.slow || w.patience.ripe(f, src.view.Taken))
		if f.sure && !f.Repairable {
			f.Detail += "; " + w.due(f, src.view.Taken)
		}
	}
	err = w.endSuperseded(ctx, found)
	if err == nil && req.Repair && !(unasked && len(src.view.Networks) == 0) {
		err = w.repair(ctx, found, req)
	}
	if err != nil {
		return ipam.CheckReport{}, err
	}
	r := report(w.cfg.Host, ipam.EngineReachable, src.view.Taken, found)
	if src.trouble != nil {
		r.Trouble = "the networks of the cluster were not compared: " + src.trouble.Error()
	}
	w.checked(&r)
	return r, nil
}

// examine finds what is wrong. What the engine said before the records were read may have been over by then, so that
// only that counts which a second view shows, too. If the engine is gone by then, src has no view any more.
func (w *Witness) examine(ctx context.Context, src *source) ([]finding, error) {
	rec, err := w.read(ctx, src.view, true)
	if err != nil {
		return nil, err
	}
	src.trouble = rec.partial
	now := w.cfg.Now()
	c := compare(src.view, rec, now)
	found := c.found
	w.judge(src.view, c)
	switch {
	case !src.own:
		found = w.confirmed(found, src.view.Taken, now)
	case len(found) > 0:
		again, err := w.readEngine(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			w.lost(err)
			*src = source{trouble: err}
			return nil, nil
		}
		second := compare(again, rec, now)
		w.judge(again, second)
		found = both(found, second.found)
	}
	w.tellEmpty(found)
	w.patience.note(src.view.Engine, src.view.Taken, found)
	w.learn(ctx, src, c)
	w.tellStrays(ctx, found)
	if src.own { // after an engine's start nothing may happen that would be looked at
		w.tellAstray(c)
	}
	return found, nil
}

// confirmed leaves out what a single view of another's says of endpoints: it may have been over when the records were
// read. It counts when a later view shows the same endpoint.
func (w *Witness) confirmed(found []finding, taken, now time.Time) []finding {
	doubts := map[key]time.Time{}
	sure := make([]finding, 0, len(found))
	for _, f := range found {
		if f.Kind != ipam.UncoveredAddress && f.Kind != ipam.DoubledAddress && f.Kind != ipam.OutdatedLease {
			sure = append(sure, f)
			continue
		}
		doubts[f.key()] = now
		if before, known := w.doubts[f.key()]; known && taken.After(before) {
			sure = append(sure, f)
		}
	}
	w.doubts = doubts
	return sure
}

// blind is the report of a check that saw nothing.
func (w *Witness) blind(trouble error) ipam.CheckReport {
	r := report(w.cfg.Host, ipam.NoEngine, w.cfg.Now(), nil)
	if trouble != nil {
		r.Engine, r.Trouble = ipam.EngineUnreachable, trouble.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Runs++
	w.state.Last = w.cfg.Now()
	return r
}

// checked notes what a check came to.
func (w *Witness) checked(r *ipam.CheckReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Runs++
	w.state.Last, w.state.Counts = r.Taken, maps.Clone(r.Counts)
	last := *r
	last.Findings, last.Counts = slices.Clone(r.Findings), maps.Clone(r.Counts)
	w.last = &last
}

// View is what runs at this moment, as far as it can be seen; nil: it cannot.
func (w *Witness) View(ctx context.Context) (*ipam.EngineView, error) {
	done, err := w.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	src, err := w.ask(ctx, nil)
	return src.view, err
}
