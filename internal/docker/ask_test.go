package docker

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestStartedByABoot: a container that the engine started at its own start counts as started then, whatever was heard
// before.
func TestStartedByABoot(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewRoster(func() time.Time { return now })
	r.askWith(func(context.Context, ipam.Question) ipam.Locked { return ipam.Locked{Boots: true} })
	tell := func(id string) {
		r.Hear(&ipam.EngineNews{At: now,
			Event: &ipam.EngineEvent{Action: "start", Container: ipam.EngineContainer{ID: id, Name: id}}})
	}
	r.Hear(&ipam.EngineNews{At: now, Begins: true})
	tell("web")
	r.lose()
	now = now.Add(time.Minute)
	if hint := r.ask(t.Context(), ipam.Question{}); !hint.Boots {
		t.Fatalf("%+v", hint)
	}
	if at, settled := r.startedAt("web"); settled {
		t.Errorf("web has started at %s, and the engine still starts", at)
	}
	now = now.Add(time.Second)
	r.Hear(&ipam.EngineNews{At: now, Begins: true})
	if at, settled := r.startedAt("web"); !settled || !at.Equal(now) {
		t.Errorf("web has started at %s, %t, and the engine at %s", at, settled, now)
	}
	now = now.Add(time.Second)
	tell("web")
	if at, _ := r.startedAt("web"); !at.Equal(now) {
		t.Errorf("web has started at %s, and again at %s", at, now)
	}
}

// TestAskAfterAStart: while no news of the engine come, it counts as starting, for two minutes.
func TestAskAfterAStart(t *testing.T) {
	now := time.Unix(1000, 0)
	silent := func(context.Context, ipam.Question) ipam.Locked { return ipam.Locked{} }
	for name, ask := range map[string]func(context.Context, ipam.Question) ipam.Locked{"nobody": nil, "late": silent} {
		r := NewRoster(func() time.Time { return now })
		r.askWith(ask)
		for _, row := range []struct {
			after  time.Duration
			begins bool
			boots  bool
		}{{0, false, true}, {awayFor - 1, false, true}, {1, false, false}, {-1, true, false}} {
			now = now.Add(row.after)
			if row.begins {
				r.Hear(&ipam.EngineNews{At: now, Begins: true})
			}
			if hint := r.ask(t.Context(), ipam.Question{}); hint.Boots != row.boots {
				t.Errorf("%s, %+v: %+v", name, row, hint)
			}
		}
	}
}

// TestAskOfOneThatIsPutBack: the container that is being put back is the one that asks, even if many others answer
// late. That does not hold if a container that starts on this network is among them.
func TestAskOfOneThatIsPutBack(t *testing.T) {
	q := lockQuestion("n1")
	home, six, other := addr("10.1.0.9"), addr("fd00::9"), addr("10.2.0.9")
	late := []string{"a", "web", "b"}
	for name, row := range map[string]struct {
		locked ipam.Locked
		expect map[string][]netip.Addr
		want   ipam.Hint
	}{
		"it alone": {ipam.Locked{Told: true, Elsewhere: []string{"web"}}, map[string][]netip.Addr{"web": {home, six}},
			ipam.Hint{Live: true, Name: "web", Home: []netip.Addr{home, six}}},
		"another": {ipam.Locked{Told: true, Silent: []string{"db"}}, map[string][]netip.Addr{"web": {home}},
			ipam.Hint{Live: true, Name: "db"}},
		"beside others that answer late": {ipam.Locked{Told: true, Elsewhere: late},
			map[string][]netip.Addr{"web": {home}}, ipam.Hint{Live: true, Name: "web", Home: []netip.Addr{home}}},
		"beside one that starts here": {ipam.Locked{Told: true, Silent: []string{"db"}, Elsewhere: late},
			map[string][]netip.Addr{"web": {home}}, ipam.Hint{Live: true, Others: []string{"db"}}},
		"it is not among them": {ipam.Locked{Told: true, Elsewhere: late}, map[string][]netip.Addr{"mail": {home}},
			ipam.Hint{Live: true}},
		"several are put back": {ipam.Locked{Told: true, Elsewhere: late},
			map[string][]netip.Addr{"web": {home}, "a": {addr("10.1.0.8")}}, ipam.Hint{Live: true}},
		"another network": {ipam.Locked{Told: true, Elsewhere: late}, map[string][]netip.Addr{"web": {other}},
			ipam.Hint{Live: true}},
		"nobody is locked": {ipam.Locked{Told: true}, map[string][]netip.Addr{"web": {home}}, ipam.Hint{Live: true}},
		"no answer": {ipam.Locked{}, map[string][]netip.Addr{"web": {home}},
			ipam.Hint{Live: true, Soon: true, Home: []netip.Addr{home}}},
		"no answer, and it is guessed": {ipam.Locked{}, map[string][]netip.Addr{"idle": {home}},
			ipam.Hint{Live: true, Name: "idle", Home: []netip.Addr{home}}},
		"no answer, and another one is guessed": {ipam.Locked{}, map[string][]netip.Addr{"web": {home}},
			ipam.Hint{Live: true, Name: "idle"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRoster(nil)
			r.askWith(func(context.Context, ipam.Question) ipam.Locked { return row.locked })
			r.Hear(&ipam.EngineNews{At: time.Now(), Begins: true})
			view := &ipam.EngineView{Taken: time.Now(), Networks: lockNets}
			if row.want.Name == "idle" {
				view.Containers = []ipam.EngineContainer{{ID: "i", Name: "idle", State: "running",
					Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}}}
			}
			r.Show(view)
			for name, homes := range row.expect {
				defer r.Expect(name, homes)()
			}
			got := r.ask(t.Context(), q)
			if got.Name != row.want.Name || got.Live != row.want.Live || got.Soon != row.want.Soon ||
				!slices.Equal(got.Others, row.want.Others) || !slices.Equal(got.Home, row.want.Home) {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}
