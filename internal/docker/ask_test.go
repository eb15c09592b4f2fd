package docker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestStartedByABoot: a container that the engine starts at its own start counts as started then, whatever events
// came before.
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

// TestAskAfterAStart: while no news come from the engine, it counts as starting for two minutes.
func TestAskAfterAStart(t *testing.T) {
	now := time.Unix(1000, 0)
	silent := func(context.Context, ipam.Question) ipam.Locked { return ipam.Locked{} }
	for name, ask := range map[string]func(context.Context, ipam.Question) ipam.Locked{"nobody": nil, "late": silent} {
		r := NewRoster(func() time.Time { return now })
		r.askWith(ask)
		for _, after := range []time.Duration{0, awayFor - 1, 1} {
			now = now.Add(after)
			if hint := r.ask(t.Context(), ipam.Question{}); hint.Boots != (after != 1) {
				t.Errorf("%s, after %s: %+v", name, after, hint)
			}
		}
		now = now.Add(-1)
		r.Hear(&ipam.EngineNews{At: now, Begins: true})
		if hint := r.ask(t.Context(), ipam.Question{}); hint.Boots {
			t.Errorf("%s, and news come: %+v", name, hint)
		}
	}
}

// TestAskOfOneThatIsPutBack: the container that is being put back sends the request, even if many others answer
// late. This does not hold if one of those others starts on this network.
func TestAskOfOneThatIsPutBack(t *testing.T) {
	q := lockQuestion("n1")
	for row := range ipamtest.Rows(5, `
		# who is silent here and elsewhere (?: no answer), who is put back, and the name, soon, others, home of the hint
		it alone | | web | web=10.1.0.9,fd00::9 | web|false|[]|[10.1.0.9 fd00::9]
		another | db | | web=10.1.0.9 | db|false|[]|[]
		beside others that answer late | | a web b | web=10.1.0.9 | web|false|[]|[10.1.0.9]
		beside one that starts here | db | a web b | web=10.1.0.9 | |false|[db]|[]
		it is not among them | | a web b | mail=10.1.0.9 | |false|[]|[]
		several are put back | | a web b | web=10.1.0.9 a=10.1.0.8 | |false|[]|[]
		another network | | a web b | web=10.2.0.9 | |false|[]|[]
		nobody is locked | | | web=10.1.0.9 | |false|[]|[]
		no answer | ? | | web=10.1.0.9 | |true|[]|[10.1.0.9]
		no answer, and it is guessed | ? | | idle=10.1.0.9 | idle|false|[]|[10.1.0.9]
		no answer, and another one is guessed | ? | | web=10.1.0.9 | idle|false|[]|[]
	`) {
		t.Run(row[0], func(t *testing.T) {
			locked := ipam.Locked{Told: true, Silent: strings.Fields(row[1]), Elsewhere: strings.Fields(row[2])}
			if row[1] == "?" {
				locked = ipam.Locked{}
			}
			r := NewRoster(nil)
			r.askWith(func(context.Context, ipam.Question) ipam.Locked { return locked })
			r.Hear(&ipam.EngineNews{At: time.Now(), Begins: true})
			view := &ipam.EngineView{Taken: time.Now(), Networks: lockNets}
			if strings.HasPrefix(row[4], "idle") {
				view.Containers = []ipam.EngineContainer{{ID: "i", Name: "idle", State: "running",
					Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}}}
			}
			r.Show(view)
			for one := range strings.FieldsSeq(row[3]) {
				name, homes, _ := strings.Cut(one, "=")
				defer r.Expect(name, addrs(strings.Split(homes, ",")...))()
			}
			got := r.ask(t.Context(), q)
			said := fmt.Sprintf("%s|%t|%v|%v", got.Name, got.Soon, got.Others, got.Home)
			if !got.Live || said != row[4] {
				t.Errorf("%+v, want %s", got, row[4])
			}
		})
	}
}
