package putback

import (
	"testing"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// A network's mode overrides the daemon's. On a network that is not sticky only reserved addresses count. On a removed
// network no container is moved.
func TestModes(t *testing.T) {
	const nobody, reserved, both = 0, 1, 2
	for _, row := range []struct {
		daemon, network Mode
		set             func(n *ipam.NetworkInfo)
		want            int
	}{
		{daemon: Reserved, want: reserved},
		{daemon: All, want: both},
		{daemon: off, want: nobody},
		{daemon: off, network: Reserved, want: reserved},
		{daemon: off, network: All, want: both},
		{daemon: All, network: off, want: nobody},
		{daemon: All, network: Reserved, want: reserved},
		{daemon: Reserved, network: All, want: both},
		{daemon: Reserved, network: off, want: nobody},
		{daemon: All, set: func(n *ipam.NetworkInfo) { n.Sticky = false }, want: reserved},
		{daemon: off, network: All, set: func(n *ipam.NetworkInfo) { n.Sticky = false }, want: reserved},
		{daemon: All, set: func(n *ipam.NetworkInfo) { n.ID = ipam.ID{2} }, want: nobody},
		{daemon: off, network: All, set: func(n *ipam.NetworkInfo) { n.ID = ipam.ID{2} }, want: nobody},
	} {
		e := newEngine(t)
		e.networks[0].PutBack = row.network
		if row.set != nil {
			row.set(&e.networks[0])
		}
		own, had := e.runs("own", 1, 2), e.runs("had", 3, 4)
		own.Reserved = true
		e.keeper(row.daemon).putBack(t.Context(), []docker.Astray{own, had})
		got := 0
		if e.has("own") == 2 {
			got++
		}
		if e.has("had") == 4 {
			got++
		}
		if got != row.want || len(e.Place.Moves) != 2*got {
			t.Errorf("the daemon says %q and %+v: %d were moved, by %q", row.daemon, e.networks[0], got, e.Place.Moves)
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
