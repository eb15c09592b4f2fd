package docker

import (
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
)

// word returns what a request would learn about an address's lease.
func (tn *town) word(a netip.Addr) ipam.Sighting {
	tn.t.Helper()
	l := tn.leaseOf(a)
	return tn.w.cfg.Roster.Endpoint(ipam.LeaseRef{Space: "local", Address: a, ID: l.ID}, l.Since)
}

func (tn *town) wantWord(when string, a netip.Addr, want ipam.Sight, container string) {
	tn.t.Helper()
	if got := tn.word(a); got.Sight != want || got.Container != container {
		tn.t.Errorf("%s: %+v, want %d %q", when, got, want, container)
	}
}

// look makes the witness look after some time.
func (tn *town) look(d time.Duration) {
	tn.t.Helper()
	tn.settle(d)
	must(tn.t, tn.w.look(tn.t.Context()))
}

// TestSightings: a lease has an endpoint if a look has shown it, and none if two looks in a row have missed it. A lease
// that was never seen may be of an endpoint that is being created.
func TestSightings(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.wantWord("before a look", a, ipam.NotSeen, "")
	tn.look(time.Second)
	tn.wantWord("seen", a, ipam.Seen, "web")
	there := tn.view.Containers
	tn.vanish("web")
	tn.look(time.Second)
	tn.wantWord("missed once", a, ipam.Seen, "web")
	tn.view.Containers = there
	tn.look(time.Second)
	tn.vanish("web")
	tn.look(time.Second)
	tn.wantWord("missed, seen, missed", a, ipam.Seen, "web")
	tn.look(time.Second)
	tn.wantWord("missed twice", a, ipam.Gone, "web")

	b := tn.run("db", "front")
	tn.vanish("db")
	for range 3 {
		tn.look(time.Second)
	}
	tn.wantWord("being made", b, ipam.NotSeen, "")
	tn.look(startTime)
	tn.wantWord("missed once, after a minute", b, ipam.NotSeen, "")
	tn.look(time.Second)
	tn.wantWord("missed twice, after a minute", b, ipam.Gone, "")
	if got := tn.w.cfg.Roster.Endpoint(ipam.LeaseRef{Space: "local", Address: a, ID: tn.leaseOf(a).ID + 1},
		tn.clock.Now()); got != (ipam.Sighting{}) {
		t.Errorf("of a later lease of the address it says %+v", got)
	}
}

// TestSightingOfAnother: if any endpoint has the address, the lease counts as seen.
func TestSightingOfAnother(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.vanish("web")
	tn.number++
	tn.appear("stranger", "front", a) // with another MAC
	for range 3 {
		tn.look(time.Minute)
		tn.wantWord("the address is in use", a, ipam.Seen, "stranger")
	}
}

// TestSightingsOfCheck: a check counts as two looks.
func TestSightingsOfCheck(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.look(time.Second)
	tn.vanish("web")
	tn.settle(time.Second)
	tn.check(ipam.CheckRequest{})
	tn.wantWord("checked", a, ipam.Gone, "web")
}

// TestSightingsPushed: the same pushed view counts once.
func TestSightingsPushed(t *testing.T) {
	h := newHouse(t, t.TempDir())
	t.Cleanup(func() { must(t, h.close()) })
	h.network("front", "10.8.0.0/24")
	tn := &town{house: h, t: t, w: h.witness(nil, nil)}
	a := tn.run("web", "front")
	show := func() {
		t.Helper()
		tn.clock.wait(time.Second)
		must(t, tn.w.Show(t.Context(), tn.taken()))
	}
	show()
	tn.vanish("web")
	show()
	for range 3 {
		tn.check(ipam.CheckRequest{})
	}
	tn.wantWord("one view without it", a, ipam.Seen, "web")
	show()
	tn.wantWord("two views without it", a, ipam.Gone, "web")
}

// TestSightingsOfCutOff: if the engine ends, an endpoint that was never seen may not exist. One that was seen stays
// seen.
func TestSightingsOfCutOff(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.look(time.Second)
	b := tn.run("db", "front")
	tn.vanish("db")
	tn.clock.wait(time.Second)
	tn.w.cfg.Roster.lose() // the onlooker is gone, but maybe not the engine
	tn.wantWord("nobody tells", b, ipam.NotSeen, "")
	tn.w.cfg.Roster.Hear(&ipam.EngineNews{At: tn.clock.Now(), Ends: true})
	tn.wantWord("seen before", a, ipam.Seen, "web")
	tn.wantWord("being made", b, ipam.CutOff, "")
	tn.clock.wait(time.Second)
	tn.wantWord("made since", tn.run("new", "front"), ipam.NotSeen, "")
	tn.look(time.Second)
	tn.look(time.Second)
	tn.wantWord("after two looks", b, ipam.Gone, "")
}

// TestEngineEnds: a follower hears when the engine ends, but not when only the events break off.
func TestEngineEnds(t *testing.T) {
	for _, ends := range []bool{true, false} {
		f := newFakeEngine(t)
		e := f.open()
		var told []bool
		begun := make(chan struct{})
		followed := make(chan error, 1)
		go func() {
			followed <- e.Follow(t.Context(), Listener{
				Drivers: func() []string { return nil },
				Begun:   func() { close(begun) },
				Tell:    func(news *ipam.EngineNews) { told = append(told, news.Ends) },
				Stirred: func(bool) {},
			})
		}()
		<-begun
		eventually(t, "a stream", f.follows)
		if ends {
			f.stop()
		} else {
			f.breakOff()
		}
		if err := <-followed; err == nil {
			t.Error("it has ended without a reason")
		}
		if heard := len(told) == 1 && told[0]; heard != ends || len(told) > 1 {
			t.Errorf("the engine has ended: %t; told: %v", ends, told)
		}
	}
}

// TestSecondLook: a missing endpoint causes a second look without any event, and a request for a look gets one.
func TestSecondLook(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.settle(time.Second)
	tn.live(nil)
	eventually(t, "the look that comes with the connection", func() bool { return tn.word(a).Sight == ipam.Seen })
	tn.vanish("web")
	tn.settle(time.Second)
	tn.w.cfg.Roster.look() // nobody asks for a second one
	eventually(t, "two looks", func() bool { return tn.word(a).Sight == ipam.Gone })
}

// TestSightingNames: a lease's container is found by its present name, as long as it exists.
func TestSightingNames(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	r := tn.w.cfg.Roster
	exist := func(when string, want map[string]bool) {
		t.Helper()
		for name, is := range want {
			if r.exists(ipam.NameKey(name), "") != is {
				t.Errorf("%s: %s exists: %t", when, name, !is)
			}
		}
	}
	tn.look(time.Second)
	exist("seen", map[string]bool{"web": true, "0123456789ab_web": true, "old": false})
	event := func(action, id, name string) {
		tn.clock.wait(time.Second)
		r.Hear(&ipam.EngineNews{At: tn.clock.Now(),
			Event: &ipam.EngineEvent{Action: action, Container: ipam.EngineContainer{ID: id, Name: name}}})
	}
	if !r.exists("nobody", "id-web") || r.exists("nobody", "id-other") || r.exists("nobody", "") {
		t.Error("by ids others exist than the one that does")
	}
	event("rename", "id-web", "old")
	tn.wantWord("renamed", a, ipam.Seen, "old")
	exist("renamed", map[string]bool{"web": false, "old": true})
	event("create", "id-2", "web")
	event("die", "id-web", "old")
	tn.wantWord("another is called so", a, ipam.Seen, "old")
	exist("both", map[string]bool{"web": true, "old": true})
	event("destroy", "id-2", "web")
	event("rename", "id-web", "web")
	event("rename", "id-web", "last")
	exist("back and forth", map[string]bool{"web": false, "old": false, "last": true})
	tn.clock.wait(2 * fresh)
	exist("nobody looks any more", map[string]bool{"last": false})
	event("destroy", "id-web", "last")
	if len(r.names)+len(r.byName)+len(r.ids) != 0 || r.exists("nobody", "id-web") {
		t.Errorf("left: %v, %v, %v", r.names, r.byName, r.ids)
	}
}
