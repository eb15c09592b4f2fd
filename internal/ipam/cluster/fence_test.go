package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
)

// fenced runs a script, in each of its variants, on two hosts with an edge and a container each. The elastic
// address leads to the container of host a, and the edge of a has it in force.
func fenced(t *testing.T, elastic, script string, then ...func(*stage)) {
	t.Helper()
	for _, way := range ways(script) {
		synctest.Test(t, func(t *testing.T) {
			st := plays(t, `
				lan 0
				b: pool theirs
				elastic `+elastic+`
				take mac=7
				b: take mac=8 pool=theirs
				edge
				b: edge
				lead 7
				edge has
				edge applies
			`)
			st.run(way)
			for _, more := range then {
				more(st)
			}
		})
	}
}

// Berth grants a moving address to its new host only when the old host's edge reports that it has dropped the
// address. Until then the new edge gets only the outgoing half.
func TestGrant(t *testing.T) {
	fenced(t, "", `
		b: applied a -> in force
		b: lead 8
		b: edge stages
		edge lacks
		# a host that is there is never taken from
		sleep 20s
		b: edge never
		b: shown -> allocated; a waits
		edge withdraws
		b: edge has
		# its edge has said nothing yet
		b: shown -> allocated
		b: edge applies
		b: shown -> allocated; b
		sound
		b: sound
	`)
}

// A late report of an edge about an old grant neither restores nor removes anything.
func TestLateWords(t *testing.T) {
	fenced(t, "", `
		b: lead 8
		edge lacks
		# it is moved back before the edge of a has said that it has withdrawn it
		lead 7
		edge has -> new
		edge withdraws first
		b: applied a -> in force; unsaid
		b: lead 8
		edge lacks
		edge withdraws
		b: edge has
		edge reapplies
		b: applied a -> none
		edge ends
		edge
		edge late ! changed
		edge ends
		sound
		b: sound
	`)
}

// An address of a host that is cut off is granted to another host when nothing can answer on the old host any
// more (MetalLB #589, #740; kube-vip #996).
func TestTakeOver(t *testing.T) {
	fenced(t, "", `
		cut
		b: lead 8
		b: edge stages
		sleep 5100ms
		b: edge never
		sleep 1s
		b: edge has
		b: applied a -> none
		heal
		edge over
		edge
		edge lacks
		edge never
		sound
		b: sound
	`)
}

// If a host comes back while another one waits, the wait starts again, because the host has a new session.
func TestCameBack(t *testing.T) {
	fenced(t, "", `
		cut
		b: lead 8
		b: edge stages
		sleep 4100ms
		heal
		edge over
		edge
		sleep 20s
		b: edge never
		cut
		sleep 5100ms
		b: edge never
		sleep 1s
		b: edge has
		edge ends
	`)
}

// An address of a range with on_cut keep is never taken over, and it is shown for which host it waits. It is
// taken over when that host is removed.
func TestKeep(t *testing.T) {
	fenced(t, "keep", `
		cut
		b: lead 8
		b: edge stages
		sleep 1m
		b: edge never
		b: shown -> allocated; a waits
		b: remove a off
		sleep 6s
		b: edge has
	`)
}

// The edge of a removed host gets no more news, and its session ends.
func TestRemovedHostIsSilent(t *testing.T) {
	fenced(t, "", `
		cut
		b: remove a off
		heal
		edge over
		edge ! host
		b: sessions -> b
	`)
}

// An edge hears each second that the session was kept, and not once the session is no longer kept.
func TestSent(t *testing.T) {
	fenced(t, "", "", func(st *stage) {
		e := st.edges["a"]
		at := func() time.Duration { e.mu.Lock(); defer e.mu.Unlock(); return e.sent }
		first := at()
		e.until("it is kept", func() bool { return e.sent > first })
		st.run("cut")
		last := st.host("a").svc.Ledger.SinceBoot()
		time.Sleep(1500 * time.Millisecond)
		if at() > last {
			st.t.Error("an edge is told that a session was kept that cannot be")
		}
	})
}

// An edge has an address without an end if its host shared the store with no other host when it got it. No host
// takes the address over until that edge has reported, or its host is removed.
func TestUntimed(t *testing.T) {
	for cut, ends := range map[string]string{"cut": "b: remove a off\nsleep 6s", "": "edge\nedge whole"} {
		fenced(t, "", `
			untimed
			edge ends
			`+cut+`
			b: lead 8
			b: edge stages
			sleep 1m
			b: edge never
			`+ends+`
			b: edge has
		`)
	}
}

// If such an edge gets a grant, its address has no end until the edge reports that the grant is in force.
func TestUntimedIsTimed(t *testing.T) {
	fenced(t, "", `
		untimed
		edge ends
		edge
		edge has
		b: applied a -> in force; unsaid; untimed
		edge applies
		b: applied a -> in force
	`)
}

// If two hosts are recorded as having an address, the one with the later grant keeps it. The other one
// no longer gets it.
func TestMendedGrantIsNotTheLast(t *testing.T) {
	fenced(t, "", `
		edge ends
		granted b
		edge
		edge stages
		edge never
	`)
}

// A released address waits for the edge of the host that had mapped it, until that host is removed and no longer
// answers (CloudStack #5824).
func TestElasticOfARemovedHost(t *testing.T) {
	fenced(t, "", `
		b: lead 8
		edge withdraws
		b: edge has
		unlead
		release
		shown -> releasing
		b: edge ends
		b: close
		remove b off
		# the host is removed only now
		shown -> releasing
		sleep 6s
		finish
		shown -> free
		sound
	`)
}

// An address of one host's range is mapped to no guest of another host (CS-15).
func TestElasticOfAnotherHost(t *testing.T) {
	fenced(t, "a", `
		lead 8 ! invalid; host a; runs on host b; [elastic.ranges]
		unlead
		lead 7
	`)
}

// The events of an address on two hosts come in order. Each association names the hosts that the address leaves
// and reaches, and each report of an edge names its host (CS-9). Both hosts read the same.
func TestElasticTransferEvents(t *testing.T) {
	fenced(t, "", `
		b: lead 8
		edge lacks
		edge withdraws
		b: edge has
		b: edge applies
		b: unlead
	`, func(st *stage) {
		want := []string{"elastic.allocate by a", "elastic.associate by a: - a", "elastic.applied by a",
			"elastic.associate by b: a b", "elastic.withdrawn by a", "elastic.applied by b",
			"elastic.disassociate by b: b -"}
		for _, h := range st.hosts {
			var got []string
			events, err := h.svc.Events(st.t.Context(), ipam.EventFilter{})
			fine(st.t, err)
			for _, e := range events {
				if e.Address != elasticAddr {
					continue
				}
				line := e.Verb.String() + " by " + e.Host
				if e.Verb == ipam.ElasticAssociated || e.Verb == ipam.ElasticDisassociated {
					line += ": " + hostIn(st.t, e.Before) + " " + hostIn(st.t, e.After)
				}
				got = append(got, line)
			}
			if !slices.Equal(got, want) {
				st.t.Errorf("host %s tells\n%s\nand not\n%s", h.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// hostIn returns the host that an event's facts name, or "-".
func hostIn(t *testing.T, facts json.RawMessage) string {
	t.Helper()
	var of struct{ Host string }
	if len(facts) > 0 {
		fine(t, json.Unmarshal(facts, &of))
	}
	return cmpOr(of.Host, "-")
}
