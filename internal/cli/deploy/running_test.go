package deploy_test

import (
	"strings"
	"testing"

	"berth/test/still"
)

// TestStopSays: a stop lists the containers of the project that still run, even if there was nothing to stop.
func TestStopSays(t *testing.T) {
	for _, c := range []struct {
		states []string // of web, db and api
		args   []string
		says   string
	}{
		{[]string{"exited", "running", "running"}, []string{"web"}, "web does not run; api and db run: nothing to do"},
		{[]string{"exited", "running", "exited"}, []string{"web"}, "web does not run; db runs: nothing to do"},
		{[]string{"exited", "exited", "exited"}, nil, "no container of shop runs: nothing to do"},
	} {
		h := enter(t)
		h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
		file := h.file("services:\n  web: {image: x, networks: [front]}\n  db: {image: x, networks: [front]}\n" +
			"  api: {image: x, networks: [front]}\n" + networks)
		h.engine.Images["x"] = "sha256:x"
		for i, service := range []string{"web", "db", "api"} {
			h.engine.Containers = append(h.engine.Containers, still.Container{ID: strings.Repeat("a", 60) + service,
				Name: "shop-" + service + "-1", Project: "shop", Service: service, Number: 1, Hash: "h", ImageID: "sha256:x",
				State: c.states[i]})
		}
		code, out, said := h.berth("stop", append([]string{"shop", "-f", file, "--yes"}, c.args...)...)
		if code != 0 || strings.TrimSpace(out) != c.says {
			t.Errorf("of %v it says %q, want %q (%d, %s)", c.states, out, c.says, code, said)
		}
	}
}
