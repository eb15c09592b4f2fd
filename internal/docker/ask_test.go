package docker

import (
	"context"
	"fmt"
	"net/netip"
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

// TestAskForAnAddress: who asks for a leased address is known if only one container has it in its configuration, and
// that one is being started, also among others; or if only one is being put back to it.
func TestAskForAnAddress(t *testing.T) {
	at := addr("10.1.0.50")
	for _, c := range []struct {
		name   string
		wants  []string // whose configuration has the address
		silent []string // which are being started
		moves  []string // which are being put back to it
		late   bool     // the engine does not answer in time
		want   string   // who asks; empty: unknown
	}{
		{name: "it alone starts", wants: []string{"web"}, silent: []string{"web"}, want: "web"},
		{name: "others start, too", wants: []string{"web"}, silent: []string{"db", "web"}, want: "web"},
		{name: "another one starts", wants: []string{"web"}, silent: []string{"db"}},
		{name: "two want it", wants: []string{"web", "thief"}, silent: []string{"web"}},
		{name: "nobody wants it", silent: []string{"web"}},
		{name: "it is being put back", silent: []string{"db"}, moves: []string{"web"}, want: "web"},
		{name: "it is being put back, and had it before", wants: []string{"web"}, moves: []string{"web"}, want: "web"},
		{name: "it is being put back, and the engine is late", moves: []string{"web"}, late: true, want: "web"},
		{name: "another one wants it, too", wants: []string{"thief"}, silent: []string{"thief", "db"}, moves: []string{"web"}},
		{name: "two are being put back to it", moves: []string{"web", "db"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRoster(nil)
			r.askWith(func(context.Context, ipam.Question) ipam.Locked {
				return ipam.Locked{Told: !c.late, Silent: c.silent}
			})
			for _, name := range c.moves {
				defer r.Expect(name, []netip.Addr{at})()
			}
			r.Hear(&ipam.EngineNews{At: time.Now(), Begins: true})
			view := &ipam.EngineView{Taken: time.Now(), Networks: lockNets}
			for _, name := range c.wants {
				view.Containers = append(view.Containers, ipam.EngineContainer{ID: "id-" + name, Name: name, State: "exited",
					Endpoints: []ipam.EngineEndpoint{{Network: "n1", Wanted: []netip.Addr{at}}}})
			}
			r.Show(view)
			q := lockQuestion("n1")
			q.Address, q.Held = at, true
			if got := r.ask(t.Context(), q); got.Sure != (c.want != "") || got.Sure && got.Name != c.want {
				t.Errorf("%+v", got)
			}
			if len(c.moves) == 1 && c.want != "" { // so that the lease has a name if Berth ends at once
				q.Held = false
				if got := r.ask(t.Context(), q); got.Sure || got.Name != c.want {
					t.Errorf("the address is free: %+v", got)
				}
			}
		})
	}
}
