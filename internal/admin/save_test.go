package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/store"
)

// TestSaveState asks for the state to be written anew, and holds what comes to the description.
func TestSaveState(t *testing.T) {
	h := start(t, nil)
	h.checked(t, "POST", api.PostSave.Path, http.StatusOK)
	got, err := h.client.SaveState(t.Context())
	if err != nil || got.StoreID != h.store.ID() || got.Records != 7 || got.Restart != "a write failed" {
		t.Errorf("got %+v, %v", got, err)
	}

	h = start(t, func(s *Server) { s.cfg.Save = nil })
	if body := h.checked(t, "POST", api.PostSave.Path, http.StatusBadRequest); !strings.Contains(body,
		"no file of its state") {
		t.Errorf("where there is no file: %s", body)
	}
	h = start(t, func(s *Server) {
		s.cfg.Save = func(context.Context) (api.SavedState, error) {
			return api.SavedState{}, fmt.Errorf("%w: another began there", store.ErrLocked)
		}
	})
	if _, err = h.client.SaveState(t.Context()); err == nil || !strings.Contains(err.Error(), "another began there") {
		t.Errorf("a refusal is answered with %v", err)
	}
}

// TestReadySaysWhy: whatever keeps the store from taking writes, readyz answers 503 and with what it is, without any
// path.
func TestReadySaysWhy(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string
	}{
		{store.ErrAstray, "the state's file is not in its place"},
		{store.ErrNoSpace, "no space left"},
		{store.ErrUnknown, "started again"},
		{fmt.Errorf("%w (%w)", store.ErrUnknown, store.ErrAstray), "started again"},
		{errors.New("another"), "refuses writes"},
	} {
		h := start(t, func(s *Server) {
			s.cfg.Writable = func(context.Context) error { return fmt.Errorf("%w: /secret/berth.db", c.err) }
		})
		res, err := h.http.Get("http://berth" + api.GetReady.Path)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), c.says) ||
			strings.Contains(string(body), "secret") {
			t.Errorf("%v: %d %q; want 503 and %q", c.err, res.StatusCode, body, c.says)
		}
	}
}
