package rollout

import (
	"testing"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// TestRunUnclaimed: a reservation without a container is released, without a request to the engine.
func TestRunUnclaimed(t *testing.T) {
	s := newShop(t)
	s.services = []deploy.Service{}
	p, err := Draw(Inputs{Project: "shop", Compose: "5.5.0", Images: map[string]scene.Image{},
		Unclaimed: []Unclaimed{{Owner: "shop/web/3", Made: true}}})
	s.must(err)
	s.must(s.carries(t.Context(), p))
	s.wants("released", "release shop/web/3")
}
