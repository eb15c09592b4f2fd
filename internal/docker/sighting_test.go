package docker

import (
	"net/netip"
	"testing"

	"berth/internal/docker/dockertest"
	"berth/internal/ipam"
)

// word returns what a request would learn about an address's lease.
func (tn *scenario) word(a netip.Addr) ipam.Sighting {
	tn.t.Helper()
	l := tn.leaseOf(a)
	return tn.w.cfg.Roster.Endpoint(ipam.LeaseRef{Space: "local", Address: a, ID: l.ID}, l.Since)
}

// TestSightings: a lease has an endpoint if a look has shown it, and none if two looks in a row have missed it. A lease
// that was never seen may be of an endpoint that is being created.
func TestSightings(t *testing.T) {
	playScenarios(t, newScenario, `
		seen and missed:
			run web front -> 10.8.0.2
			word 10.8.0.2 -> unseen
			wait 1s
			look
			word 10.8.0.2 -> seen web
			vanish web
			wait 1s
			look
			word 10.8.0.2 -> seen web
			appear web front 10.8.0.2 1
			wait 1s
			look
			vanish web
			wait 1s
			look
			word 10.8.0.2 -> seen web
			wait 1s
			look
			word 10.8.0.2 -> gone web
		never seen, as it is being made:
			run db front -> 10.8.0.2
			vanish db
			wait 1s
			look
			wait 1s
			look
			wait 1s
			look
			word 10.8.0.2 -> unseen
			# missed once, and twice, after a minute
			wait 1m
			look
			word 10.8.0.2 -> unseen
			wait 1s
			look
			word 10.8.0.2 -> gone
			# of a later lease of the address nothing is said
			release front 10.8.0.2
			lease front 9 10.8.0.2
			word 10.8.0.2 -> unseen
		any endpoint has the address:
			run web front
			vanish web
			appear stranger front 10.8.0.2
			wait 1m
			look
			word 10.8.0.2 -> seen stranger
			wait 1m
			look
			wait 1m
			look
			word 10.8.0.2 -> seen stranger
		a check counts as two looks:
			run web front
			wait 1s
			look
			vanish web
			wait 1s
			check
			word 10.8.0.2 -> gone web
		# The onlooker is gone, but maybe not the engine; if that ends, an endpoint that was never seen may not exist.
		the engine ends:
			run web front
			wait 1s
			look
			run db front
			vanish db
			wait 1s
			lose
			word 10.8.0.3 -> unseen
			ends
			word 10.8.0.2 -> seen web
			word 10.8.0.3 -> cutoff
			wait 1s
			run new front
			word 10.8.0.4 -> unseen
			wait 1s
			look
			wait 1s
			look
			word 10.8.0.3 -> gone
	`)
	newPushed(t).plays(`
		run web front
		wait 1s
		show
		vanish web
		wait 1s
		show
		# the same pushed view counts once
		check
		check
		word 10.8.0.2 -> seen web
		wait 1s
		show
		word 10.8.0.2 -> gone web
	`)
}

// TestEngineEnds: a follower hears when the engine ends, but not when only the events break off.
func TestEngineEnds(t *testing.T) {
	for _, ends := range []bool{true, false} {
		f := dockertest.New(t)
		e := follow(t, open(f))
		<-e.begun
		eventually(t, "a stream", f.Follows)
		if ends {
			f.Stop()
		} else {
			f.BreakOff()
		}
		err := <-e.ended
		e.ended <- err
		if err == nil {
			t.Error("it has ended without a reason")
		}
		heard := 0
		close(e.told)
		for news := range e.told {
			if news.Ends {
				heard++
			}
		}
		if (heard == 1) != ends || heard > 1 {
			t.Errorf("the engine has ended: %t; it was told %d times", ends, heard)
		}
	}
}

// TestSightingNames: a lease's container is found by its present name, as long as it exists.
func TestSightingNames(t *testing.T) {
	tn := newScenario(t)
	tn.plays(`
		run web front
		wait 1s
		look
		exists web -> true
		exists 0123456789ab_web -> true
		exists old -> false
		exists nobody id-web -> true
		exists nobody id-other -> false
		exists nobody -> false
		event rename id-web old
		word 10.8.0.2 -> seen old
		exists web -> false
		exists old -> true
		# another is called so
		event create id-2 web
		event die id-web old
		word 10.8.0.2 -> seen old
		exists web -> true
		exists old -> true
		# back and forth
		event destroy id-2 web
		event rename id-web web
		event rename id-web last
		exists web -> false
		exists old -> false
		exists last -> true
		# nobody looks any more
		wait 4m
		exists last -> false
		event destroy id-web last
		exists nobody id-web -> false
	`)
	if r := tn.w.cfg.Roster; len(r.names)+len(r.byName)+len(r.ids) != 0 {
		t.Errorf("left: %v, %v, %v", r.names, r.byName, r.ids)
	}
}
