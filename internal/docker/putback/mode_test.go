package putback

import (
	"fmt"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// A network's mode overrides the daemon's. On a network that is not sticky only reserved addresses count. On a removed
// network no container is moved.
func TestModes(t *testing.T) {
	// the daemon's mode, the network's, and how many of two are moved: the one with a reservation, or both
	for row := range ipamtest.Rows(4, `
		reserved | | | 1
		all | | | 2
		off | | | 0
		off | reserved | | 1
		off | all | | 2
		all | off | | 0
		all | reserved | | 1
		reserved | all | | 2
		reserved | off | | 0
		all | | not sticky | 1
		off | all | not sticky | 1
		all | | removed | 0
		off | all | removed | 0
	`) {
		e := newEngine(t)
		n := &e.networks[0]
		n.PutBack, n.Sticky = Mode(row[1]), row[2] != "not sticky"
		if row[2] == "removed" {
			n.ID = ipam.ID{2}
		}
		all := e.set("own=1>2 had=3>4")
		all[0].Reserved = true
		e.keeper(Mode(row[0])).putBack(t.Context(), all)
		got := 0
		if e.has("own") == 2 {
			got++
		}
		if e.has("had") == 4 {
			got++
		}
		if fmt.Sprint(got) != row[3] || len(e.Place.Moves) != 2*got {
			t.Errorf("%q: %d were moved, by %q", row, got, e.Place.Moves)
		}
	}
}

func TestFlag(t *testing.T) {
	var f Flag
	for _, word := range Words() {
		if err := f.Set(word); err != nil || f.String() != word {
			t.Errorf("%s: %q, %v", word, f, err)
		}
	}
	for _, word := range []string{"", "default", "some"} {
		if err := f.Set(word); err == nil {
			t.Errorf("%q is taken", word)
		}
	}
}
