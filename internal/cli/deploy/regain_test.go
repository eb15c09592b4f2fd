package deploy_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// holds gives an endpoint an address of the network front. The name may be empty.
func (h *harness) holds(name, addr string) {
	h.Helper()
	at, err := h.service.RequestPool(h.Context(), ipam.PoolRequest{Space: ipam.LocalSpace, Network: "front",
		CIDR: netip.MustParsePrefix("10.8.0.0/24")})
	h.must(err)
	_, err = h.service.RequestAddress(h.Context(), ipam.AddressRequest{Pool: at.ID, Name: name,
		Preferred: netip.MustParseAddr(addr)})
	h.must(err)
}

// TestApplyRegains: if the engine shows no endpoint with a replica's address, its old lease is released before the
// container is made. An address that an endpoint has stays leased.
func TestApplyRegains(t *testing.T) {
	for what, endpoint := range map[string]string{"forgotten": "", "in use": "10.8.0.10"} {
		t.Run(what, func(t *testing.T) {
			h := enterBehind(t, time.Minute) // so that no lease looks like one of a starting container
			h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
			h.engine.Images["x"] = "sha256:x"
			h.must(h.compose.Hashes(map[string]string{"web": "h-web"}))
			h.reserved(map[string]string{"shop/web/1": "10.8.0.10"})
			h.file("services: {web: {image: x, networks: [front]}}" + networks)
			h.holds("", "10.8.0.10")
			h.behind.Store(0)
			h.engine.Networks = []map[string]any{{"Id": "f1", "Name": "shop_front", "Driver": "bridge", "Scope": "local",
				"Labels": map[string]string{"com.docker.compose.project": "shop"},
				"IPAM": map[string]any{"Driver": "berth", "Options": map[string]string{"network": "front"},
					"Config": []map[string]string{{"Subnet": "10.8.0.0/24"}}},
				"Containers": map[string]any{}}}
			if endpoint != "" {
				h.engine.Networks[0]["Containers"] = map[string]any{"other": map[string]string{"Name": "other",
					"EndpointID": "e1", "IPv4Address": endpoint + "/24"}}
			}
			code, out, said := h.berth("apply", "--yes")
			if code != 1 || !strings.Contains(said, "this compose command does nothing") {
				t.Errorf("it ends with %d: %s%s", code, out, said)
			}
			held := false
			for l, err := range h.service.Leases(t.Context(), ipam.LeaseFilter{Address: netip.MustParseAddr("10.8.0.10")}) {
				h.must(err)
				held = held || l.State == "held"
			}
			if told := strings.Contains(out, "release shop/web/1: 10.8.0.10, which no endpoint has"); held != (endpoint != "") ||
				told == held {
				t.Errorf("it is held: %v\n%s", held, out)
			}
		})
	}
}
