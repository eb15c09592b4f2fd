package elastic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// found lists what a check finds: the kind, and the address.
func (b *bench) found() (found []string, c ipam.ElasticCheck) {
	b.t.Helper()
	c, err := b.CheckElastic(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range c.Findings {
		found = append(found, fmt.Sprintf("%s %s", f.Kind, f.Address))
		if f.Detail == "" || f.Host != "h1" || f.Network != "net1" || f.Owner == "" || strings.Contains(f.Detail, "%!") {
			b.t.Errorf("%s says too little: %+v", f.Kind, f)
		}
	}
	return found, c
}

func (b *bench) finds(when string, want ...string) ipam.ElasticCheck {
	b.t.Helper()
	got, c := b.found()
	if !slices.Equal(got, want) {
		b.t.Errorf("%s a check finds %q, and not %q", when, got, want)
	}
	return c
}

// TestCheckMapped: an address that is to be mapped and is not, is found after some seconds, and at once where the edge
// says why. One of which a host's edge says that it is mapped is none.
func TestCheckMapped(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.finds("while nothing is associated")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	if c := b.finds("at first"); c.Wanted != 1 || c.Unmapped != 1 {
		t.Errorf("the check counts %+v", c)
	}
	b.later += 6 * time.Second
	unmapped := "unmapped_elastic " + elastic
	b.finds("after six seconds", unmapped)
	id := b.wanted().Set[0].Association
	applied := ipam.EdgeApplied{Address: addr(elastic), Association: id, Guest: addr("10.20.0.9"), Error: "no such table"}
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{applied}})
	c := b.finds("when the edge has failed", unmapped)
	if len(c.Findings) == 1 && !strings.Contains(c.Findings[0].Detail, "no such table") {
		t.Errorf("the edge's error is not told: %s", c.Findings[0].Detail)
	}
	applied.Error = ""
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{applied}})
	if c := b.finds("when it is mapped"); c.Wanted != 1 || c.Unmapped != 0 {
		t.Errorf("the check counts %+v", c)
	}
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", EgressOnly: true})
	b.finds("when another association is wanted")
	b.later += 6 * time.Second
	b.finds("when that is not mapped in time", unmapped)
	b.again(true)
	b.finds("when all of it is off (CS-11)")
}

// TestCheckGuestGone: an association with a container that is no more is found; one with a container that is stopped is
// none, nor one for which an address is reserved (CS-8).
func TestCheckGuestGone(t *testing.T) {
	b := begin(t)
	b.there = map[string]bool{"web": true}
	ip := b.start("web")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: addr(elastic), Guest: ip,
		Association: b.wanted().Set[0].Association}}})
	b.finds("while it runs")
	b.stop(ip)
	b.finds("while it is stopped")
	delete(b.there, "web")
	b.finds("when it was removed", "guest_gone "+elastic)
	b.reserve("web", "10.20.0.9")
	if got, _ := b.found(); slices.Contains(got, "guest_gone "+elastic) {
		t.Error("one that is reserved is not gone")
	}
}
