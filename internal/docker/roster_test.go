package docker

import (
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestGuess: the roster finds the container that must have sent a request without a name.
func TestGuess(t *testing.T) {
	for name, steps := range casesOf(`
		the only one:
			create web front
			view
			begin
			guess front -> lost
			view
			guess front -> web
			wait 1h
			guess front -> web
			guess back -> -
			start web
			guess front -> -
			stop web
			wait 1h
			guess front -> web
			rm web
			guess front -> -
			lose
			guess front -> lost
			create web front
			view
			guess front -> lost
			begin
			guess front -> lost
			view
			guess front -> web
		the latest of several, for ten seconds:
			begin
			create old front
			create old2 front
			view
			wait 1h
			guess front -> -
			create web front
			guess front -> web
			wait 9990ms
			guess front -> web
			wait 11ms
			guess front -> -
		two of several at once:
			begin
			create old front
			view
			wait 1h
			create web front
			wait 9s
			create db front
			guess front -> -
			wait 1010ms
			guess front -> db
		died, and stopped:
			begin
			create a front
			create b front
			start a
			start b
			view
			wait 1h
			guess front -> -
			die a
			guess front -> a
			start a
			guess front -> -
			stop b
			guess front -> b
			stop a
			guess front -> -
		one that dies long before it is told to be stopped:
			begin
			create old front
			create a front
			start a
			view
			wait 1h
			stop a
			guess front -> a
		not one that asks for an address itself:
			begin
			view
			create pinned front=10.8.0.5
			guess front -> -
			guess front 10.8.0.5 -> pinned
			guess front 10.8.0.6 -> -
			guess twin 10.8.0.5 -> pinned
			guess front fd00::1 -> -
			wanted front 10.8.0.5 -> pinned new
			wanted front 10.8.0.6 ->
			wanted back 10.8.0.5 ->
			create web front
			guess front -> web
			guess front 10.8.0.5 -> pinned
			start pinned
			guess front 10.8.0.5 -> -
			wanted front 10.8.0.5 -> pinned
			stop pinned
			guess front 10.8.0.5 -> pinned
			rm pinned
			guess front 10.8.0.5 -> -
			wanted front 10.8.0.5 ->
		two that ask for one address, of which one never ran:
			begin
			view
			create a front=10.8.0.5
			create b front=10.8.0.5
			wanted front 10.8.0.5 -> a new
			start b
			wanted front 10.8.0.5 -> b
			die b
			wanted front 10.8.0.5 -> b
			lose
			begin
			view
			wanted front 10.8.0.5 -> b
			rm b
			wanted front 10.8.0.5 -> a new
		one that asks for one of another family:
			begin
			view
			create six front=fd00::5
			guess front -> six
			guess front fd00::5 -> six
			guess front fd00::6 -> -
		two networks:
			begin
			view
			create web front back
			guess front -> web
			guess back -> web
			start web
			guess front -> -
			guess back -> -
			off web back
			on web back
			guess back -> -
			stop web
			guess back -> web
			guess front -> web
		two networks on one subnet:
			begin
			view
			create web front
			create db twin
			guess front -> -
			guess twin -> -
			start db
			guess twin -> web
		one on two networks of one subnet is one:
			begin
			view
			create web front twin
			guess front -> web
		a swarm's network:
			begin
			view
			create web swarm
			guess swarm -> -
			create! db front
			guess swarm -> -
			guess front -> db
		of another space:
			begin
			view
			create web lab
			create db planned
			guess lab -> web
			guess planned -> db
		not listed yet:
			begin
			create old front
			view
			wait 1h
			create! web front
			guess front -> web
			create! db back
			guess front -> -
			list db
			guess front -> web
			guess back -> -
			list web
			guess front -> web
			guess back -> db
		rename:
			begin
			view
			create web front
			rename web db
			guess front -> db
			view
			guess front -> db
		Compose 2 recreates:
			begin
			create shop-web-1 shop/web/1 front
			create other front
			start shop-web-1
			view
			wait 1h
			create 0123456789ab_shop-web-1 shop/web/1 front
			guess front -> 0123456789ab_shop-web-1
			stop shop-web-1
			guess front -> shop-web-1
			rm shop-web-1
			rename 0123456789ab_shop-web-1 shop-web-1
			guess front -> shop-web-1
		Compose 1 recreates:
			begin
			create shop_web_1 shop/web/1 front
			create other front
			start shop_web_1
			view
			wait 1h
			stop shop_web_1
			rename shop_web_1 0123456789ab_shop_web_1
			create shop_web_1 shop/web/1 front
			guess front -> shop_web_1
			# to be given other aliases
			off shop_web_1 front
			guess front -> shop_web_1
			on shop_web_1 front
			guess front -> shop_web_1
			guess front 10.8.0.77 -> shop_web_1
			start shop_web_1
			rm 0123456789ab_shop_web_1
			guess front -> other
			rm other
			guess front -> -
		Compose 1 recreates, and a view or a list comes in between:
			begin
			view
			create web front=10.8.0.5
			off web front
			view
			list web
			guess front -> web
			guess front 10.8.0.9 -> web
			on web front=10.8.0.9
			guess front 10.8.0.9 -> web
			view
			guess front 10.8.0.9 -> web
			guess front 10.8.0.5 -> -
			wanted front 10.8.0.9 -> web new
			off web front
			on web front=10.8.0.7
			list web
			guess front 10.8.0.7 -> web
			guess front 10.8.0.9 -> -
			start web
			guess front -> -
		taken off for good:
			begin
			view
			create web front back
			off web front
			guess front -> web
			wait 10s
			view
			guess front -> -
			guess back -> web
		late events:
			begin
			view
			create web front
			late 200ms
			guess front -> web
			late 201ms
			guess front -> -
			wait 1990ms
			guess front -> -
			wait 20ms
			guess front -> web
		late events, and one in time behind them:
			begin
			view
			create web front
			late 1s
			guess front -> -
			view
			guess front -> -
			late 200ms
			guess front -> web
		late events, and the clock is set back:
			begin
			view
			create web front
			late 1s
			wait -1h
			view
			guess front -> web
		the clock is set back:
			begin
			create gone front=10.8.0.5
			create web front
			start web
			view
			rm gone
			wait -1h
			stop web
			view
			guess front -> web
			wanted front 10.8.0.5 ->
			create db front
			guess front -> db
			start web
			guess front -> db
		a view that is older than the events:
			begin
			view
			create web front
			hold
			view
			go
			start web
			guess front -> -
	`) {
		t.Run(name, func(t *testing.T) { newRosterRig(t).run(strings.Join(steps, "\n")) })
	}
}

// TestOldWords: news that arrives late does not replace newer news.
func TestOldWords(t *testing.T) {
	// columns: name, steps before, the news that is held back, the news sent ahead of it, the result
	for row := range ipamtest.Rows(5, `
		a list of before it was started | create! web front | list web | start web | guess front -> -
		a list of before it died | create! web front; start web | list web | die web | guess front -> web
		a list of before it was destroyed | create! web front | list web | rm web | guess front -> -
		a list of before it was destroyed, of which a view knew | create! web front | list web | rm web; view | guess front -> -
		a list of before it was taken off | create! web front=10.8.0.5 | list web | off web front | guess front 10.8.0.9 -> web; view; guess front 10.8.0.9 -> web
		a view of before it was started | create web front | view | start web | guess front -> -
		a view of before it was created |  | view | create web front | guess front -> web
		a view of before it was destroyed | create web front | view | rm web | guess front -> -
		a rename | create web front | rename web db | start db; rename db web; stop web | guess front -> web
		a start | create old front; wait 1h; create web front | start web | stop web | guess front -> web
		an end | create web front; start web | die web | start web | guess front -> -
		a creation | create old front | create! web front | start web; list web; stop web | off web front; guess front 10.8.0.9 -> -
		a destruction | create web front | rm web | view | guess front -> -
		an event of one that was destroyed, of which a view knew | create! web front | rename web db | rm db; view | guess front -> -
		a creation, long after it | create old front | create! web front | wait 11s; start web; list web; stop web | guess front -> web
		a list of before it asked for another address | create web front=10.8.0.5 | list web | off web front; on web front=10.8.0.9; list web | wanted front 10.8.0.9 -> web new; wanted front 10.8.0.5 ->
	`) {
		t.Run(row[0], func(t *testing.T) {
			for i := range row {
				row[i] = strings.ReplaceAll(row[i], "; ", "\n")
			}
			h := newRosterRig(t)
			h.run("begin\nview\n" + row[1])
			h.run("hold\n" + row[2])
			held := h.held
			h.holds, h.held = false, nil
			h.run(row[3])
			h.release(held)
			h.run(row[4])
		})
	}
}

// TestOldListOfPlaces: a late list still gives a container's networks after its start or end, but nothing else.
func TestOldListOfPlaces(t *testing.T) {
	for _, row := range []struct {
		action, before, want string
	}{{eventStart, "", "-"}, {eventDie, "e1", "web"}} {
		h := newRosterRig(t)
		h.run("begin\nview")
		c := ipam.EngineContainer{ID: "id", Name: "web"}
		listed := c
		listed.Endpoints = []ipam.EngineEndpoint{{Network: "front", ID: row.before}}
		at := h.clock.Now().Add(time.Second)
		h.roster.Hear(&ipam.EngineNews{At: at, Event: &ipam.EngineEvent{Action: eventCreate, Container: c}})
		h.roster.Hear(&ipam.EngineNews{At: at.Add(2 * time.Millisecond),
			Event: &ipam.EngineEvent{Action: row.action, Container: c}})
		h.roster.Hear(&ipam.EngineNews{At: at.Add(time.Millisecond), Listed: []ipam.EngineContainer{listed}})
		h.run("guess front -> " + row.want)
	}
}

// TestUnheard: a whole view shows changes that had no event. A list alone does not show the endpoints of a starting
// container.
func TestUnheard(t *testing.T) {
	h := newRosterRig(t)
	h.run("begin\ncreate web front\nstart web\nview\nguess front -> -")
	h.guest("web").runs = false
	h.run("view\nguess front -> web")
	h.event(eventConnect, h.guest("web"), "front")
	h.run("guess front -> -\nlist web\nguess front -> -\nview\nguess front -> web")
	h.guest("web").runs = true
	h.run("list web\nguess front -> -")
}

// TestOldNetworks: a list of networks that is older than a view does not replace it.
func TestOldNetworks(t *testing.T) {
	h := newRosterRig(t)
	h.run("begin\ncreate web front\nview")
	h.roster.Hear(&ipam.EngineNews{At: h.clock.Now().Add(-time.Second), Networks: &ipam.EngineNetworkList{}})
	h.run("guess front -> web")
	if bridges, live := h.roster.Bridges(); !live || bridges != nil {
		t.Errorf("%v, %t", bridges, live)
	}
	bridges := []ipam.EngineNetwork{{ID: "docker0"}}
	h.roster.Hear(&ipam.EngineNews{At: h.clock.Now(), Networks: &ipam.EngineNetworkList{Bridges: bridges}})
	h.run("guess front -> -")
	if got, _ := h.roster.Bridges(); len(got) != 1 {
		t.Errorf("%v", got)
	}
	h.run("view\nguess front -> web")
}

// TestDead: a container that will not start again asks for nothing.
func TestDead(t *testing.T) {
	for _, state := range []string{stateDead, stateRemoving} {
		h := newRosterRig(t)
		h.run("begin\ncreate web front\ncreate db front\nview")
		h.clock.wait(time.Second)
		view := h.seen()
		view.Containers[0].State = state
		h.roster.Show(view)
		h.run("guess front -> db")
	}
}

// TestGuessSoon: a hint says whether a name may be known soon, or a wait is useless.
func TestGuessSoon(t *testing.T) {
	newRosterRig(t).run(`
		# nobody follows the engine
		soon front -> false
		begin
		view
		# the container was not heard of
		soon front -> true
		create web front
		soon front -> false
		# it is one of two
		create db front
		soon front -> false
		late 1h
		soon front -> true
		wait 2s
		soon front -> false
		lose
		soon front -> false`)
}

// TestGuessOthers: if the engine does not answer, containers that ended together share their old addresses, unless a
// new one may be asking.
func TestGuessOthers(t *testing.T) {
	newRosterRig(t).run(`
		begin
		create b front
		create a front
		create idle front
		view
		wait 1h
		start b
		die b
		start a
		die a
		others front -> b a
		create! new front
		others front ->`)
}

// TestRosterAtOnce: requests, events and views run concurrently.
func TestRosterAtOnce(t *testing.T) {
	h := newRosterRig(t)
	h.run("begin\ncreate web front=10.8.0.5\nview")
	stop := make(chan struct{})
	var asking, telling sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					h.roster.guess(ipam.Question{Space: "local", CIDR: prefix("10.8.0.0/24")})
					h.roster.Wanted("local", prefix("10.8.0.0/24"))
					h.roster.Bridges()
				}
			}
		})
	}
	for n := range 2 {
		telling.Go(func() {
			other := newRosterRig(t)
			other.roster, other.number = h.roster, 100*(n+1)
			for range 50 {
				other.run("create db front\nstart db\nview\nstop db\nlose\nbegin\nrename db web\nrm web")
			}
		})
	}
	telling.Wait()
	close(stop)
	asking.Wait()
}
