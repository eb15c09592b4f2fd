package ipam_test

import (
	"fmt"
	"testing"

	"berth/internal/golden"
	"berth/internal/ipam"
)

// TestGoldenVerbs: a verb of 1.0 keeps its name, and its number in the records of events.
func TestGoldenVerbs(t *testing.T) {
	var all []string
	for _, name := range ipam.Verbs() {
		var v ipam.Verb
		if err := v.UnmarshalText([]byte(name)); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%03d %s", v, name))
	}
	golden.Names(t, "verbs.txt", all)
}
