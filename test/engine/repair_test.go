//go:build engine

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// What somebody else took over the plugin socket is no endpoint's. It goes after the time of grace and in two checks,
// and not before either.
func TestRepairPatience(t *testing.T) {
	t.Parallel()
	for number, grace := range map[int]string{52: "1h", 53: "1s"} {
		t.Run(grace, func(t *testing.T) {
			t.Parallel()
			h, d := witnessed(t, number, "--check-grace", grace)
			n := h.network("--subnet", h.v4("0/24"))
			c := h.container(n)
			pool := h.lease(h.address(c, n)).Pool
			foreign, err := takeByHand(d.PluginSocket(), pool, "", "02:62:74:00:52:01")
			if err != nil {
				t.Fatal(err)
			}
			before := h.lease(foreign)
			h.older(before, 1100*time.Millisecond) // than the shorter grace: its age does not count
			runs := 3
			if grace == "1s" {
				runs = 1 // the second one may end it
			}
			for run := range runs {
				r := h.check("--repair")
				f := r.find("unused_lease", foreign)
				if f == nil || f.Repairable || f.Repaired || h.lease(foreign).ID != before.ID {
					t.Fatalf("run %d: %+v; the lease is %+v", run, r.Findings, h.lease(foreign))
				}
			}
			if grace == "1h" {
				if err := giveByHand(d.PluginSocket(), pool, foreign); err != nil {
					t.Error(err)
				}
				return
			}
			h.goesInTime(foreign, time.Second)
			h.address(c, n)
			h.finds()
		})
	}
}

// older waits until a lease is older than age.
func (h *House) older(l Lease, age time.Duration) {
	h.Helper()
	if err := ground.Eventually(age+10*time.Second, func() error {
		if now := time.Since(l.Since); now <= age {
			return fmt.Errorf("it is %s old: %+v", now, l)
		}
		return nil
	}); err != nil {
		h.Fatal(err)
	}
}

// goesInTime checks until a lease without a user is ended, which is not before the time of grace is over.
func (h *House) goesInTime(address string, grace time.Duration) {
	h.Helper()
	if err := ground.Eventually(20*time.Second, func() error {
		r := h.check("--repair")
		f := r.find("unused_lease", address)
		switch {
		case f == nil:
			h.Fatalf("the lease of %s is not seen any more: %+v", address, r)
		case !f.Repaired:
			return fmt.Errorf("it is there: %+v", f)
		case r.Taken.Sub(f.Seen) < grace:
			h.Errorf("the lease of %s was ended %s after it was found: %+v", address, r.Taken.Sub(f.Seen), f)
		}
		return nil
	}); err != nil {
		h.Fatal(err)
	}
	if l := h.lease(address); l.Kind != "" {
		h.Errorf("%s is still on record: %+v", address, l)
	}
}

// A lease that was given back and taken again between two checks is another one, which has its own time of grace.
func TestRepairTakenAgain(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 54)
	n := h.network("--subnet", h.v4("0/24"))
	pool := h.lease(h.address(h.container(n), n)).Pool
	foreign, err := takeByHand(d.PluginSocket(), pool, "", "02:62:74:00:54:01")
	if err != nil {
		t.Fatal(err)
	}
	first := h.lease(foreign)
	found := h.finds("unused_lease "+foreign).find("unused_lease", foreign)
	_, err = takeByHand(d.PluginSocket(), pool, foreign, "02:62:74:00:54:02")
	if err == nil {
		t.Errorf("%s was given twice", foreign)
	}
	err = giveByHand(d.PluginSocket(), pool, foreign)
	if again, takeErr := takeByHand(d.PluginSocket(), pool, foreign, "02:62:74:00:54:02"); err != nil ||
		takeErr != nil || again != foreign {
		t.Fatalf("%s was taken again: %s (%v, %v)", foreign, again, err, takeErr)
	}
	second := h.lease(foreign)
	h.older(second, 1100*time.Millisecond)
	r := h.check("--repair")
	f := r.find("unused_lease", foreign)
	if second.ID == first.ID || h.lease(foreign).ID != second.ID || f == nil || f.Repaired ||
		!f.Seen.After(found.Seen) || f.Lease != second.ID {
		t.Errorf("the lease was %+v, then %+v, and is %+v: %+v", first, second, h.lease(foreign), r.Findings)
	}
	h.goesInTime(foreign, time.Second)
}

// An address in use that no lease covers gets one again; with a report of before, only what stands in it.
func TestRepairUncovered(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 55)
	n := h.network("--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64"))
	first, second := h.container(n), h.container(n)
	before := map[string]Lease{}
	for _, c := range []string{first, second} {
		a := h.address(c, n)
		before[a] = h.seen(a, c)
	}
	a, b := h.ip(first, n), h.ip(second, n)
	uncover := func(address string) {
		t.Helper()
		if err := giveByHand(d.PluginSocket(), before[address].Pool, address); err != nil {
			t.Fatal(err)
		}
	}
	uncover(a)
	f := h.finds("uncovered_address " + a).Findings[0]
	if !f.Repairable || f.Owner != first || f.MAC != before[a].MAC || f.Seen.IsZero() {
		t.Errorf("found: %+v", f)
	}
	_, out, err := check(d)
	if err == nil {
		t.Error("berth check ends well, and leaves something")
	}
	report := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(report, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	uncover(b)
	r := h.check("--repair-from", report)
	if f := r.find("uncovered_address", a); f == nil || !f.Repaired ||
		!slices.Equal(r.left(), []string{"uncovered_address " + b}) {
		t.Errorf("berth check --repair-from: %+v", r.Findings)
	}
	if l := h.lease(b); l.Kind != "" {
		t.Errorf("%s does not stand in the report, and is leased: %+v", b, l)
	}
	if r := h.check("--repair"); r.Repaired != 1 || len(r.left()) != 0 {
		t.Errorf("berth check --repair: %+v", r)
	}
	for address, was := range before {
		l := h.lease(address)
		if l.MAC != was.MAC || l.Pool != was.Pool || l.Name != was.Name || l.ID == was.ID || l.Kind == "" {
			t.Errorf("it was %+v and is %+v", was, l)
		}
	}
	// What was in the report and is put right is not put right again.
	if r := h.check("--repair-from", report); r.Repaired != 0 || len(r.Findings) != 0 {
		t.Errorf("berth check --repair-from, again: %+v", r)
	}
	// A report of another host's engine says nothing here.
	if err := os.WriteFile(report, []byte(strings.Replace(out, `"`+f.Host+`"`, `"else-`+f.Host+`"`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	h.berthRefuses([]string{"else-" + f.Host}, "check", "--repair-from", report)
	h.docker("rm", "-f", first, second) // gives back what was leased again
	if left := h.leased(); len(left) != 0 {
		t.Errorf("after the containers are gone: %v", left)
	}
	h.finds()
}
