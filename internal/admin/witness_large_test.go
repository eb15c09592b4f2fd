package admin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// largeView is a view so large that its body is read alone.
func largeView() ipam.EngineView {
	view := ipam.EngineView{Host: "alpha", Engine: "E1"}
	for i := range 20_000 {
		one := ipam.EngineContainer{ID: strings.Repeat("c", 64), Name: fmt.Sprint(i)}
		view.Containers = append(view.Containers, one)
	}
	return view
}

// The view of an engine may be larger than any other body, up to its own bound. One at a time is processed
// (TestTurns).
func TestLargeView(t *testing.T) {
	w := new(watcher)
	h := start(t, w.join)
	view := largeView()
	must(t, h.client.ShowEngine(t.Context(), view))
	if len(w.shown) != 1 || len(w.shown[0].Containers) != 20_000 {
		t.Fatalf("shown were %d", len(w.shown))
	}
	big := func(size int) string {
		one := `{"name":"` + strings.Repeat("x", 1000) + `"},`
		text := `{"host":"","engine":"","taken":"2026-01-02T03:04:05Z","networks":[],"containers":[{}]}`
		rest := size - len(text)
		text = strings.Replace(text, `[{`, `[`+strings.Repeat(one, rest/len(one))+`{`, 1)
		return text + strings.Repeat(" ", rest%len(one))
	}
	for _, c := range []struct {
		method, target, body string
		status               int
	}{
		{"PUT", "/v1/witness", big(int(api.PutWitness.MaxBody)), 200},
		{"PUT", "/v1/witness", big(int(api.PutWitness.MaxBody) + 1), 413},
		{"POST", "/v1/check", big(int(api.PutWitness.MaxBody) + 1), 413},
		{"POST", "/v1/edits", big(api.MaxBody + 1), 413},
		{"PUT", "/v1/witness", `{"containers":[` + strings.Repeat("{},", maxThings) + `{}]}`, 413},
		{"PUT", "/v1/witness", `{"host":"` + strings.Repeat("x", maxStretch) + `"}`, 413},
		{"PUT", "/v1/witness", `{"containers":[{"id":"a"}` + strings.Repeat(" ", maxStretch) + `]}`, 413},
	} {
		res, err := h.http.Do(h.request(t, step{method: c.method, target: c.target, body: c.body}))
		must(t, err)
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s %s with %d bytes: %s, want %d", c.method, c.target, len(c.body), res.Status, c.status)
		}
	}
}

// A body that breaks off frees its place.
func TestLargeViewBreaksOff(t *testing.T) {
	w := new(watcher)
	h := start(t, w.join)
	for range 3 {
		body := io.MultiReader(strings.NewReader(`{"host":"`), iotest.ErrReader(errors.New("broken off")))
		if _, err := h.open(t, "PUT /v1/witness", body); err == nil || code(err) != "" {
			t.Fatal("it was answered", err)
		}
	}
	view := largeView()
	deadline := time.Now().Add(10 * time.Second)
	for err := h.client.ShowEngine(t.Context(), view); err != nil; err = h.client.ShowEngine(t.Context(), view) {
		if code(err) != api.CodeBusy || time.Now().After(deadline) { // the server may not have noticed yet
			t.Fatal(err)
		}
	}
}
