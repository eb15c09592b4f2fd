package elastic_test

import (
	"testing"

	"berth/internal/ipam"
)

// mappedWeb associates an address with a guest, and has the edge say what became of that.
func (b *bench) mappedWeb(failed string) {
	b.t.Helper()
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.said(failed)
}

// said has the edge say of all that it is told that it has applied it, or has failed.
func (b *bench) said(failed string) {
	b.t.Helper()
	report := ipam.EdgeReport{Whole: true}
	for _, m := range b.wanted().Set {
		report.Applied = append(report.Applied, ipam.EdgeApplied{Address: m.Elastic, Association: m.Association,
			Guest: m.Guest, Error: failed})
	}
	b.report(report)
}

func (b *bench) giveBack() ipam.ElasticState {
	b.t.Helper()
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	return b.show(elastic).State
}

// TestNeverApplied: an address that the edge could not map is free as soon as it is released; one that it mapped before
// it failed is not.
func TestNeverApplied(t *testing.T) {
	b := begin(t)
	b.mappedWeb("no such device")
	if got := b.giveBack(); got != ipam.ElasticFree {
		t.Errorf("it was never mapped, and is %s", got)
	}
	b.edit(&ipam.AllocateElastic{Address: addr(elastic)})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.said("")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", EgressOnly: true})
	b.said("no such device")
	if got := b.giveBack(); got != ipam.ElasticReleasing {
		t.Errorf("it was mapped before the edge failed, and is %s", got)
	}
	b.report(ipam.EdgeReport{Whole: true})
	if got := b.show(elastic).State; got != ipam.ElasticFree {
		t.Errorf("no edge maps it, and it is %s", got)
	}
}

// TestRenamedHost: a store of one host waits for no edge of the name that this had before, and knows its containers
// (CloudStack #5824: an address that is being released for ever).
func TestRenamedHost(t *testing.T) {
	b := begin(t)
	b.mappedWeb("")
	ip := b.start("web")
	if got := b.giveBack(); got != ipam.ElasticReleasing {
		t.Fatalf("it is %s", got)
	}
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "web"})
	b.host = "h2"
	b.again(false)
	if got := b.show(elastic).State; got != ipam.ElasticFree {
		t.Errorf("under another name of its host it is %s", got)
	}
	if got := b.wanted().Set; len(got) != 1 || got[0].Guest != ip || got[0].Staged {
		t.Errorf("under another name the edge is told %+v", got)
	}
	if got := b.show(next).Host; got != "h2" {
		t.Errorf("it is shown at host %s", got)
	}
	b.consistent()
}
