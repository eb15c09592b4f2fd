package page

import (
	"os"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// The page's maps use the words, signs and order of ipam.Legend, as the command line does (TestLegend there).
func TestLegend(t *testing.T) {
	css, err := os.ReadFile("style.css")
	if err != nil {
		t.Fatal(err)
	}
	signs := map[string]bool{}
	for i, key := range keyOf() {
		l := ipam.Legend()[i]
		if key.Text != l.Word || key.Sign != l.Sign || signs[key.Sign] || key.Sign == "" {
			t.Errorf("the key of %s is %+v, and not %+v alone", l.State, key, l)
		}
		signs[key.Sign] = true
		if c := stateCell(l.State); c.Text != l.Word || c.Sign != l.Sign || c.Value != string(l.State) {
			t.Errorf("the cell of %s is %+v", l.State, c)
		}
		if !strings.Contains(string(css), ".s-"+string(l.State)+" ") {
			t.Errorf("style.css has no colour for %s", l.State)
		}
	}
	if len(signs) != len(ipam.AddressStates()) {
		t.Errorf("the key has %d of %d states", len(signs), len(ipam.AddressStates()))
	}
	sum := ipam.StateCounts{Leased: 2, Reserved: 3, Free: ipam.NewCount(4)}
	if got := countsText(&sum); got != "2 held, 3 idle, 4 free" {
		t.Errorf("the counts are %q", got)
	}
}
