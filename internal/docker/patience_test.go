package docker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// leaked returns a town with a lease that outlived its container.
func leaked(t *testing.T) (*town, string) {
	t.Helper()
	tn := newTown(t)
	tn.run("web", "front")
	addr := tn.run("gone", "front")
	tn.vanish("gone")
	tn.settle(time.Second)
	return tn, addr.String()
}

// TestPatience: an unused lease is ended after five minutes and two checks without its endpoint, unless something
// breaks the wait.
func TestPatience(t *testing.T) {
	repair := ipam.CheckRequest{Repair: true}
	for name, row := range map[string]struct {
		do   func(tn *town) // after a first check; five minutes then pass
		want string         // the findings of the next check
	}{
		"nothing":         {func(tn *town) { tn.clock.wait(5 * time.Minute) }, "repaired"},
		"too little time": {func(tn *town) { tn.clock.wait(5*time.Minute - time.Second) }, ""},
		"many checks, too little time": {func(tn *town) {
			for range 10 {
				tn.clock.wait(20 * time.Second)
				tn.check(repair)
			}
		}, ""},
		"many checks": {func(tn *town) {
			for range 10 {
				tn.clock.wait(30 * time.Second)
				tn.check(ipam.CheckRequest{})
			}
		}, "repaired"},
		"the engine was away": {func(tn *town) {
			tn.clock.wait(4 * time.Minute)
			tn.engine.stop()
			r := tn.check(repair)
			if r.Engine != ipam.EngineUnreachable || len(r.Findings) != 0 || r.Trouble == "" {
				tn.t.Errorf("of an engine that is away: %+v", r)
			}
			tn.engine.start()
			tn.clock.wait(time.Minute)
		}, ""},
		"the engine refused": {func(tn *town) {
			tn.engine.refuse = "/containers"
			tn.check(repair)
			tn.engine.refuse = ""
			tn.clock.wait(5 * time.Minute)
		}, ""},
		"the engine's events broke off": {func(tn *town) {
			tn.w.breakOff(tn.t.Context(), word{errTest, time.Now()})
			tn.w.breakOff(tn.t.Context(), word{})
			tn.clock.wait(5 * time.Minute)
		}, ""},
		"the engine's events began anew": {func(tn *town) {
			tn.w.breakOff(tn.t.Context(), word{})
			tn.clock.wait(5 * time.Minute)
		}, ""},
		"it is another engine": {func(tn *town) {
			must(tn.t, tn.w.cfg.Engine.renew())
			tn.engine.id = "other"
			tn.clock.wait(5 * time.Minute)
		}, ""},
		"the daemon started anew": {func(tn *town) {
			tn.w = tn.witness(tn.w.cfg.Engine, nil)
			tn.clock.wait(5 * time.Minute)
		}, ""},
		"a look saw an endpoint": {func(tn *town) {
			tn.number = 2
			tn.appear("gone", "front", addr("10.8.0.3"))
			tn.settle(time.Minute)
			must(tn.t, tn.w.look(tn.t.Context()))
			tn.vanish("gone")
			tn.settle(4 * time.Minute)
		}, ""},
		"a look saw no endpoint": {func(tn *town) {
			tn.clock.wait(5 * time.Minute)
			must(tn.t, tn.w.look(tn.t.Context()))
		}, "repaired"},
		"a look failed": {func(tn *town) {
			tn.engine.refuse = "/containers"
			if err := tn.w.look(tn.t.Context()); err == nil {
				tn.t.Error("a look of nothing succeeded")
			}
			tn.engine.refuse = ""
			tn.clock.wait(5 * time.Minute)
		}, ""},
		"it is another lease": {func(tn *town) {
			tn.clock.wait(4 * time.Minute)
			tn.release("front", addr("10.8.0.3"))
			tn.lease("front", macN(2), addr("10.8.0.3"))
			tn.clock.wait(time.Minute)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tn, leak := leaked(t)
			first := tn.check(repair)
			wantTold(t, first, "unused_lease "+leak)
			ready := first.Taken.Add(5 * time.Minute).Format(timeForm)
			if d := first.Findings[0].Detail; !strings.Contains(d, "can repair it from "+ready+
				" on, after it has lasted 5m0s and two checks have found it") {
				t.Errorf("it says %q", d)
			}
			row.do(tn)
			want := strings.TrimSpace("unused_lease " + leak + " " + row.want)
			wantTold(t, tn.check(repair), want)
			if held := tn.leaseOf(addr(leak)).State == "held"; held == (row.want != "") {
				t.Errorf("the lease is held: %v", held)
			}
		})
	}
}

// TestPatienceBeginsAnew: a break resets the wait once; then two checks and five minutes are enough again.
func TestPatienceBeginsAnew(t *testing.T) {
	tn, leak := leaked(t)
	first := tn.check(ipam.CheckRequest{}).Findings[0].Seen
	tn.clock.wait(4 * time.Minute)
	tn.engine.stop()
	tn.check(ipam.CheckRequest{Repair: true})
	tn.engine.start()
	tn.clock.wait(4 * time.Minute)
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}), "unused_lease "+leak)
	tn.clock.wait(5 * time.Minute)
	r := tn.check(ipam.CheckRequest{})
	wantTold(t, r, "unused_lease "+leak+" repairable")
	if seen := r.Findings[0].Seen; !seen.Equal(first) {
		t.Errorf("it was first seen so at %s, and the report says %s", first, seen)
	}
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}), "unused_lease "+leak+" repaired")
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}))
}

// TestPatienceSeen: if a finding ends and returns, its time starts again.
func TestPatienceSeen(t *testing.T) {
	tn, leak := leaked(t)
	tn.check(ipam.CheckRequest{})
	tn.number = 2
	tn.appear("gone", "front", addr(leak))
	tn.settle(time.Hour)
	wantTold(t, tn.check(ipam.CheckRequest{}))
	tn.vanish("gone")
	tn.settle(time.Hour)
	r := tn.check(ipam.CheckRequest{})
	wantTold(t, r, "unused_lease "+leak)
	if seen := r.Findings[0].Seen; !seen.Equal(tn.clock.Now()) {
		t.Errorf("seen %s, and it is %s", seen, tn.clock.Now())
	}
}

// TestPatienceOfAttachments: a later attachment to a subnet that will be ended has its own full wait.
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

// TestPatienceWithoutIdentity: a view without the engine's id is not from another engine.
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
