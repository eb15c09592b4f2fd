package docker

import (
	"context"

	"berth/internal/ipam"
)

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
