package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// twoHosts are two hosts on one network, of which each runs a container; a snapshot is taken then, and each goes on:
// one more is started, and the first one ended.
func twoHosts(t *testing.T, headroom int) (r *backRig, a, b *backHost) {
	t.Helper()
	r = newBackRig(t, t)
	t.Cleanup(func() { r.end() })
	a = r.host("a")
	a.ready()
	if _, err := a.Edit(t.Context(), ipam.EditOptions{}, lanWith(headroom, lanCIDR)); err != nil {
		t.Fatal(err)
	}
	b = r.host("b")
	b.attach()
	a.attach()
	firstA, firstB := a.mustRun(1), b.mustRun(2)
	r.save()
	for i := range 10 {
		a.mustRun(10 + i)
		b.mustRun(30 + i)
	}
	a.end(firstA)
	b.end(firstB)
	if _, err := a.Edit(t.Context(), ipam.EditOptions{},
		&ipam.AddReservation{Network: "lan", Owner: "db", Wishes: []ipam.Wish{{Address: addrs("200")[0]}}},
		&ipam.CreateNetwork{Name: "other", Space: ipam.GlobalSpace}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*backHost{a, b} {
		h.remembered()
	}
	return r, a, b
}

// mendAll has both hosts mend, and looks that nothing is given before the last one has.
func mendAll(t *testing.T, r *backRig, first, last *backHost) {
	t.Helper()
	report := first.mend(ipam.MendOptions{})
	if !slices.Equal(report.Missing, []string{last.name}) || report.Nothing || !report.Remembers {
		t.Fatalf("%+v", report)
	}
	for _, h := range []*backHost{first, last} {
		if addr, err := h.run(99); !errors.Is(err, store.ErrBack) || addr.IsValid() {
			t.Fatalf("host %s gives %s (%v)", h.name, addr, err)
		}
	}
	if mark := new(ipam.Mending); !errors.As(first.State().Err, &mark) ||
		!slices.Equal(mark.Missing, []string{last.name}) {
		t.Fatalf("%+v", first.State())
	}
	joins := r.host("c")
	joins.comes("it may not join",
		func() bool { return strings.Contains(fmt.Sprint(joins.State().Err), "being mended") })
	report = last.mend(ipam.MendOptions{})
	if len(report.Missing) > 0 || report.Nothing {
		t.Fatalf("%+v", report)
	}
	begun := time.Now()
	first.ready()
	last.ready()
	if took := time.Since(begun); took > 10*time.Second { // a moment, on a machine that does nothing else
		t.Errorf("they are ready after %s", took)
	}
	joins.ready()
	r.holdsWhatRuns(first)
	taken := map[string]bool{}
	for _, h := range []*backHost{first, last} {
		for i := range 40 {
			addr := h.mustRun(100 + i).String()
			if taken[addr] || r.hosts["a"] == h && b2(r, "b", addr) || r.hosts["b"] == h && b2(r, "a", addr) {
				t.Errorf("%s is given twice", addr)
			}
			taken[addr] = true
		}
	}
	r.holdsWhatRuns(last)
}

// b2 tells whether a host runs an address.
func b2(r *backRig, host, addr string) bool {
	for a := range r.hosts[host].runs {
		if a.String() == addr {
			return true
		}
	}
	return false
}

// planIsBack fails unless the reservation and the network that were made after the snapshot are there.
func planIsBack(t *testing.T, h *backHost) {
	t.Helper()
	svc, err := h.Shared.service()
	fine(t, err)
	if n, err := svc.Network(t.Context(), "other"); err != nil || n.Name != "other" {
		t.Error(n, err)
	}
	found := 0
	for r, err := range svc.Reservations(t.Context(), ipam.AddressFilter{}) {
		fine(t, err)
		if r.Owner == "db" && r.Address == addrs("200")[0] {
			found++
		}
	}
	if found != 1 {
		t.Errorf("db's reservation is there %d times", found)
	}
}

// Daemons that run, that are started anew, and that were killed; a snapshot, and nothing at all: after both have mended
// what ran is theirs, what had ended is free, the plan is what it was, and headroom is claimed.
func TestMend(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]struct{ empty, restarts, killed bool }{
		"restored under daemons that run":       {},
		"restored, and the daemons are started": {restarts: true},
		"restored while the daemons are killed": {killed: true},
		"emptied under daemons that run":        {empty: true},
		"emptied, and the daemons are started":  {empty: true, restarts: true},
		"emptied while the daemons are killed":  {empty: true, killed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, a, b := twoHosts(t, 4)
			both := []*backHost{a, b}
			if as.killed {
				a.kill()
				b.kill()
			}
			r.back(as.empty)
			for _, h := range both {
				if as.restarts {
					h.distrusts()
					h.kill()
				}
				if h.stop == nil {
					h.start()
				}
			}
			for _, h := range both {
				h.distrusts()
			}
			mendAll(t, r, a, b)
			planIsBack(t, b)
			for _, h := range both {
				for addr, l := range r.leases(a) {
					if _, runs := h.runs[addr]; l.Host == h.name && l.Kind != ipam.Headroom && !runs {
						t.Errorf("%s is still host %s's", addr, l.Host)
					}
				}
				h.comes("its headroom is there",
					func() bool { st := h.State().Headroom; return len(st) == 1 && st[0].Claimed == 4 })
			}
		})
	}
}
