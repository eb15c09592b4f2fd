package docker

import (
	"context"

	"berth/internal/ipam"
)

// Show takes a view that another has read, for a daemon that may not read the engine (`berth witness`). It counts as the engine's
// word for as long as it is fresh.
func (w *Witness) Show(ctx context.Context, view ipam.EngineView) error {
	if err := w.accept(&view); err != nil {
		return err
	}
	done, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !w.push(&view) {
		return nil
	}
	return w.glance(ctx, &source{view: &view})
}

// push keeps a view, unless a later one is there.
func (w *Witness) push(view *ipam.EngineView) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pushed != nil && !view.Taken.After(w.pushed.Taken) {
		return false
	}
	w.pushed = view
	return true
}

// look reads the engine after events, so that leases have the names of their containers soon.
func (w *Witness) look(ctx context.Context) error {
	done, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	view, err := w.readEngine(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.lost(err)
		}
		return err
	}
	return w.glance(ctx, &source{view: view, own: true})
}

// glance does with a view what asks for no second one.
func (w *Witness) glance(ctx context.Context, src *source) error {
	ctx = ipam.WithActor(ctx, actor)
	rec, err := w.read(ctx, src.view, false)
	if err != nil {
		return err
	}
	c := compare(src.view, rec, w.cfg.Now())
	for _, m := range c.matches {
		w.patience.seen(m.lease)
	}
	w.learn(ctx, src, c.matches)
	return w.endSuperseded(ctx, c.found)
}

// learn keeps what a view tells of those who have leases.
func (w *Witness) learn(ctx context.Context, src *source, matches []match) {
	if src.own || w.cfg.Engine == nil {
		w.reached(src.view.Taken)
	}
	w.publish(matches)
	if err := w.nameLeases(ctx, matches); err != nil && ctx.Err() == nil {
		w.log.WithError(err).Warn("leases did not get the names of their containers")
	}
}

// nameLeases gives the names of their containers to leases that have none. It goes by the MAC: an address alone may have changed hands
// between the view and the records.
func (w *Witness) nameLeases(ctx context.Context, matches []match) error {
	var names []ipam.LeaseName
	for _, m := range matches {
		if m.lease.Name == "" && m.lease.MAC != (ipam.MAC{}) && m.lease.MAC == m.sight.endpoint.MAC && m.sight.container.ID != "" {
			names = append(names, ipam.LeaseName{Name: m.sight.container.Name,
				LeaseRef: ipam.LeaseRef{Space: m.lease.Space, Address: m.lease.Address, ID: m.lease.ID}})
		}
	}
	if len(names) == 0 {
		return nil
	}
	return w.cfg.Service.NameLeases(ctx, names)
}
