package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// What an engine runs may be more than any other body, up to a bound of its own; one such is worked on at a time.
func TestLargeView(t *testing.T) {
	w := new(watcher)
	h := start(t, w.join)
	view := ipam.EngineView{Host: "alpha", Engine: "E1"}
	for i := range 20_000 {
		view.Containers = append(view.Containers,
			ipam.EngineContainer{ID: strings.Repeat("c", 64), Name: fmt.Sprint("container-", i)})
	}
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
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://berth"+c.target,
			strings.NewReader(c.body))
		must(t, err)
		req.Header.Set("Content-Type", api.JSONType)
		res, err := h.http.Do(req)
		must(t, err)
		answer, err := io.ReadAll(res.Body)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != c.status || c.status == http.StatusRequestEntityTooLarge &&
			!strings.Contains(string(answer), api.CodeTooLarge) {
			t.Errorf("%s %s with %d bytes: status %d, want %d: %s", c.method, c.target, len(c.body), res.StatusCode,
				c.status, answer)
		}
	}

	// While a large one is worked on another one waits its turn, and a small one is not held up.
	inside, goOn := make(chan struct{}), make(chan struct{})
	w.during = func(context.Context) {
		inside <- struct{}{}
		<-goOn
	}
	answered := make(chan error, 1)
	go func() {
		_, err := h.client.Check(t.Context(), ipam.CheckRequest{View: &view})
		answered <- err
	}()
	<-inside
	if err := h.client.ShowEngine(t.Context(), view); problemCode(err) != api.CodeBusy {
		t.Errorf("a second large one: %v", err)
	}
	must(t, h.client.ShowEngine(t.Context(), aView()))
	close(goOn)
	must(t, <-answered)
	w.mu.Lock()
	w.during = nil
	w.mu.Unlock()
	must(t, h.client.ShowEngine(t.Context(), view)) // the place is free again
}

// A body that breaks off gives its place back.
func TestLargeViewBreaksOff(t *testing.T) {
	w := new(watcher)
	h := start(t, w.join)
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", "http://berth/v1/witness",
			io.MultiReader(strings.NewReader(`{"host":"`), &broken{}))
		must(t, err)
		req.Header.Set("Content-Type", api.JSONType)
		if res, err := h.http.Do(req); err == nil {
			res.Body.Close()
			t.Fatal("it was answered")
		}
	}
	view := aView()
	for i := range 20_000 {
		view.Containers = append(view.Containers,
			ipam.EngineContainer{ID: strings.Repeat("c", 64), Name: fmt.Sprint(i)})
	}
	deadline := time.Now().Add(10 * time.Second)
	for err := h.client.ShowEngine(t.Context(), view); err != nil; err = h.client.ShowEngine(t.Context(), view) {
		if problemCode(err) != api.CodeBusy || time.Now().After(deadline) { // the server may not have noticed yet
			t.Fatal(err)
		}
	}
}

// broken is a body that ends in an error.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken off") }
