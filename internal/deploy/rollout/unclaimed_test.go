package rollout

import (
	"strings"
	"testing"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// TestDrawUnclaimed: what is reserved for an owner without a container ends where deploys have reserved all of it, and
// with a deploy of all alone; it is left to who has a container, is named, or has it in use (BO-3, BO-15).
func TestDrawUnclaimed(t *testing.T) {
	const kept = "keep:shop/db/1 keep:shop/web/1 keep:shop/web/2"
	for what, c := range map[string]struct {
		change func(in *Inputs, u *Unclaimed)
		want   string
		note   string
	}{
		"of a deploy": {func(*Inputs, *Unclaimed) {}, "delete:shop/web/3 " + kept, ""},
		"of somebody": {func(_ *Inputs, u *Unclaimed) { u.Made = false }, kept,
			"shop/web/3 has 10.0.0.13 on front reserved, and no container, and why; it is not known that a deploy chose " +
				"that, so that it stays: `berth reservation rm --owner shop/web/3 --everywhere` ends the reservation"},
		"in use":   {func(_ *Inputs, u *Unclaimed) { u.InUse = true }, kept, ""},
		"is named": {func(_ *Inputs, u *Unclaimed) { u.Owner = "shop/web/2" }, kept, ""},
		"its container is there": {func(in *Inputs, _ *Unclaimed) {
			in.Containers = append(in.Containers, container("web", 3, "w1", "sha256:ee", "10.0.0.13"))
		}, "delete:shop/web/3 " + kept, ""},
		"another task": {func(in *Inputs, _ *Unclaimed) { in.Task.Do = Start }, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			in := wanted()
			in.Containers = asWanted()
			u := Unclaimed{Owner: "shop/web/3", Service: "web", Number: 3, Why: "why", Made: true,
				On: []Address{{Network: "front", Planned: "front", Has: addrs("10.0.0.13")}}}
			c.change(&in, &u)
			in.Unclaimed = []Unclaimed{u}
			p, err := Draw(in)
			if err != nil || steps(p) != c.want || strings.Join(p.Notes, "; ") != c.note {
				t.Errorf("%v: the plan is %q with %q, and was to be %q", err, steps(p), p.Notes, c.want)
			}
		})
	}
}

// TestRunUnclaimed: one without a container is released, and the engine is asked for nothing.
func TestRunUnclaimed(t *testing.T) {
	s := newShop(t)
	s.services = []deploy.Service{}
	p, err := Draw(Inputs{Project: "shop", Compose: "5.5.0", Images: map[string]scene.Image{},
		Unclaimed: []Unclaimed{{Owner: "shop/web/3", Made: true}}})
	s.must(err)
	s.must(s.carries(t.Context(), p))
	s.wants("released", "release shop/web/3")
}
