package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/internal/ipam"
)

// Check compares the records with the running containers, and repairs certain differences if the request asks for it.
// If the engine does not answer, the report says so and has no findings; that is no error.
func (w *Witness) Check(ctx context.Context, req ipam.CheckRequest) (ipam.CheckReport, error) {
	r, _, err := w.check(ctx, req, false)
	return r, err
}

// check is Check. A check that nobody requested repairs nothing if the engine has no Docker network of this Berth. It
// may be a different engine. next is when a finding has lasted long enough to be repaired; zero if none waits for that.
func (w *Witness) check(ctx context.Context, req ipam.CheckRequest,
	unasked bool) (r ipam.CheckReport, next time.Time, err error) {
	if req.Only != nil && req.Only.Host != w.cfg.Host {
		return r, next, ipam.Refuse(ipam.ErrInvalid, "the report is for host %q, but this Berth repairs only "+
			"host %q", req.Only.Host, w.cfg.Host)
	}
	done, err := w.take(ctx)
	if err != nil {
		return r, next, err
	}
	defer done()
	ctx = ipam.WithActor(ctx, actor)
	if req.Repair && !unasked { // a person says that this is the engine
		w.lastSeen.engine, w.lastSeen.root = "", ""
	}
	src, err := w.ask(ctx, req.View)
	if err != nil {
		return r, next, err
	}
	var found []finding
	if src.view != nil {
		found, err = w.examine(ctx, &src)
	}
	if err != nil {
		return r, next, err
	}
	if src.view == nil { // no longer
		return w.blind(src.trouble), next, nil
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
	if err == nil && (req.Repair || unasked) && !(unasked && len(src.view.Networks) == 0) {
		err = w.repair(ctx, found, req)
	}
	if err != nil {
		return r, next, err
	}
	r = report(w.cfg.Host, ipam.EngineReachable, src.view.Taken, found)
	if src.trouble != nil {
		r.Trouble = "Berth did not compare the networks of the cluster: " + src.trouble.Error()
	}
	w.checked(&r)
	return r, w.patience.next(found), nil
}

// examine returns the findings. The records are read after the view, so a difference may be over by then. It counts
// only if a second view shows it, too. If the engine is gone by then, src.view becomes nil.
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
	if rec.other {
		found = append(found, w.otherEngine(src.view))
	}
	w.tellEmpty(found)
	w.patience.note(src.view.Engine, src.view.Taken, found)
	w.learn(ctx, src, c)
	w.tellStrays(ctx, found)
	if src.own { // after an engine's start nothing may cause another look
		w.tellAstray(c)
	}
	return found, nil
}

// otherEngine is the finding about an engine that is not the one of the records.
func (w *Witness) otherEngine(view *ipam.EngineView) finding {
	return finding{Finding: ipam.Finding{Kind: ipam.OtherEngine, Host: w.cfg.Host, Detail: fmt.Sprintf("the engine "+
		"(id %s, data %s) is not the one whose containers the records name (id %s, data %s), so Berth ends no lease "+
		"because of this engine; if it is the right one, `berth check --repair` accepts it", view.Engine,
		ipam.ShortContainer(view.Root),
		w.lastSeen.engine, ipam.ShortContainer(w.lastSeen.root))}}
}

// confirmed removes findings about endpoints from one view until a later view shows them again. They may have ended
// before the records were read.
func (w *Witness) confirmed(found []finding, taken, now time.Time) []finding {
	doubts := map[key]time.Time{}
	sure := make([]finding, 0, len(found))
	for _, f := range found {
		if !f.hurried() && f.Kind != ipam.DoubledAddress {
			sure = append(sure, f)
			continue
		}
		first, known := w.doubts[f.key()]
		if !known {
			first = now
		}
		doubts[f.key()] = first
		if known && taken.After(first) {
			sure = append(sure, f)
		}
	}
	w.doubts = doubts
	return sure
}

// blind is the report of a check without a view.
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

// checked keeps the report of a check.
func (w *Witness) checked(r *ipam.CheckReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Runs++
	w.state.Last, w.state.Counts = r.Taken, maps.Clone(r.Counts)
	last := *r
	last.Findings, last.Counts = slices.Clone(r.Findings), maps.Clone(r.Counts)
	w.last = &last
}

// View reads the engine now, or returns the last view that `berth witness` has sent. It returns nil if there is none.
func (w *Witness) View(ctx context.Context) (*ipam.EngineView, error) {
	done, err := w.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	src, err := w.ask(ctx, nil)
	return src.view, err
}
