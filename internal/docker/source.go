package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/internal/ipam"
)

// source is the origin of a check's view.
type source struct {
	view    *ipam.EngineView // nil: there is none
	own     bool             // this daemon has just read it, and can read again
	trouble error            // why there is no view, or why some records are missing
}

// ask reads the engine. If it cannot, it takes the view of the request, or the last one that was pushed.
func (w *Witness) ask(ctx context.Context, req *ipam.EngineView) (source, error) {
	var failed error
	if w.cfg.Engine != nil {
		view, err := w.readEngine(ctx)
		if err == nil {
			return source{view: view, own: true}, nil
		}
		if ctx.Err() != nil {
			return source{}, ctx.Err()
		}
		w.lost(err)
		failed = err
	}
	if req != nil {
		if err := w.accept(req); err != nil {
			return source{}, err
		}
		if w.cfg.Engine == nil {
			w.cfg.Roster.showOnce(req)
		}
		return source{view: req}, nil
	}
	w.mu.RLock()
	pushed := w.pushed
	w.mu.RUnlock()
	if pushed == nil {
		return source{trouble: failed}, nil
	}
	if err := w.old(pushed); err != nil {
		err = errors.Join(failed, err)
		w.lost(err)
		return source{trouble: err}, nil
	}
	return source{view: pushed}, nil
}

// old tells that a view which berth witness has sent is not fresh any more.
func (w *Witness) old(pushed *ipam.EngineView) error {
	age := w.cfg.Now().Sub(pushed.Taken)
	if age <= fresh {
		return nil
	}
	return fmt.Errorf("the last report from berth witness is %s old", age.Round(time.Second))
}

// readEngine reads a view. Its time is the beginning of the reading.
func (w *Witness) readEngine(ctx context.Context) (*ipam.EngineView, error) {
	taken := w.cfg.Now()
	view, err := w.cfg.Engine.View(ctx, w.cfg.Host, w.cfg.Drivers)
	if err != nil {
		return nil, err
	}
	view.Taken = taken
	w.cfg.Roster.Show(&view)
	if w.cfg.Viewed != nil {
		w.cfg.Viewed(&view)
	}
	return &view, nil
}

// accept refuses a view of another host, an old one, and one from the future.
func (w *Witness) accept(view *ipam.EngineView) error {
	age := w.cfg.Now().Sub(view.Taken)
	switch {
	case view.Host != w.cfg.Host:
		return ipam.Refuse(ipam.ErrInvalid,
			"the view is of host %q, but this Berth gives the addresses of host %q; give --host %s", view.Host,
			w.cfg.Host, w.cfg.Host)
	case age > fresh:
		return ipam.Refuse(ipam.ErrInvalid,
			"the view was taken %s ago; a view older than %s does not show which containers run now",
			age.Round(time.Second), fresh)
	case age < -fresh:
		return ipam.Refuse(ipam.ErrInvalid, "the view is from %s in the future: set the clock of its sender",
			(-age).Round(time.Second))
	}
	return nil
}
