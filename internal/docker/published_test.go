package docker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/docker/dockertest"
	"berth/internal/ipam"
)

// publishes returns the ports of a container in the roster; nil if it is unknown.
func publishes(r *Roster, name string) []string {
	_, ports := r.publishes(func(other string) bool { return other == name })
	return ports
}

// TestPortsOfStopped: the configuration gives a container's ports. This includes containers that never ran, are
// stopped, or are older than the event stream (CS-13).
func TestPortsOfStopped(t *testing.T) {
	engine := dockertest.New(t)
	engine.Configs["old"] = object{"PortBindings": object{"80/tcp": []object{{"HostPort": "8080"}}}}
	engine.Configs["drawn"] = object{"PortBindings": object{"443/tcp": []object{{"HostPort": ""}}}}
	engine.Configs["all"] = object{"PublishAllPorts": true}
	engine.Configs["none"] = object{}
	view := ipam.EngineView{Networks: []ipam.EngineNetwork{{ID: "n1", Name: "front", Driver: "berth",
		Subnets: []ipam.EngineSubnet{{CIDR: prefix("10.8.0.0/24")}}}}}
	made := func(id, state string) {
		view.Containers = append(view.Containers, ipam.EngineContainer{ID: id, Name: id, State: state,
			Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}})
		engine.Set(view)
	}
	made("old", "exited")
	made("locked", "created") // the engine does not answer about this one
	e := open(engine)
	f := follow(t, e)
	<-f.begun
	f.roster.Hear(&ipam.EngineNews{At: time.Now(), Begins: true})
	seen, err := e.View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	f.roster.Show(&seen)
	eventually(t, "the ports of one that was there before", func() bool {
		return slices.Equal(publishes(f.roster, "old"), []string{"8080/tcp"})
	})
	for name, want := range map[string]string{"drawn": "a port for 443/tcp", "all": "a port for 53/udp", "none": ""} {
		made(name, "created")
		engine.Tell("create", name, 0, object{"name": name})
		eventually(t, "the ports of "+name, func() bool {
			word := f.roster.holder(ipam.LeaseRef{}, name, time.Now())
			return word.PortsKnown && strings.Join(word.Published, ", ") == want
		})
	}
	if word := f.roster.holder(ipam.LeaseRef{}, "locked", time.Now()); word.PortsKnown || !word.Known {
		t.Errorf("of one that the engine does not tell of it is known: %+v", word)
	}
	engine.Asked()
	seen, err = e.View(t.Context(), "h1", []string{"berth"})
	must(t, err)
	if c := seen.Containers[0]; c.Name != "all" || !c.PortsKnown || len(c.Published) != 1 {
		t.Errorf("a later view shows %+v", c)
	}
	if asked := engine.Asked(); slices.Contains(asked, "GET /containers/old/json") {
		t.Errorf("what is known is asked for again: %q", asked)
	}
}

// TestHolder: a container has ended if it died after it took its lease. An earlier death is a restart. A rename
// changes nothing (CS-8).
func TestHolder(t *testing.T) {
	engine, f, _ := followed(t)
	before := time.Now()
	engine.Tell("start", "old", 0, object{"name": "old"})
	f.next("its start")
	ended := func(since time.Time) bool { return f.roster.holder(ipam.LeaseRef{}, "old", since).Ended }
	if ended(before) {
		t.Error("it runs, and is said to have ended")
	}
	engine.Tell("die", "old", 0, object{"name": "old"})
	f.next("its end")
	if !ended(before) {
		t.Error("it died, and is not said to have ended")
	}
	if ended(time.Now()) {
		t.Error("a lease of its next start is said to have ended with the one before")
	}
	changed, end := f.roster.Watch()
	defer end()
	engine.Tell("start", "old", 0, object{"name": "old"})
	f.next("its start")
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Error("whoever watches hears nothing")
	}
	if ended(before) {
		t.Error("it runs again, and is said to have ended")
	}
}

// TestHolderListed: if no event reported a container's end, its listed state decides, once it has had time to
// start (CS-8).
func TestHolderListed(t *testing.T) {
	_, f, _ := followed(t)
	for since, want := range map[time.Time]ipam.Holder{
		time.Now().Add(-time.Minute): {Known: true, Ended: true},
		time.Now().Add(-time.Second): {Known: true, Unsure: true},
	} {
		got := f.roster.holder(ipam.LeaseRef{}, "old", since)
		if got.Known != want.Known || got.Ended != want.Ended || got.Unsure != want.Unsure {
			t.Errorf("of a lease of %s it is said: %+v", time.Since(since).Round(time.Second), got)
		}
	}
}
