package service_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
)

// jumps are jumps of a clock. All but the suspend are undone a while later.
var jumps = map[string]time.Duration{"a day back": -24 * time.Hour, "an hour back": -time.Hour,
	"an hour ahead": time.Hour,
	"a day ahead":   24 * time.Hour, "ten years ahead": 10 * 365 * 24 * time.Hour, "suspended": 8 * time.Hour}

// TestJumps: whatever the clock does, events are in the order of what happened, with the clock's times, and none
// is lost. A quarantine lasts no longer than the network says. What Berth shows agrees with what it gives.
func TestJumps(t *testing.T) {
	for name, jump := range jumps {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", name, restarts), func(t *testing.T) {
				j := &jumping{Stage: ipamtest.New(t), restarts: restarts}
				j.Run("network net1 subnet=192.0.2.0/29,pool quarantine=10m\nattach P net=net1")
				j.Run("network net2 subnet=198.51.100.0/29,pool")
				j.told = len(j.events())
				for i := range 5 {
					j.step(time.Second, fmt.Sprintf("ask P c%d mac=%d", i, i))
				}
				j.step(time.Second, "reserve net1 job 192.0.2.6 for=2h")
				j.step(time.Second, "back P 192.0.2.1")
				j.step(jump, "back P 192.0.2.2")
				j.step(30*time.Second, "network.set net1 tag.a=b")
				j.step(30*time.Second, "back P 192.0.2.3")
				j.trim()
				if name != "suspended" {
					j.step(-jump, "network.set net1 tag.a=c")
				}
				j.step(time.Second, "reserve net2 late 198.51.100.1")
				j.says("the reservation", j.Reservations(ipam.AddressFilter{Network: "net2"})[0].Since)
				j.step(0, "ask P late mac=9 ip=192.0.2.1")
				j.says("the taking", j.lease("192.0.2.1").Since)
				j.step(0, "back P 192.0.2.1")
				j.says("the release", j.lease("192.0.2.1").Released)
				j.step(time.Second, "back P 192.0.2.4")
				j.step(10*time.Minute, "network.set net1 tag.a=d")
				j.agrees(4)
				for i := range 4 {
					j.step(time.Second, fmt.Sprintf("ask P d%d mac=%d", i, i+10))
				}
				j.trim()
				j.agrees(0)
			})
		}
	}
}

// jumping is a stage whose clock jumps.
type jumping struct {
	*ipamtest.Stage
	restarts bool
	told     int // number of events
}

func (j *jumping) events() []ipam.Event {
	j.T.Helper()
	all, err := j.S.Events(ctx, ipam.EventFilter{})
	fine(j.T, err)
	return all
}

// step moves the clock and then runs a line.
func (j *jumping) step(after time.Duration, line string) {
	j.T.Helper()
	j.Clock.Time = j.Clock.Time.Add(after)
	if j.restarts {
		j.Open()
	}
	j.Line(line)
	all := j.events()
	if len(all) < j.told {
		j.T.Fatalf("%s: there are %d events, and there were %d", line, len(all), j.told)
	}
	for i := j.told; i < len(all); i++ {
		j.says(line+": the event "+all[i].Verb.String(), all[i].Time)
		if i > 0 && all[i].ID <= all[i-1].ID {
			j.T.Errorf("%s: after the event %d comes %d", line, all[i-1].ID, all[i].ID)
		}
	}
	j.told = len(all)
}

// says compares a time that Berth shows with the clock.
func (j *jumping) says(what string, at time.Time) {
	j.T.Helper()
	if off := at.Sub(j.Clock.Time); off < 0 || off > time.Second {
		j.T.Errorf("%s says %s, the clock %s", what, at, j.Clock.Time)
	}
}

// lease returns the lease of an address, or its remembered one.
func (j *jumping) lease(addr string) ipam.LeaseInfo {
	return ipamtest.ListLeases(j.T, j.S, ipam.LeaseFilter{Address: netip.MustParseAddr(addr), Remembered: true})[0]
}

// trim trims the history. No event is too old.
func (j *jumping) trim() {
	j.T.Helper()
	fine(j.T, j.S.Trim(ctx))
	if n := len(j.events()); n != j.told {
		j.T.Errorf("of %d events %d are left", j.told, n)
	}
}

// agrees compares filtered events with all events, and the listed free addresses with those that Berth gives: n
// addresses, and the one that was reserved for a time if that time is over.
func (j *jumping) agrees(n int64) {
	j.T.Helper()
	all := j.events()
	for _, e := range all {
		for _, f := range []ipam.EventFilter{{Since: e.Time}, {Before: e.Time},
			{Since: e.Time, Before: e.Time.Add(time.Hour)}, {Before: e.Time, Last: 3}, {After: e.ID, First: 4}} {
			want := slices.DeleteFunc(slices.Clone(all), func(e ipam.Event) bool { return !f.Has(&e) || e.ID <= f.After })
			if f.Last > 0 {
				want = want[max(len(want)-f.Last, 0):]
			} else if f.First > 0 {
				want = want[:min(len(want), f.First)]
			}
			got, err := j.S.Events(ctx, f)
			if err != nil || !slices.EqualFunc(got, want, func(a, b ipam.Event) bool { return a.ID == b.ID }) {
				j.T.Errorf("%+v: %d events, want %d, %v", f, len(got), len(want), err)
			}
		}
	}
	reserved := 0
	for _, err := range j.S.Reservations(ctx, ipam.AddressFilter{Network: "net1"}) {
		fine(j.T, err)
		reserved++
	}
	free, err := j.S.Free(ctx, "net1", ipam.FreeFilter{})
	sum, subnets := int64(0), j.Show("net1").Subnets
	for _, r := range free {
		sum += r.Addresses.Int64()
	}
	if shown := subnets[0].Pools[0].Free.Int64(); err != nil || sum != shown || n > 0 && sum != n+1-int64(reserved) {
		j.T.Errorf("%d are reserved, %v free, and %d are shown, %v", reserved, free, shown, err)
	}
	switch {
	case n == 0:
	case reserved == 0:
		j.Line("take net1 other 192.0.2.6")
		j.Line("release net1 other")
	default:
		j.Line("take net1 other 192.0.2.6 ! inuse; job")
	}
	j.told = len(j.events())
}

// TestTrimPastAJump: events with ids from a clock that was ahead are trimmed with their neighbours.
func TestTrimPastAJump(t *testing.T) {
	r := ipamtest.New(t)
	r.Line("network net1 subnet=192.0.2.0/29,pool")
	r.Run("wait 87600h\nnetwork.set net1 tag.a=0\nnetwork.set net1 tag.a=1\nwait -87600h")
	const days = 200
	for i := range days {
		r.Run(fmt.Sprintf("wait 24h\nnetwork.set net1 tag.a=%d", i+2))
		fine(t, r.S.Trim(ctx))
	}
	all, err := r.S.Events(ctx, ipam.EventFilter{})
	if err != nil || len(all) != 91 || r.Clock.Time.Sub(all[0].Time) > 90*24*time.Hour+time.Second {
		t.Errorf("%d events are left, the first of %s, %v", len(all), all[0].Time, err)
	}
}

// TestThrownAwayAhead: while ids are ahead of the clock, short-lived containers still share records.
func TestThrownAwayAhead(t *testing.T) {
	r := ipamtest.New(t)
	r.Line("network net1 subnet=192.0.2.0/29,pool")
	r.Line("attach P net=net1")
	r.Line("wait 87600h")
	r.Line("network.set net1 tag.a=b")
	r.Line("wait -87600h")
	for i := range 20 {
		r.Line(fmt.Sprintf("ask P c%d ip=192.0.2.1", i))
		r.Line("wait 500ms")
		r.Line("back P 192.0.2.1")
	}
	sum := ledger.Ask(r.S.Ledger, (*ledger.Index).Events)
	if *ipamtest.OverEtcd == "" && (sum.Ahead == 0 || sum.Ahead > 3) {
		t.Errorf("%d containers left %d records", 20, sum.Ahead)
	}
}
