package docker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// leaked returns a scenario with a lease that outlived its container.
func leaked(t *testing.T) (*scenario, string) {
	t.Helper()
	tn := newScenario(t)
	tn.plays(`
		run web front
		run gone front -> 10.8.0.3
		vanish gone
	`)
	tn.settle(time.Second)
	return tn, "10.8.0.3"
}

// TestPatience: an unused lease ends after five minutes and two checks without its endpoint, unless something
// breaks the wait.
func TestPatience(t *testing.T) {
	begin := func(t *testing.T) *scenario {
		tn, _ := leaked(t)
		tn.plays("check repair -> unused_lease 10.8.0.3")
		tn.plays("says can repair it from " + tn.last.Taken.Add(5*time.Minute).Format(timeForm) +
			" on, after it has lasted 5m0s and two checks have found it")
		return tn
	}
	const ripe, raw = "check repair -> unused_lease 10.8.0.3 repaired\nat 10.8.0.3 -> remembered - 2 front",
		"check repair -> unused_lease 10.8.0.3\nat 10.8.0.3 -> held - 2 front"
	playScenarios(t, begin, strings.NewReplacer("RIPE", ripe, "RAW", raw,
		"TEN MINUTELY", strings.Repeat("wait 30s\ncheck\n", 10), "TEN", strings.Repeat("wait 20s\ncheck repair\n", 10)).Replace(`
		nothing:
			wait 5m
			RIPE
		too little time:
			wait 4m59s
			RAW
		many checks, too little time:
			TEN
			RAW
		many checks:
			TEN MINUTELY
			RIPE
		the engine was away, and then all anew:
			wait 4m
			stop
			check repair -> unreachable, nothing
			start
			wait 1m
			RAW
			wait 4m59s
			check -> unused_lease 10.8.0.3
			wait 1s
			check -> unused_lease 10.8.0.3 repairable
			# it was first seen so long before
			since -> 10m0s
			RIPE
			check repair -> nothing
		the engine refused:
			broken /containers
			check repair
			broken
			wait 5m
			RAW
		the engine's events broke off:
			breakoff
			anew
			wait 5m
			RAW
		the engine's events began anew:
			anew
			wait 5m
			RAW
		it is another engine:
			renew
			wait 5m
			RAW
		the daemon started anew:
			daemon
			wait 5m
			RAW
		a look saw an endpoint:
			appear gone front 10.8.0.3 2
			wait 1m
			look
			vanish gone
			wait 4m
			check repair -> unused_lease 10.8.0.3
			at 10.8.0.3 -> held gone 2 front
		a look saw no endpoint:
			wait 5m
			look
			RIPE
		a look failed:
			broken /containers
			look ! it hurts
			broken
			wait 5m
			RAW
		it is another lease:
			wait 4m
			release front 10.8.0.3
			lease front 2 10.8.0.3
			wait 1m
			RAW
		the finding ended and returned:
			appear gone front 10.8.0.3 2
			wait 1h
			check -> nothing
			vanish gone
			wait 1h
			check repair -> unused_lease 10.8.0.3
			since -> 0s
	`))
}

// TestPatienceOfAttachments: a later attachment to a subnet that is about to end has its own full wait.
func TestPatienceOfAttachments(t *testing.T) {
	p := patience{grace: 5 * time.Minute}
	at := func(pools ...int) []finding {
		f := finding{sure: true, slow: true,
			Finding: ipam.Finding{Kind: ipam.UnusedSubnet, Subnet: prefix("10.8.0.0/24"), Pool: idN(pools[0])}}
		for _, n := range pools {
			f.pools = append(f.pools, idN(n))
		}
		return []finding{f}
	}
	begin := now
	p.note("x", begin, at(1))
	p.note("x", begin.Add(4*time.Minute), at(1, 2))
	both := at(1, 2)
	p.note("x", begin.Add(6*time.Minute), both)
	if p.ripe(&both[0], begin.Add(6*time.Minute)) {
		t.Error("the second attachment was waited for two minutes")
	}
	one := at(1)
	if !p.ripe(&one[0], begin.Add(6*time.Minute)) {
		t.Error("the first attachment was waited for six minutes, and is not ripe")
	}
	p.note("x", begin.Add(9*time.Minute), both)
	if !p.ripe(&both[0], begin.Add(9*time.Minute)) {
		t.Error("both were waited for five minutes, and are not ripe")
	}
	p.seen(&ipam.LeaseInfo{Pool: idN(2)})
	if p.ripe(&both[0], begin.Add(9*time.Minute)) {
		t.Error("one of them is in use, and ripe")
	}
}

// TestPatienceWithoutIdentity: a view without the engine's id does not count as another engine's.
func TestPatienceWithoutIdentity(t *testing.T) {
	found := []finding{{sure: true, slow: true,
		Finding: ipam.Finding{Kind: ipam.UnusedLease, Address: addr("10.8.0.2"), Lease: 7}}}
	for ids, want := range map[string]bool{"x x": true, " x": true, "x ": true, "x y": false, "x  y": false} {
		p := patience{grace: time.Minute}
		for i, id := range slices.Collect(strings.SplitSeq(ids, " ")) {
			p.note(id, now.Add(time.Duration(i)*time.Minute), found)
		}
		if got := p.ripe(&found[0], now.Add(2*time.Minute)); got != want {
			t.Errorf("after %q it is ripe: %v", ids, got)
		}
	}
}
