//go:build engine

package engine

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"berth/test/lab"
)

// TestNoQuestions: an engine that sends names is asked nothing about who starts, and Berth puts no container back. It
// only reads what runs.
func TestNoQuestions(t *testing.T) {
	only(t, names)
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	socket := filepath.Join(t.TempDir(), "docker.sock")
	lab.Between(t, socket, machineEngine.Socket, func(r *http.Request, pass func()) {
		call := r.Method + " " + path(r.URL.Path)
		mu.Lock()
		asked[call]++
		mu.Unlock()
		pass()
	})
	h, _ := witnessed(t, 233, "--docker-host", "unix://"+socket)
	n := h.network("--subnet", h.v4("0/24"))
	all := []string{h.container(n), h.container(n), h.container(n), h.container(n)}
	had := h.places(n, all...)
	const starts = 3
	for range starts {
		h.docker(append([]string{"restart", "--time", "0"}, all...)...)
	}
	for name, at := range h.places(n, all...) {
		if had[name] != at {
			h.Errorf("%s had %s, and has %s", name, had[name], at)
		}
	}
	h.finds()
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d containers started %d times; the engine was asked %v", len(all), starts, asked)
	for call, times := range asked {
		// one of each container shows the addresses in its configuration
		if strings.HasPrefix(call, "POST ") || call == "GET /containers/ID/json" && times > len(all) {
			t.Errorf("%s: %d times", call, times)
		}
	}
	st := h.berth("status", "--format", "{{.Witness.Named}} {{.Witness.Questions}}")
	if !strings.HasPrefix(st, "true {0 0 0 ") {
		t.Errorf("the status is %s", st)
	}
}

// path is the path of a request without the version of the API, and with ID for a container's id.
func path(url string) string {
	parts := strings.Split(strings.TrimPrefix(url, "/"), "/")
	if strings.HasPrefix(parts[0], "v1.") {
		parts = parts[1:]
	}
	if parts[0] == "containers" && len(parts) == 3 {
		parts[1] = "ID"
	}
	return "/" + strings.Join(parts, "/")
}
