package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/docker/dockertest"
	"berth/internal/ipam"
)

// ears records the news from an engine.
type ears struct {
	t       *testing.T
	roster  *Roster
	begun   chan struct{}
	told    chan *ipam.EngineNews
	changed chan bool
	end     func() error // stops following
	ended   chan error   // the error of Follow
}

// follow follows an engine until the end of the test, or until end is called.
func follow(t *testing.T, e *Engine) *ears {
	t.Helper()
	f := &ears{t: t, roster: NewRoster(nil), begun: make(chan struct{}), told: make(chan *ipam.EngineNews, 99),
		changed: make(chan bool, 99)}
	ctx, cancel := context.WithCancel(t.Context())
	f.ended = make(chan error, 1)
	go func() {
		f.ended <- e.Follow(ctx, Listener{
			Drivers: func() []string { return []string{"berth"} },
			Begun:   func() { close(f.begun) },
			Tell: func(news *ipam.EngineNews) {
				f.roster.Hear(news)
				f.told <- news
			},
			Changed: func(networks bool) { f.changed <- networks },
		})
	}()
	f.end = sync.OnceValue(func() error {
		cancel()
		return <-f.ended
	})
	t.Cleanup(func() { _ = f.end() })
	return f
}

// next returns the next news.
func (f *ears) next(what string) *ipam.EngineNews {
	f.t.Helper()
	select {
	case news := <-f.told:
		return news
	case <-time.After(30 * time.Second):
		f.t.Fatalf("%s is not told", what)
		return nil
	}
}

// followed returns an engine with a network and a stopped container, its follower, and a view from its beginning.
func followed(t *testing.T) (*dockertest.Engine, *ears, ipam.EngineView) {
	t.Helper()
	engine := dockertest.New(t)
	view := ipam.EngineView{Networks: []ipam.EngineNetwork{{ID: "n1", Name: "front", Driver: "berth",
		Subnets: []ipam.EngineSubnet{{CIDR: prefix("10.8.0.0/24")}}}},
		Containers: []ipam.EngineContainer{{ID: "old", Name: "old", State: "exited",
			Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}}}}
	engine.Set(view)
	e := open(engine)
	f := follow(t, e)
	<-f.begun
	if news := f.next("the networks"); news.Networks == nil || len(news.Networks.Networks) != 1 {
		t.Fatalf("told first: %+v", news)
	}
	eventually(t, "somebody follows", engine.Follows)
	f.roster.Hear(&ipam.EngineNews{At: time.Now(), Begins: true})
	seen, err := e.View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	f.roster.Show(&seen)
	engine.Asked()
	return engine, f, view
}

// forPorts reports whether a request reads the ports of a stopped container. Such requests have their own
// goroutine and may come at any time.
func forPorts(asked string) bool {
	return strings.HasPrefix(asked, "GET /containers/") && asked != "GET /containers/json"
}

func (f *ears) guess() string {
	return f.roster.guess(ipam.Question{Space: "local", CIDR: prefix("10.8.0.0/24")}).Name
}

// TestFollowCreated: the event of a new container makes it a candidate. One list gives its networks.
func TestFollowCreated(t *testing.T) {
	engine, f, view := followed(t)
	if got := f.guess(); got != "old" {
		t.Errorf("at first it is %q", got)
	}
	view.Containers = append(view.Containers,
		ipam.EngineContainer{ID: "new", Name: "shop-web-1", Project: "shop", Service: "web", Number: 1,
			State:     "created",
			Endpoints: []ipam.EngineEndpoint{{Network: "n1", Wanted: ValidAddresses(addr("10.8.0.5"))}}})
	engine.Set(view)
	engine.Tell("create", "new", 0,
		object{"name": "shop-web-1", LabelProject: "shop", LabelService: "web", LabelNumber: "1", "image": "x"})
	news := f.next("its creation")
	if e := news.Event; e == nil || e.Action != "create" || e.Container.ID != "new" ||
		e.Container.Name != "shop-web-1" || e.Container.Owner() != "shop/web/1" || news.Late > 10*time.Second {
		t.Errorf("told: %+v", news)
	}
	news = f.next("where it is")
	if len(news.Listed) != 1 || news.Listed[0].ID != "new" || len(news.Listed[0].Endpoints) != 1 ||
		news.Listed[0].Endpoints[0].Network != "n1" {
		t.Errorf("listed: %+v", news.Listed)
	}
	if got := f.guess(); got != "old" {
		t.Errorf("one that asks for an address itself is taken for %q", got)
	}
	if got := wantedBy(f.roster, "local", prefix("10.8.0.0/24"), addr("10.8.0.5")); got != "shop-web-1 new" {
		t.Errorf("its address is asked for by %q", got)
	}
	engine.TellNetwork("connect", "n1", "new")
	if e := f.next("its connection").Event; e == nil || e.Network != "n1" || e.Container.ID != "new" {
		t.Errorf("told: %+v", e)
	}
	engine.Tell("start", "new", 0, object{"name": "shop-web-1"})
	f.next("its start")
	for _, asked := range engine.Asked() {
		if asked != "GET /containers/json" && !forPorts(asked) {
			t.Errorf("it asked %q", asked)
		}
	}
	for range 3 {
		if <-f.changed {
			t.Error("networks are said to have changed")
		}
	}
}

// TestFollowNetworks: when a network comes or goes, the networks are listed again, and a look follows soon.
func TestFollowNetworks(t *testing.T) {
	engine, f, view := followed(t)
	view.Networks = append(view.Networks,
		ipam.EngineNetwork{ID: "n2", Name: "back", Driver: "berth",
			Subnets: []ipam.EngineSubnet{{CIDR: prefix("10.9.0.0/24")}}})
	engine.Set(view)
	engine.Happen("network", "create")
	if news := f.next("the networks"); news.Networks == nil || len(news.Networks.Networks) != 2 {
		t.Errorf("told: %+v", news)
	}
	if !<-f.changed {
		t.Error("it is not said that it is the networks")
	}
	asked := slices.DeleteFunc(engine.Asked(), forPorts)
	if !slices.Equal(asked, []string{"GET /networks"}) {
		t.Errorf("it asked %q", asked)
	}
}

// TestFollowLate: the news have the event's delay. An event from the future has none.
func TestFollowLate(t *testing.T) {
	engine, f, _ := followed(t)
	engine.Tell("die", "old", time.Hour, object{"name": "old"})
	if late := f.next("an old event").Late; late < time.Hour || late > 2*time.Hour {
		t.Errorf("it is late by %s", late)
	}
	if got := f.guess(); got != "" {
		t.Errorf("after a late event it is %q", got)
	}
	engine.Tell("die", "old", -time.Hour, object{"name": "old"})
	if late := f.next("an event from the future").Late; late != 0 {
		t.Errorf("it is late by %s", late)
	}
	engine.Happen("container", "die")
	if late := f.next("an event without a time").Late; late != 0 {
		t.Errorf("it is late by %s", late)
	}
}

// TestFollowHangs: an engine whose list hangs delays neither the events nor the end of following.
func TestFollowHangs(t *testing.T) {
	engine, f, _ := followed(t)
	hangs, free := make(chan struct{}, 9), make(chan struct{})
	defer close(free)
	engine.Lock()
	engine.Ask = func(_, path string) {
		if strings.HasSuffix(path, "/containers/json") {
			hangs <- struct{}{}
			<-free
		}
	}
	engine.Unlock()
	engine.Tell("create", "new", 0, object{"name": "web"})
	f.next("its creation")
	<-hangs
	if got := f.guess(); got != "web" {
		t.Errorf("before it is listed it is %q", got)
	}
	for range 20 {
		engine.Tell("start", "new", 0, object{"name": "web"})
		if e := f.next("an event").Event; e == nil || e.Action != "start" {
			t.Errorf("told: %+v", e)
		}
	}
	if err := f.end(); !errors.Is(err, context.Canceled) && err == nil {
		t.Errorf("it ended with %v", err)
	}
}
