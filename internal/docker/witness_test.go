package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

var errTest = errors.New("the stream broke")

// TestRepairs: the actor check repairs each kind of certain finding, and the finding is gone afterwards. If the
// service refuses a repair, that is reported and nothing changes.
func TestRepairs(t *testing.T) {
	playScenarios(t, newScenario, strings.NewReplacer("WAIT", "wait created\ncheck\nwait 5m").Replace(`
		a lease:
			run gone front -> 10.8.0.2
			vanish gone
			WAIT
			check -> unused_lease 10.8.0.2 repairable
			check repair -> unused_lease 10.8.0.2 repaired
			actor lease.release -> check
			check repair -> nothing
			# its holder comes again
			lease front 1 -> 10.8.0.2
		an attachment:
			run web front
			network twin 10.8.0.0/24
			vanishnet twin
			WAIT
			check -> unused_attachment 10.8.0.0/24 repairable
			check repair -> unused_attachment 10.8.0.0/24 repaired
			actor pool.release -> check
			check repair -> nothing
			attachments -> front
		a subnet:
			network back 10.9.0.0/24
			run db back
			network twin 10.9.0.0/24
			vanish db
			vanishnet back
			vanishnet twin
			WAIT
			# without its Docker network the lease ends only with its pool
			check -> unused_lease 10.9.0.2, unused_subnet 10.9.0.0/24 repairable
			check repair -> unused_lease 10.9.0.2, unused_subnet 10.9.0.0/24 repaired
			actor subnet.remove -> check
			check repair -> nothing
			subnets -> 10.8.0.0/24
		a memory:
			run gone front
			name 10.8.0.2 gone
			release front 10.8.0.2
			vanish gone
			wait 744h
			WAIT
			check -> stale_memory 10.8.0.2 repairable
			check repair -> stale_memory 10.8.0.2 repaired
			check repair -> nothing
			at 10.8.0.2 -> none
		an address:
			appear web front 10.8.0.9
			WAIT
			check -> uncovered_address 10.8.0.9 repairable
			check repair -> uncovered_address 10.8.0.9 repaired
			actor lease.take -> check
			check repair -> nothing
			at 10.8.0.9 -> held web 1 front
			# after the container's stop
			release front 10.8.0.9
			at 10.8.0.9 -> remembered web 1 front
		the lease of one who is gone, of an address that another runs with:
			run gone front
			reserve web 10.8.0.2 force
			vanish gone
			appear web front 10.8.0.2
			WAIT
			check -> outdated_lease 10.8.0.2 repairable
			check repair -> outdated_lease 10.8.0.2 repaired
			actor lease.take -> check
			actor lease.release -> check
			check repair -> nothing
			at 10.8.0.2 -> held web 2 front
			release front 10.8.0.2
			at 10.8.0.2 -> none
			owned -> web=10.8.0.2
		one that is refused:
			reserve db 10.8.0.9
			appear web front 10.8.0.9
			wait 1s
			check repair -> uncovered_address 10.8.0.9 repairable
			says could not be repaired
			says db
			at 10.8.0.9 -> none
		# An uncertain finding is never repaired, however long it lasts: two have one address, and either attachment may
		# be the removed network's.
		what is uncertain:
			run web front
			appear other front 10.8.0.2
			network back 10.9.0.0/24
			network twin 10.9.0.0/24
			vanishnet twin
			WAIT
			check repair -> doubled_address 10.8.0.2, unused_attachment 10.9.0.0/24
			wait 1h
			check repair -> doubled_address 10.8.0.2, unused_attachment 10.9.0.0/24
			attachments -> back front twin
		# An engine requests the subnet of a new network before it lists the network, also if the subnet has another one.
		networks that are being created:
			wait 1h
			network back 10.9.0.0/24
			network twin 10.8.0.0/24
			vanishnet back
			wait 29s
			check -> nothing
			vanishnet twin
			check -> nothing
			wait 1s
			check -> unused_subnet 10.9.0.0/24, unused_attachment 10.8.0.0/24
		# With an earlier report, only findings that are in both are repaired. A second leak of an address is another lease.
		those of an earlier report:
			run one front
			run two front
			vanish one
			wait 1s
			check
			keep
			vanish two
			wait 1s
			check
			wait 1h
			check only -> unused_lease 10.8.0.2 repairable, unused_lease 10.8.0.3 repairable
			check repair only -> unused_lease 10.8.0.2 repaired, unused_lease 10.8.0.3 repairable
			lease front 1 10.8.0.2
			wait 1s
			check
			wait 1h
			check repair only -> unused_lease 10.8.0.2 repairable, unused_lease 10.8.0.3 repairable
	`))
}

// TestRepairOnly: a report of another host is refused.
func TestRepairOnly(t *testing.T) {
	tn := newScenario(t)
	_, err := tn.w.Check(t.Context(), ipam.CheckRequest{Repair: true, Only: &ipam.CheckReport{Host: "h2"}})
	if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "h2") {
		t.Errorf("with a report of another host: %v", err)
	}
}

// during calls do once, after the last request of the nth view from now.
func (tn *scenario) during(n int, do func()) {
	tn.engine.Lock()
	defer tn.engine.Unlock()
	tn.engine.Ask = func(_, path string) {
		if !strings.HasSuffix(path, "/networks/id-front") {
			return
		}
		if n--; n == 0 {
			tn.engine.Lock()
			networks, containers := tn.engine.Networks, tn.engine.Containers
			tn.engine.Unlock()
			do()
			tn.engine.Lock()
			later, laterContainers := tn.engine.Networks, tn.engine.Containers
			tn.engine.Networks, tn.engine.Containers = networks, containers // for the answer to this request
			tn.engine.Ask = func(_, _ string) {
				tn.engine.Lock()
				defer tn.engine.Unlock()
				tn.engine.Networks, tn.engine.Containers, tn.engine.Ask = later, laterContainers, nil
			}
			tn.engine.Unlock()
		}
	}
}

// TestStoppedMeanwhile: between the reading of the view and of the records, a container stops and another gets its
// address. That is no finding, because only the first view has it.
func TestStoppedMeanwhile(t *testing.T) {
	tn := newScenario(t)
	stopped, other := tn.run("stopped", "front"), tn.run("other", "front")
	tn.settle(time.Second)
	tn.during(1, func() {
		tn.release("front", stopped)
		tn.release("front", other)
		tn.vanish("stopped")
		tn.vanish("other")
		tn.number++
		tn.appear("next", "front", tn.lease("front", macN(tn.number), other))
		tn.engine.Set(tn.view)
	})
	r := tn.check(ipam.CheckRequest{Repair: true})
	if len(r.Findings) > 0 {
		t.Errorf("found %q", told(&r))
	}
	tn.plays(`
		at 10.8.0.2 -> remembered - 1 front
		at 10.8.0.3 -> held - 3 front
		check repair -> nothing
	`)
}

// TestDiesMeanwhile: if the engine is gone before the second view, nothing is reported.
func TestDiesMeanwhile(t *testing.T) {
	tn, _ := leaked(t)
	tn.check(ipam.CheckRequest{})
	tn.clock.wait(5 * time.Minute)
	tn.engine.Lock()
	lists := 0
	tn.engine.Ask = func(_, path string) {
		tn.engine.Lock()
		defer tn.engine.Unlock()
		if strings.HasSuffix(path, "/containers/json") {
			if lists++; lists == 1 {
				tn.engine.Broken = "/networks/id-front"
			}
		}
	}
	tn.engine.Broken = ""
	tn.engine.Unlock()
	r := tn.check(ipam.CheckRequest{Repair: true})
	if r.Engine != ipam.EngineUnreachable || len(r.Findings) != 0 || !strings.Contains(r.Trouble, "it hurts") {
		t.Errorf("the report is %+v", r)
	}
	tn.plays("at 10.8.0.3 -> held - 2 front")
}

// TestSuperseded: a check or look ends a replaced reservation when its owner runs with another one, whether or not
// repairs are wanted (BO-13).
func TestSuperseded(t *testing.T) {
	for _, see := range []string{
		"check -> superseded_reservation 10.8.0.20 repaired, superseded_reservation 10.8.0.21 repaired", "look"} {
		// two containers, because Docker gives one container no second address
		newScenario(t).plays(`
			reserve web 10.8.0.20,10.8.0.21
			reserve web 10.8.0.30,10.8.0.31
			check repair -> nothing
			owned -> web=10.8.0.20 web=10.8.0.21 web=10.8.0.30 web=10.8.0.31
			ask web front 10.8.0.30
			ask web front 10.8.0.31 0123456789ab_web
			wait 1s
			` + see + `
			owned -> web=10.8.0.30 web=10.8.0.31
			actor reservation.remove -> check
		`)
	}
}

// TestCheckEnds: a check that waits for its turn ends with its context.
func TestCheckEnds(t *testing.T) {
	tn := newScenario(t)
	done, err := tn.w.take(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tn.w.Check(ctx, ipam.CheckRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	done()
	if _, err := tn.w.Check(ctx, ipam.CheckRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	tn.plays("check -> nothing")
}
