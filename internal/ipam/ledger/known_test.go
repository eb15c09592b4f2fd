package ledger

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// A question about a missing space does not create it.
func TestReadingMakesNoSpace(t *testing.T) {
	ix, lan := newIndex(), netip.MustParsePrefix("10.0.0.0/24")
	if _, overlaps := ix.Blocks("lab").Overlap(lan); overlaps || ix.Overlapping("lab", lan) != nil {
		t.Error("a subnet is there")
	}
	if id := ix.subnetAt("lab", lan); id != (ipam.ID{}) {
		t.Errorf("it is %s", id)
	}
	for id := range ix.SubnetsIn("lab") {
		t.Errorf("%s is in it", id)
	}
	if all := ix.Spaces(); len(all) != 0 {
		t.Errorf("there are %q", all)
	}
}
