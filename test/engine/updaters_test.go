//go:build engine

package engine

import (
	"encoding/json"
	"net/http"
	"testing"

	"berth/test/lab"
)

// An updater replaces a container by one of a newer image. It returns the new one's id.
type updater struct {
	name    string
	replace func(h *Harness, name, network string)
}

// updaters make the calls of Portainer (ContainerService.Recreate, 2025), of Watchtower 1.7.1 (StopContainer and
// StartContainer of its client), and of its fork nicholas-fedor/watchtower 1.21.0 (StartTargetContainer), in their order.
var updaters = []updater{
	{"Portainer", func(h *Harness, name, network string) {
		settings := h.settingsOf(name, network, engineAPI >= 44)
		h.docker("stop", "--time", "1", name)
		h.docker("rename", name, name+"-old")
		h.docker("network", "disconnect", "--force", network, name+"-old")
		h.createsWith(name, network, settings)
		h.docker("start", name)
		h.docker("rm", name+"-old")
	}},
	{"Watchtower", func(h *Harness, name, network string) {
		settings := h.settingsOf(name, network, false) // it speaks API 1.25, which has no MAC here
		h.docker("kill", "--signal", "SIGTERM", name)
		h.docker("rm", "--force", name)
		h.createsWith(name, network, settings)
		h.docker("network", "disconnect", "--force", network, name)
		lab.Must(h, h.Engine.post("/networks/"+network+"/connect",
			map[string]any{"Container": name, "EndpointConfig": settings}))
		h.docker("start", name)
	}},
	{"the fork of Watchtower", func(h *Harness, name, network string) {
		settings := h.settingsOf(name, network, engineAPI >= 44)
		h.docker("stop", "--time", "1", name)
		h.docker("rm", name)
		h.createsWith(name, network, settings)
		h.docker("start", name)
	}},
}

// settingsOf returns a container's endpoint as the engine shows it, with its addresses. Updaters send it back whole,
// with the MAC or without it.
func (h *Harness) settingsOf(name, network string, mac bool) (settings map[string]any) {
	h.Helper()
	var shown struct {
		NetworkSettings struct{ Networks map[string]map[string]any }
	}
	answer, err := h.Engine.api(http.MethodGet, "/containers/"+name+"/json", nil)
	lab.Must(h, err)
	lab.Must(h, json.Unmarshal(answer, &shown))
	settings = shown.NetworkSettings.Networks[network]
	if !mac {
		delete(settings, "MacAddress")
	}
	return settings
}

func (h *Harness) createsWith(name, network string, settings map[string]any) {
	h.Helper()
	lab.Must(h, h.Engine.post("/containers/create?name="+name, map[string]any{"Image": imageName, "Cmd": sleepForever,
		"HostConfig":       map[string]any{"NetworkMode": network, "RestartPolicy": map[string]any{"Name": "always"}},
		"NetworkingConfig": map[string]any{"EndpointsConfig": map[string]any{network: settings}}}))
}

// TestUpdaters: a container keeps its address while an updater replaces it, also one by --ip, while others are on the
// network.
func TestUpdaters(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 239)
	n := h.network("--subnet", h.v4("0/24"))
	h.container(n)
	for _, u := range updaters {
		for what, options := range map[string][]string{"automatic": nil, "--ip": {"--ip", h.v4("90")}} {
			name := h.name()
			h.docker(containerCommand(name, n, options...)...)
			had := h.address(name, n)
			for range sample(0, 2, 10) {
				u.replace(h, name, n)
				has := h.address(name, n)
				if has != had && (names.there() || options != nil) { // else others may start at that moment
					t.Errorf("%s, %s: it had %s, and has %s", u.name, what, had, has)
				}
				had = has
			}
			h.docker("rm", "--force", name)
		}
	}
	h.finds()
}
