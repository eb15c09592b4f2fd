package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// replicaRig is a Compose service on an engine that sends names, and a witness that follows the engine.
type replicaRig struct {
	*harness
	t      *testing.T
	dir    string
	roster *Roster
	w      *Witness
	ids    map[string]string // of the existing containers, by name
	run    map[string]netip.Addr
}

func newReplicaRig(t *testing.T) *replicaRig {
	c := &replicaRig{t: t, dir: t.TempDir(), ids: map[string]string{}, run: map[string]netip.Addr{}}
	c.open(nil)
	c.network("front", "10.8.0.0/24")
	return c
}

// open starts the daemon with the earlier state.
func (c *replicaRig) open(before *harness) {
	c.t.Helper()
	var roster *Roster
	c.harness = openHarness(c.t, c.dir, ipam.Known{
		Container: func(name string) (string, bool) { return roster.container(name) },
		Replica:   func(name string) ipam.Replica { return roster.replica(name) },
	})
	c.t.Cleanup(func() { _ = c.close() })
	if before != nil {
		c.clock.wait(before.clock.Now().Sub(c.clock.Now()))
		c.view, c.pools, c.number = before.view, before.pools, before.number
	}
	roster = NewRoster(c.clock.Now)
	c.roster = roster
	c.w = c.witness(nil, func(cfg *Config) { cfg.Roster = roster })
	c.begin()
}

// begin begins the event stream.
func (c *replicaRig) begin() {
	c.tick()
	c.roster.Hear(&ipam.EngineNews{At: c.clock.Now(), Begins: true})
	c.look()
}

func (c *replicaRig) tick() { c.clock.wait(time.Millisecond) }

// look shows the witness a view.
func (c *replicaRig) look() {
	c.t.Helper()
	c.tick()
	view := c.taken()
	view.Containers = nil
	for name, id := range c.ids {
		one := c.container(name, id)
		if a, runs := c.run[name]; runs {
			one.State = "running"
			one.Endpoints = []ipam.EngineEndpoint{{Network: "id-front", ID: "e-" + id, Addresses: []netip.Addr{a}}}
		}
		view.Containers = append(view.Containers, one)
	}
	must(c.t, c.w.Show(c.t.Context(), view))
	c.tick()
}

func (c *replicaRig) container(name, id string) ipam.EngineContainer {
	number, _ := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return ipam.EngineContainer{ID: id, Name: name, Project: "shop", Service: "web", Number: number, State: "created"}
}

func (c *replicaRig) tell(action, name string) {
	c.tick()
	one := c.container(name, c.ids[name])
	one.State = ""
	c.roster.Hear(&ipam.EngineNews{At: c.clock.Now(), Event: &ipam.EngineEvent{Action: action, Container: one}})
}

// reservedAt is the address reserved for a number.
func reservedAt(number string) netip.Addr { return addr("10.8.0.1" + number) }

// do runs a step and returns the result. The steps are:
//
//	reserve N...    reserves an address for each number
//	create N...     creates containers without starting them
//	start N...      returns for each the number whose reserved address it got;
//	                "-": an unreserved address, "!": a refusal
//	stop N...
//	rm N...         destroys the containers
//	recreate N...   recreates running or stopped containers like Compose, without starting them
//	look            the witness looks
//	break rm N...   destroys the containers during a break of the events
//	rush rm N...    destroys the containers; the witness looks before it hears the events
//	daemon          restarts the daemon
func (c *replicaRig) do(step string) (got string) {
	c.t.Helper()
	words, gone := strings.Fields(step), map[string]string{}
	for _, n := range words[1:] {
		name := "shop-web-" + n
		switch words[0] {
		case "reserve":
			c.edit(&ipam.AddReservation{Network: c.leaseOf(addr("10.8.0.1")).Network, Owner: "shop/web/" + n,
				Wishes: []ipam.Wish{{Address: reservedAt(n)}}})
		case "create":
			c.create(name)
		case "start":
			got += " " + c.start(name)
		case "stop":
			c.stop(name)
		case "rm":
			c.stop(name)
			c.destroy(name)
		case "recreate":
			c.stop(name)
			old := "0123456789ab_" + name
			c.ids[old] = c.ids[name]
			c.tell(eventRename, old)
			c.create(name)
			c.destroy(old)
		case "break", "rush":
			if n != "rm" {
				c.stop(name)
				gone[name] = c.ids[name]
				delete(c.ids, name)
			}
		}
	}
	switch words[0] {
	case "look":
		c.look()
	case "rush":
		c.look()
		for name, id := range gone {
			c.tick()
			one := c.container(name, id)
			c.roster.Hear(&ipam.EngineNews{At: c.clock.Now(),
				Event: &ipam.EngineEvent{Action: eventDestroy, Container: one}})
		}
	case "break":
		c.roster.lose()
		c.begin()
	case "daemon":
		must(c.t, c.close())
		c.open(c.harness)
	}
	return strings.TrimSpace(got)
}

func (c *replicaRig) create(name string) {
	c.number++
	c.ids[name] = fmt.Sprintf("c%d", c.number)
	c.tell(eventCreate, name)
}

// start requests an address like an engine from v29 on.
func (c *replicaRig) start(name string) string {
	got, err := c.service.RequestAddress(c.t.Context(),
		ipam.AddressRequest{Pool: c.pools["front"], Name: name, Telling: true})
	if err != nil {
		return "!"
	}
	c.run[name] = got.Addr()
	c.tell(eventStart, name)
	if n, reserved := strings.CutPrefix(got.Addr().String(), "10.8.0.1"); reserved && n != "" {
		return n
	}
	return "-"
}

func (c *replicaRig) stop(name string) {
	if a, runs := c.run[name]; runs {
		c.release("front", a)
		delete(c.run, name)
		c.tell(eventDie, name)
	}
}

func (c *replicaRig) destroy(name string) {
	c.tell(eventDestroy, name)
	delete(c.ids, name)
}

// TestStandIn: if a replica is destroyed while a higher one stays, a new replica gets its address, and keeps it as
// long as the new container exists. In no other case does a replica get another's address (BO-2).
func TestStandIn(t *testing.T) {
	const three = "reserve 1 2 3|create 1 2 3|start 1 2 3 -> 1 2 3"
	for row := range ipamtest.Rows(2, `
		removed by hand | THREE|rm 2|create 4|start 4 -> 2
		and looked at meanwhile | THREE|look|rm 2|look|create 4|look|start 4 -> 2|look|stop 4|look|start 4 -> 2
		the lowest, and two differ | reserve 1 2 3 4|create 1 2 3 4|start 1 2 3 4 -> 1 2 3 4|rm 2 3|create 5 6|start 6 5 -> 2 3
		no more than there are | THREE|rm 2|create 4 5|start 5 4 -> 2 -
		seen to be absent before | THREE|rush rm 2|create 4|start 4 -> 2
		it was stopped | THREE|stop 2|rm 2|create 4|start 4 -> 2
		it never ran | reserve 1 2 3|create 1 2 3|start 1 3 -> 1 3|rm 2|create 4|start 4 -> 2
		the higher one was stopped | THREE|stop 3|rm 2|create 4|start 4 -> 2
		the higher one was recreated | THREE|rm 2|recreate 3|create 4|start 3 4 -> 3 2
		it stays over stop and start | THREE|rm 2|create 4|start 4 -> 2|stop 4|start 4 -> 2
		nobody else has it then | THREE|rm 2|create 4|start 4 -> 2|stop 4|create 5|start 5 4 -> - 2
		it stays over the daemon's end | THREE|rm 2|create 4|start 4 -> 2|stop 4|daemon|start 4 -> 2
		recreated, it does so again | THREE|rm 2|create 4|start 4 -> 2|recreate 4|start 4 -> 2
		destroyed, another does | THREE|rm 2|create 4|start 4 -> 2|rm 4|create 4|start 4 -> 2
		destroyed, and another looks | THREE|rm 2|create 4|start 4 -> 2|rm 4|look|create 5|start 5 -> 2
		the daemon was away at its end | THREE|rm 2|create 4|start 4 -> 2|break rm 4|create 4|start 4 -> -
		it comes back itself | THREE|rm 2|create 4|start 4 -> 2|create 2|start 2 -> !|stop 4|start 2 4 -> 2 -
		the daemon began since | THREE|rm 2|daemon|create 4|start 4 -> -
		it is absent, and nobody saw | THREE|break rm 2|create 4|start 4 -> -
		what was seen, and a break | THREE|rm 2|break|create 4|start 4 -> -
		it is only stopped | THREE|stop 2|create 4|start 4 2 -> - 2
		it is being created | THREE|rm 2|create 2 4|start 4 2 -> - 2
		it is recreated | THREE|recreate 2|create 4|start 4 2 -> - 2
		it was the highest | THREE|rm 3|create 4|start 4 -> -
		scale 3, 1, 3 | THREE|rm 2 3|create 2 3|start 3 2 -> 3 2
		scale 3, 1, 4, the last first | THREE|rm 2 3|create 4 2 3|start 4 3 2 -> - 3 2
		scale, of which two are owners | reserve 1 2|create 1 2 3|start 1 2 3 -> 1 2 -|rm 3 2|create 3|start 3 -> -|create 2|start 2 -> 2
		down and up, the last first | THREE|rm 1 2 3|create 4|start 4 -> -|create 3|create 1 2|start 3 2 1 -> 3 2 1
		down and up, in another order | THREE|rm 2 1 3|create 3 4|start 4 -> -|create 1 2|start 1 2 3 -> 1 2 3
		down and up after it was gone | THREE|rm 2|rm 1 3|create 4 3|start 4 -> -|create 1 2|start 2 -> 2
		up again with a higher one left | THREE|rm 2|rm 3|create 3 4|start 4 -> -
		down and up after it stood in | THREE|rm 2|create 4|start 4 -> 2|rm 1 3 4|create 4|start 4 -> -|create 1 2|start 2 -> 2
		a higher one that came later | reserve 1 2 3 5|create 1 2 3|start 1 2 3 -> 1 2 3|rm 1|create 5|start 5 -> 5|rm 2 3|create 6|start 6 -> 2
		one that was there before | reserve 1 2 3|create 1 2 3 4|start 1 2 3 4 -> 1 2 3 -|rm 2|stop 4|start 4 -> -
		one that has its own | reserve 1 2 3 4|create 1 2 3|start 1 2 3 -> 1 2 3|rm 2|create 4|start 4 -> 4
		the higher one owns nothing | reserve 1 2|create 1 2 3|start 1 2 3 -> 1 2 -|rm 2|create 4|start 4 -> -
		nothing was reserved for it | reserve 1 3|create 1 2 3|start 1 2 3 -> 1 - 3|rm 2|create 4|start 4 -> -
		a lower number | reserve 2 3 4|create 2 3 4|start 2 3 4 -> 2 3 4|rm 3|create 1|start 1 -> -
	`) {
		t.Run(row[0], func(t *testing.T) {
			c := newReplicaRig(t)
			for _, step := range strings.Split(strings.Replace(row[1], "THREE", three, 1), "|") {
				step, want, _ := strings.Cut(step, " -> ")
				if got := c.do(step); got != want {
					t.Fatalf("%s: %q, want %q", step, got, want)
				}
				c.sound()
			}
		})
	}
}

// sound checks that no address has two holders.
func (c *replicaRig) sound() {
	c.t.Helper()
	has := map[netip.Addr]string{}
	for name, a := range c.run {
		if other := has[a]; other != "" {
			c.t.Errorf("%s and %s have %s", name, other, a)
		}
		has[a] = name
	}
}

// TestStandInEverywhere: a container stands in for the same replica on all networks, whichever asks first. A
// container that owns an address on any network stands in on none.
func TestStandInEverywhere(t *testing.T) {
	c := newReplicaRig(t)
	c.network("back", "10.9.0.0/24")
	for _, step := range []string{"reserve 1 2 3 4", "create 1 2 3 4", "rm 2 3", "create 5 6 7"} {
		c.do(step)
	}
	for _, n := range []string{"2", "3", "7"} {
		c.edit(&ipam.AddReservation{Network: c.leaseOf(addr("10.9.0.1")).Network, Owner: "shop/web/" + n,
			Wishes: []ipam.Wish{{Address: addr("10.9.0.1" + n)}}})
	}
	for row := range ipamtest.Rows(3, `
		shop-web-7 | front | 10.8.0.2
		shop-web-6 | front | 10.8.0.12
		shop-web-5 | back | 10.9.0.13
		shop-web-5 | front | 10.8.0.13
		shop-web-6 | back | 10.9.0.12
		shop-web-7 | back | 10.9.0.17
	`) {
		got, err := c.service.RequestAddress(t.Context(),
			ipam.AddressRequest{Pool: c.pools[row[1]], Name: row[0], Telling: true})
		must(t, err)
		if got.Addr() != addr(row[2]) {
			t.Errorf("%s has %s", row, got.Addr())
		}
	}
}

// TestStandInTold: a stand-in begins with one event, is no stray, and ends with its container.
func TestStandInTold(t *testing.T) {
	c := newReplicaRig(t)
	for _, step := range []string{"reserve 1 2 3", "create 1 2 3", "start 1 2 3", "rm 2", "create 4", "start 4", "look",
		"stop 4", "start 4", "look"} {
		c.do(step)
	}
	told := func(want ...string) {
		t.Helper()
		events, err := c.service.Events(t.Context(), ipam.EventFilter{})
		must(t, err)
		var got []string
		for _, e := range events {
			switch e.Verb {
			case ipam.StoodIn, ipam.StandInEnded, ipam.ForeignHolderTold, ipam.OwnerElsewhereTold:
				got = append(got, strings.TrimPrefix(e.Verb.String(), "reservation.")+" "+e.Name+": "+e.Detail)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
	began := "stand_in shop-web-4: stands in for shop-web-2, the destroyed container of shop/web/2"
	told(began)
	all, err := c.service.StandIns(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].Name != "shop-web-4" || all[0].For != "shop-web-2" || all[0].ID != c.ids["shop-web-4"] ||
		all[0].Host != "h1" {
		t.Errorf("there stand in %+v", all)
	}
	c.do("rm 4")
	c.do("look")
	told(began, "stand_in_end shop-web-4: it stood in for shop-web-2, and was destroyed")
	if all, err := c.service.StandIns(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("there stand in %+v (%v)", all, err)
	}
}
