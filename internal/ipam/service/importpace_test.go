package service

import (
	"slices"
	"testing"

	"berth/internal/ipam/ledger"
	"berth/store/mem"
)

// The transactions of an import grow while nobody else writes. They are small again after another write.
func TestPace(t *testing.T) {
	l := ledger.New(ledger.Config{Store: mem.New(), Host: "h1"})
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	at := new(pace)
	for i := range 6 {
		if i == 4 {
			if err := l.Update(t.Context(), func(*ledger.Change) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		err := at.update(t.Context(), l, func(_ *ledger.Change, most int) error {
			sizes = append(sizes, most)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{64, 128, 256, 512, 64, 128}; !slices.Equal(sizes, want) {
		t.Errorf("the transactions have %d writes at most, want %d", sizes, want)
	}
}
