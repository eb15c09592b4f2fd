package cluster

import (
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/stores"
	"berth/store/mem"
)

// A host draws its id once for each own store.
func TestOwnHost(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	id, err := OwnHost(ctx, st)
	if err != nil || id == (ipam.ID{}) {
		t.Fatal(id, err)
	}
	again, err := OwnHost(ctx, st)
	if err != nil || again != id {
		t.Errorf("it is %s, and then %s, %v", id, again, err)
	}
	if other, err := OwnHost(ctx, mem.New()); err != nil || other == id {
		t.Errorf("another state has the id %s, too, %v", other, err)
	}
	if problems, err := stores.CheckStore(ctx, st); err != nil || len(problems) > 0 {
		t.Errorf("the check finds %q, %v", problems, err)
	}
}

func TestKeepCluster(t *testing.T) {
	ctx, st := t.Context(), mem.New()
	one, other := strings.Repeat("0a", 16), strings.Repeat("0b", 16)
	if got, err := KnownCluster(ctx, st); err != nil || got != "" {
		t.Errorf("at first: %q, %v", got, err)
	}
	for range 2 {
		fine(t, KeepCluster(ctx, st, one))
	}
	if err := KeepCluster(ctx, st, other); err == nil || !strings.Contains(err.Error(), one) {
		t.Errorf("another cluster: %v", err)
	}
	if got, err := KnownCluster(ctx, st); err != nil || got != one {
		t.Errorf("it belongs to %q, %v", got, err)
	}
	if got := MarkOf(one); got != [4]byte{0x0a, 0x0a, 0x0a, 0x0a} {
		t.Errorf("its mark is %x", got)
	}
	if got := MarkOf(""); got != [4]byte{} {
		t.Errorf("no cluster has the mark %x", got)
	}
}
