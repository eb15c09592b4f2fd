package docker

import (
	"context"
	"slices"
	"time"

	"berth/internal/ipam"
)

// Show takes a view that another process has read (`berth witness`), for a daemon that cannot read the engine. It is
// used while it is fresh.
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

// Listen makes an onlooker the source of the engine's news, for a daemon that cannot read the engine. Questions about
// locks go to it, too. This lasts until end is called or another onlooker begins. It returns an error if the daemon has
// an engine or the host is another.
func (w *Witness) Listen(host string, by ipam.Onlooker) (hear func(*ipam.EngineNews), end func(), err error) {
	switch {
	case w.cfg.Engine != nil:
		return nil, nil, ipam.Refuse(ipam.ErrInvalid,
			"this Berth reads its engine itself; `berth witness` is for a Berth that cannot")
	case host != w.cfg.Host:
		return nil, nil, ipam.Refuse(ipam.ErrInvalid,
			"the news is from host %q, but this Berth gives the addresses of host %q", host, w.cfg.Host)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listening++
	turn := w.listening
	w.cfg.Roster.lose() // news that the previous onlooker has not sent are lost
	w.onlooker = by
	w.cfg.Roster.askWith(by.Locked)
	current := func() bool {
		w.mu.RLock()
		defer w.mu.RUnlock()
		return w.listening == turn
	}
	hear = func(news *ipam.EngineNews) {
		if current() {
			w.cfg.Roster.Hear(news)
		}
	}
	end = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.listening == turn {
			w.onlooker = nil
			w.cfg.Roster.askWith(nil)
			w.cfg.Roster.lose()
		}
	}
	return hear, end, nil
}

// Onlooker returns the current onlooker, or nil.
func (w *Witness) Onlooker() ipam.Onlooker {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.onlooker
}

// push keeps a view, unless there is a later one. It reports whether it did.
func (w *Witness) push(view *ipam.EngineView) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	// a kept view from far in the future is from before the clock was set back
	if w.pushed != nil && !view.Taken.After(w.pushed.Taken) && w.pushed.Taken.Sub(w.cfg.Now()) <= fresh {
		return false
	}
	w.pushed = view
	w.cfg.Roster.Show(view)
	return true
}

// look reads the engine after events, so that leases get the names of their containers soon.
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

// glance uses a view for everything that needs no wait.
func (w *Witness) glance(ctx context.Context, src *source) error {
	ctx = ipam.WithActor(ctx, actor)
	rec, err := w.read(ctx, src.view, false)
	if err != nil {
		return err
	}
	now := w.cfg.Now()
	c := compare(src.view, rec, now)
	w.tellEmpty(c.found)
	if err := w.repairSoon(ctx, c.found, w.confirmed(c.found, src.view.Taken, now)); err != nil {
		return err
	}
	for _, m := range c.matches {
		w.patience.seen(m.lease)
	}
	w.judge(src.view, c)
	w.learn(ctx, src, c)
	w.tellStrays(ctx, c.found)
	w.tellAstray(c)
	return w.endSuperseded(ctx, c.found)
}

// repairSoon repairs the confirmed ones of the findings that need no wait. The others need another look.
func (w *Witness) repairSoon(ctx context.Context, found, confirmed []finding) error {
	soon := func(all []finding) []finding {
		return slices.DeleteFunc(slices.Clone(all), func(f finding) bool { return !f.sure || !f.hurried() })
	}
	sure := soon(confirmed)
	if len(sure) < len(soon(found)) {
		wake(w.unsure)
	}
	for i := range sure {
		sure[i].Repairable = true
	}
	return w.repair(ctx, sure, ipam.CheckRequest{})
}

// judge updates the roster with the leases that have an endpoint, and asks for a second look if that would tell more.
func (w *Witness) judge(view *ipam.EngineView, c *comparison) {
	if w.cfg.Roster.judge(view, c) {
		wake(w.unsure)
	}
}

// learn keeps what a view shows about the holders of leases.
func (w *Witness) learn(ctx context.Context, src *source, c *comparison) {
	if src.own || w.cfg.Engine == nil {
		w.reached(src.view)
	}
	w.publish(c.matches)
	if err := w.nameLeases(ctx, src.view.Taken, c.matches); err != nil && ctx.Err() == nil {
		w.log.WithError(err).Warn("cannot write the names of containers into their leases")
	}
	if gone := c.leftStandIns(); len(gone) > 0 {
		if err := w.cfg.Service.EndStandIns(ctx, gone); err != nil && ctx.Err() == nil {
			w.log.WithError(err).Warn("cannot end the stand-in for a replica whose container is gone")
		}
	}
}

// leftStandIns returns the stand-ins whose containers no longer exist.
func (c *comparison) leftStandIns() (gone []ipam.StandIn) {
	for _, s := range c.rec.standIns {
		there := slices.ContainsFunc(c.view.Containers, func(one ipam.EngineContainer) bool { return one.ID == s.ID })
		if !there && s.Since.Before(c.view.Taken) {
			gone = append(gone, s)
		}
	}
	return gone
}

// nameLeases sets the container's name in leases without a name or with a guessed one, and the id in leases without it.
// It does so only if the lease is certainly the endpoint's (match.certain).
func (w *Witness) nameLeases(ctx context.Context, taken time.Time, matches []match) error {
	var names []ipam.LeaseName
	for _, m := range matches {
		id := ipam.ShortContainer(m.sight.container.ID)
		new := m.lease.Name == "" || m.lease.Guessed || m.lease.Container != id
		if id != "" && new && m.lease.Kind != ipam.Headroom && m.certain(taken) {
			names = append(names, ipam.LeaseName{Name: m.sight.container.Name, Container: id,
				LeaseRef: ipam.LeaseRef{Space: m.lease.Space, Address: m.lease.Address, ID: m.lease.ID}})
		}
	}
	if len(names) == 0 {
		return nil
	}
	return w.cfg.Service.NameLeases(ctx, names)
}

// certain reports whether the endpoint certainly has this lease. Equal MACs prove it. Without both MACs the lease must
// be older than the view, because the address may have changed its holder since.
func (m match) certain(taken time.Time) bool {
	if m.lease.MAC != (ipam.MAC{}) && m.sight.endpoint.MAC != (ipam.MAC{}) {
		return m.lease.MAC == m.sight.endpoint.MAC
	}
	return m.lease.Since.Before(taken)
}
