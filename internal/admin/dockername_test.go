package admin

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// A network is shown by the name of the Docker network that is on it, where no network has that name itself; where
// there are several these are named, and so is what Docker's word cannot be had for.
func TestNetworkByDockerName(t *testing.T) {
	cidr := netip.MustParsePrefix("10.1.0.0/24")
	places := map[string][]ipam.DockerPlace{
		"shop_default": {{Network: "net1", Space: "lab", Subnet: cidr}},
		"both": {{Network: "net1", Space: "lab", Subnet: cidr},
			{Network: "net1", Space: "lab", Subnet: netip.MustParsePrefix("fd00::/64")}},
		"twice": {{Network: "net1", Space: "lab", Subnet: cidr},
			{Network: "wire", Space: "local", Subnet: netip.MustParsePrefix("10.2.0.0/24")}},
		"wire": {{Network: "net1", Space: "lab", Subnet: cidr}},
	}
	failure := errors.New("the records cannot be read")
	h := start(t, func(s *Server) {
		s.cfg.Places = func(_ context.Context, name string) ([]ipam.DockerPlace, error) {
			if name == "broken" {
				return nil, failure
			}
			return places[name], nil
		}
	})
	for _, e := range []ipam.Edit{&ipam.CreateNetwork{Name: "net1", Space: "lab"}, &ipam.CreateNetwork{Name: "wire"}} {
		if _, err := h.client.Edit(t.Context(), client.EditOptions{}, e); err != nil {
			t.Fatal(err)
		}
	}
	for ref, want := range map[string]string{"net1": "net1", "wire": "wire", "shop_default": "net1", "both": "net1"} {
		if n, err := h.client.Network(t.Context(), ref); err != nil || n.Name != want {
			t.Errorf("%s is %q (%v), want %s", ref, n.Name, err, want)
		}
	}
	for ref, want := range map[string]struct {
		status int
		says   string
	}{
		"twice": {http.StatusBadRequest,
			"no network twice, and what Docker calls so is on several of its networks: net1 (10.1.0.0/24, space " +
				"lab), wire (10.2.0.0/24, space local); name one"},
		"nobody": {http.StatusNotFound, `there is no network "nobody"`},
		"broken": {http.StatusInternalServerError, ""},
	} {
		_, err := h.client.Network(t.Context(), ref)
		var refused *api.Problem
		if !errors.As(err, &refused) || refused.Status != want.status || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
