package admin

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"berth/internal/admin/api"
	"berth/store"
)

// TestSaveState has the state rewritten, and compares the answer with the description.
func TestSaveState(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `POST /v1/store/save -> 200 "records":7 && "restart":"a write failed"`)
	got, err := h.client.SaveState(t.Context())
	if err != nil || got.StoreID != h.store.ID() || got.Restart != "a write failed" {
		t.Errorf("got %+v, %v", got, err)
	}
	h.server.cfg.Save = nil
	h.plays(t, `POST /v1/store/save -> 400 keeps its state in memory`)
	h.server.cfg.Save = func(context.Context) (api.SavedState, error) {
		return api.SavedState{}, fmt.Errorf("%w: another began there", store.ErrLocked)
	}
	h.plays(t, `POST /v1/store/save -> 409 another began there`)
}

// TestReadySaysWhy: whenever the daemon cannot serve, readyz answers 503 with the reason, but without any path.
func TestReadySaysWhy(t *testing.T) {
	h := start(t, nil)
	says := func(why string) {
		t.Helper()
		h.plays(t, `GET /readyz -> 503 $WHY without secret`, "$WHY", why)
	}
	for _, c := range []struct {
		err error
		why string
	}{
		{store.ErrAstray, "the state's file is not in its place"},
		{store.ErrNoSpace, "no space left"},
		{store.ErrUnknown, "restarts"},
		{fmt.Errorf("%w (%w)", store.ErrUnknown, store.ErrAstray), "restarts"},
		{errors.New("another"), "refuses writes"},
	} {
		h.server.cfg.Writable = func(context.Context) error { return fmt.Errorf("%w: /secret/berth.db", c.err) }
		says(c.why)
	}
	h.server.cfg.Writable = nil
	for why, c := range map[string]api.ClusterStatus{
		"untrusted since 2026-01-02T03:04:05Z, because it was restored":      {Back: &api.Back{Own: 3, All: 5}},
		"in repair since 2026-01-02T03:04:05Z, and waits for other hosts; `": {Mending: &api.Mending{By: "a"}},
	} {
		c.Away, c.Since = "secret", aMoment
		h.server.cfg.Cluster = func() api.ClusterStatus { return c }
		says("not ready: the shared store has been " + why)
	}
}
